"""The drawn examples: their questions are those of phantoms, and only what they ask about differs."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from dualread.apps.serve.demo.examples import EXAMPLES, Example
from dualread.training.phantoms.questions import ask


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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.shown)
def test_the_images_are_those_that_actors_learn_from_and_always_the_same(example: Example):
    assert [picture(address).shape for address in example.addresses] == [(64, 64, 3)] * 2
    assert example.addresses == example.addresses


def test_where_the_color_is_asked_for_only_the_lesion_differs():
    [example] = [one for one in EXAMPLES if "color" in one.question]
    own, other = map(picture, example.addresses)
    differs = (own != other).any(axis=2)
    assert (
        0 < differs.mean() < 0.1
    )  # half axes of at most 6.4 * 1.55 * 1.18 and 6.4 * 0.65 * 1.18, and a rim, of 64 x 64
