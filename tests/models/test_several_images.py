"""Prompts of several images, of all families, against transformers alone; donors and changes of whole lists."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch

from dualread.errors import ArtifactError, DataError
from dualread.models import prompts
from dualread.models.actor import ReadSpec, Request, SeededDecoding, read_states
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.replay.forward import evidence_state
from dualread.models.replay.of_generation import Collected
from dualread.models.replay.replayed import stacked_optional, with_images
from dualread.schema.replay import PassReading
from tests import families
from tests.architectures import others_in_rest
from tests.models.test_families import alone
from tests.tiny import FAMILIES, image

SIZES = ((40, 52), (90, 36), (40, 52), (64, 64))


def request(text: str, *pictures: int) -> Request:
    shown = [image(k).resize(SIZES[k]) for k in pictures]
    asked = prompts.render("shared", question=text)
    return Request(text=asked, images=shown, image_name=" ".join(map(str, pictures)), row=f"{text} {pictures}")


def requests() -> list[Request]:
    """Two and three images, one twice, the same in another order, and prompts of one image and of none beside them."""
    asked = [((0, 1), "Has it grown?"), ((1, 0), "Has it grown?"), ((0, 1, 3), "Where?"), ((2, 2), "Where?")]
    return [request(text, *pictures) for pictures, text in (*asked, ((0, 1), "Where?"), ((0,), "Where?"))]


OF_TILES = ("idefics3",)  # an image is cut into pieces, whose tokens do not stand together
NAMES = (*FAMILIES, *families.FAMILIES)
OF_SEVERAL = [name for name in NAMES if name != "paligemma"]
others = pytest.mark.parametrize("family", others_in_rest(OF_SEVERAL), indirect=True)


def check_single_images(family, asked, completions, replayed):
    """Each image has as many tokens as in a prompt of its own; the mean over those is its state."""
    token, n_tokens = family.opened.encoder.image_token_id, {}
    for k in range(len(SIZES)):
        n_tokens[k] = request("Where?", k).encoded(family.opened.encoder).token_ids.count(token)
    for one, completion, read in zip(asked, completions, replayed, strict=True):
        _, states, is_image, n = alone(family, one, completion)
        pictures = [int(k) for k in one.image_name.split()]
        parts = states[-1][:n][is_image].split([n_tokens[k] for k in pictures])
        for k, part in enumerate(parts, start=1):
            assert np.allclose(read.vectors[f"h_image_{k}"], part.mean(dim=0).numpy(), atol=1e-4), (one.row, k)
        assert f"h_image_{len(pictures) + 1}" not in read.vectors
    stored = stacked_optional(replayed, "h_image_3")
    assert np.isnan(stored).all(axis=1).tolist() == [len(one.images) < 3 for one in asked]
    assert np.allclose(stored[2], replayed[2].vectors["h_image_3"])


@others
def test_generation_and_replay_are_the_models_own(family):
    asked, engine = requests(), TransformersEngine(family.opened, 16)
    decoding = SeededDecoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=6, seed=1)
    made = [
        one
        for [one] in engine.answer(
            asked, decoding, Collected(spec=PassReading(kappa=0.1, middle=True, entropies=False))
        )
    ]
    ids = [list(one.token_ids) for one in made]
    replayed = read_states(family.opened, asked, ids, ReadSpec(kappa=0.1), batch_size=4)
    assert not any("h_image_1" in read.vectors for read in replayed)  # nobody asks for it
    with pytest.raises(ArtifactError) if family.name in OF_TILES else nullcontext():
        of_images = read_states(family.opened, asked, ids, ReadSpec(kappa=0.1, images=True), batch_size=4)
        check_single_images(family, asked, ids, of_images)
    for one, read, completion, answer in zip(asked, replayed, ids, made, strict=True):
        own, states, is_image, n = alone(family, one, completion)
        assert np.abs(np.array(answer.token_log_probs) - own).max() < 1e-5
        assert np.abs(read.token_log_probs - own).max() < 1e-5
        answer_state = states[-1][[n + t for t in read.positions.answer]].mean(dim=0)
        expected = {
            "h_pre": states[-1][n - 1],
            "h_global": states[-1][:n][is_image].mean(dim=0),  # over the tokens of all images
            "h_evid": evidence_state(answer_state, states[-1][:n][is_image], 0.1),
        }
        for name, state in expected.items():
            assert np.allclose(read.vectors[name], state.numpy(), atol=1e-4), (one.row, name)
        for name, vector in read.vectors.items():
            assert np.allclose(answer.states.vectors[name], vector, atol=1e-4), (one.row, name)
        assert read.n_image_tokens == int(is_image.sum())


@others
def test_the_order_of_images_and_each_of_them_changes_states(family):
    first, swapped, *_ = requests()
    other = request("Has it grown?", 0, 3)
    states = [
        one.vectors["h_pre"]
        for one in read_states(family.opened, [first, swapped, other], [[40]] * 3, ReadSpec(kappa=0.1), batch_size=3)
    ]
    assert not np.allclose(states[0], states[1], atol=1e-4)
    assert not np.allclose(states[0], states[2], atol=1e-4)


@pytest.mark.parametrize("family", ["qwen3_vl"], indirect=True)
def test_images_whose_tokens_are_not_apart_are_refused(family):
    opened = family.opened
    (read,) = read_states(opened, requests()[:1], [[40]], ReadSpec(kappa=0.1), batch_size=1)
    prompt, token = requests()[0].encoded(opened.encoder), opened.encoder.image_token_id
    joined = replace(prompt, token_ids=[token] * len(prompt.token_ids))
    with pytest.raises(ArtifactError, match="shows 2 images, and their tokens stand in 1 places"):
        with_images(read, torch.zeros(len(prompt.token_ids), 8), joined, token)


@pytest.mark.parametrize("family", ["paligemma"], indirect=True)
def test_a_template_with_one_place_for_an_image_is_refused(family):
    with pytest.raises(DataError, match="refuses its images"):
        requests()[0].encoded(family.opened.encoder)
