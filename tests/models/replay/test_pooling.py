"""Vectors of states by hand: pooled ones, and those of the example that stands beside stored states."""

import math

import numpy as np
import pytest
import torch

from dualread.models.replay.forward import VECTORS, answer_state, evidence_state, global_state, middle_layer
from dualread.models.replay.rules import read_of_example


def states(n, factor):
    return ((np.arange(3 * n) * factor) % 17 - 8).reshape(n, 3) / 4


def test_the_example_by_hand():
    """The first answer is tokens 5 to 7, and its block ends in token 9; all of the second completion stands for it."""
    found = {name: np.reshape(values, (2, 3)) for name, values in read_of_example().items()}
    assert found.keys() == set(VECTORS)
    first, second = states(13, 5), states(7, 5)
    expected = {
        "h_pre": [first[0], second[0]],
        "h_close": [first[1 + 9], second[1 + 5]],
        "h_ans": [first[[6, 7, 8]].mean(0), second[1:].mean(0)],
        "h_global": [states(9, 11).mean(0)] * 2,
        "h_mid": [states(12, 7)[9], states(6, 7)[4]],  # the last tokens before those that end a turn
    }
    image = states(9, 11)
    expected["h_evid"] = []
    for answer in expected["h_ans"]:
        cosine = image @ answer / np.linalg.norm(image, axis=1) / np.linalg.norm(answer)
        weights = np.exp(cosine / 0.5)
        expected["h_evid"].append(weights @ image / weights.sum())
    thinking = read_of_example("</think>")
    assert thinking["h_think"] == pytest.approx(first[1 + 2], abs=6e-4)  # the second completion never ends to think
    assert thinking["h_ans"] == pytest.approx([*first[[6, 7, 8]].mean(0), *second[1 + 5]], abs=6e-4)
    for name, vectors in expected.items():
        assert found[name] == pytest.approx(np.array(vectors), abs=6e-4), name


def test_evidence_by_hand():
    # cos((1,0), (2,0)) = 1 and cos((1,0), (0,3)) = 0; with kappa = .5 the weights are e^2 : e^0.
    image = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    first = math.exp(2) / (math.exp(2) + 1)
    expected = [2 * first, 3 * (1 - first)]
    assert evidence_state(torch.tensor([1.0, 0.0]), image, kappa=0.5).tolist() == pytest.approx(expected)


def test_evidence_ignores_the_norm_of_the_answer_state_and_is_defined_for_zero_states():
    image = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    h_ans = torch.randn(8, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(evidence_state(h_ans, image, 0.1), evidence_state(7 * h_ans, image, 0.1))
    torch.testing.assert_close(evidence_state(torch.zeros(8), image, 0.1), image.mean(dim=0))


def test_bfloat16_states_are_pooled_in_float32():
    assert evidence_state(torch.ones(2).bfloat16(), torch.ones(3, 2).bfloat16(), 0.1).dtype == torch.float32
    # (1 + 1 + 2) / 3 in float32; bfloat16 has 8 bits of it, 1.3359375.
    states = torch.tensor([[1.0], [1.0], [2.0]]).bfloat16()
    third = [pytest.approx(4 / 3, abs=1e-6)]
    assert answer_state(states).tolist() == third
    assert global_state(states).tolist() == third


@pytest.mark.parametrize(("n_layers", "expected"), [(28, 18), (34, 21), (4, 3), (12, 8), (20, 13)])
def test_middle_layer_rounds_half_up(n_layers, expected):
    # 0.625 * 12 = 7.5 -> 8 and 0.625 * 20 = 12.5 -> 13, where round() would give 12.
    assert middle_layer(n_layers) == expected
