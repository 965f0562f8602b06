"""What the page sends, read as a question."""

import base64
import json

from dualread.apps.serve.demo.asked import read
from tests.data.dicoms import dicom
from tests.data.test_windows import CT, LEVELS, MEDGEMMA


def test_both_images_are_shown_through_the_windows_that_were_said():
    images = [base64.b64encode(dicom([[unit + 1024]], **CT)).decode() for unit in (40, 80)]
    sent = json.dumps({"question": "What?", "image": images[0], "donor": images[1]}).encode()
    found = read(sent, None, MEDGEMMA)
    assert [found.image.image.getpixel((0, 0)), found.donor.image.getpixel((0, 0))] == [LEVELS[40], LEVELS[80]]
    assert read(sent).image.image.getpixel((0, 0)) != LEVELS[40]
