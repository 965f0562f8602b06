"""How the images of a request are read."""

import base64
import json

from dualread.commands.serve import wire
from tests.data.dicoms import dicom
from tests.data.test_windows import CT, LEVELS, MEDGEMMA


def test_ct_is_shown_through_the_windows_that_were_said():
    image = base64.b64encode(dicom([[40 + 1024]], **CT)).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:application/dicom;base64,{image}"}}
    sent = wire.read(json.dumps({"messages": [{"role": "user", "content": [part]}]}).encode())
    (turn,) = sent.turns(most_images=1, bits=None, ct_windows=MEDGEMMA)
    assert turn.parts[0].image.getpixel((0, 0)) == LEVELS[40]
    (turn,) = sent.turns(most_images=1, bits=None)
    assert turn.parts[0].image.getpixel((0, 0)) != LEVELS[40]
