"""What the page sends, read as a question; and the drawn examples, of which only what is asked about differs."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from dualread.apps.serve.demo.examples import EXAMPLES, Example
from dualread.apps.serve.demo.page import read_question
from dualread.training.phantoms.questions import ask
from tests.data.dicoms import dicom
from tests.data.test_windows import CT, LEVELS, MEDGEMMA


def picture(address: str) -> np.ndarray:
    kind, _, content = address.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))), dtype=float)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.shown)
def test_the_question_has_another_answer_on_the_second_image(example: Example):
    [own], [other] = (
        [asked.answer for asked in ask(scene) if asked.question == example.question]
        for scene in (example.scene, example.donor)
    )
    assert own != other
    for shown, scene in ((example.shown, example.scene), (example.donor_shown, example.donor)):
        assert ("haze" in shown) == (scene.haze > 0)
        assert shown.startswith("no lesion" if scene.lesion_count == 0 else f"a {scene.lesion_color} lesion")
    assert [picture(address).shape for address in example.addresses] == [(64, 64, 3)] * 2


def test_both_images_are_shown_through_the_windows_that_were_said():
    images = [base64.b64encode(dicom([[unit + 1024]], **CT)).decode() for unit in (40, 80)]
    sent = json.dumps({"question": "What?", "image": images[0], "donor": images[1]}).encode()
    found = read_question(sent, None, MEDGEMMA)
    assert [found.image.image.getpixel((0, 0)), found.donor.image.getpixel((0, 0))] == [LEVELS[40], LEVELS[80]]
    assert read_question(sent).image.image.getpixel((0, 0)) != LEVELS[40]
