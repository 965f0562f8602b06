"""Samples grouped by meaning, as a view of `groups` says it, and what readers make of these groups."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dualread.readers import radflag, semantic_uncertainty, vase
from dualread.readers.answers import Answers, ViewAnswers
from dualread.readers.groups import sample_groups
from tests.readers import synthetic
from tests.readers.test_self_consistency import PLATT, sampled, score
from tests.readers.test_vase import SETTINGS, answers, view

# What the model said: a and b mean the same, and so do a and c, but not b and c; nothing means the same as d.
SAME, NEAR, OTHER = (1.0, True), (0.75, False), (0.0, False)
PAIRS = {
    **{("a", "b"): SAME, ("a", "c"): SAME, ("b", "c"): NEAR},
    **{(letter, "d"): OTHER for letter in "abc"},
}


def meant(given: Answers, pairs=PAIRS) -> Answers:
    return replace(given, views=(*given.views, ViewAnswers(name="meaning", pairs=(pairs,) * len(given))))


@pytest.mark.parametrize(
    ("samples", "groups"),
    [
        ("abcd", ["a", "a", "a", "d"]),
        ("bacd", ["b", "b", "c", "d"]),  # a is like both b and c, and comes to b
        ("bcad", ["b", "c", "b", "d"]),  # it comes to the first of two (the code of Farquhar et al.: to c)
        ("d.a.", ["d", None, "a", None]),
    ],
)
def test_a_sample_comes_to_the_first_group_whose_first_member_means_the_same(samples, groups):
    assert sample_groups(meant(sampled(("a", [*samples]))), 4) == [groups]


def test_the_readers_by_hand():
    given = sampled(("a", [*"bacd"]), ("c", [*"bacd"]), ("d", [*"abab"]), (None, [*"aaaa"]))
    assert score(given, 4).score.tolist() == [0.25, 0.25, 0.0, 0.0]
    assert score(meant(given), 4).score.tolist() == [0.75, 0.5, 0.0, 0.0]
    of_radflag = synthetic.reader("readers.radflag", PLATT, {"k": 4})
    assert radflag.score(of_radflag, meant(given)).score.tolist() == [0.75, 0.5, 0.0, 0.0]
    of_entropy = synthetic.reader("readers.semantic_uncertainty", PLATT, {"k": 4})
    # Groups of 2, 1 and 1: 1.5 ln 2 / (2 ln 2); one group of four.
    assert semantic_uncertainty.score(of_entropy, meant(given)).score == pytest.approx([-0.75, -0.75, 0, 0], abs=1e-15)
    one = answers(view("samples", ("a", "b")), view("distorted", ("c", "d")))
    found = vase.score(synthetic.reader("readers.vase", PLATT, SETTINGS), meant(one))
    # One group a of both samples on the image, of which a distortion keeps half: p = (1, 0), p' = (1/2, 1/2).
    first = 1 / (1 + math.exp(-2))  # softmax of (1.5, -.5)
    assert found.score == pytest.approx([first * math.log(first) + (1 - first) * math.log(1 - first)])


def test_the_kernel_entropy_by_hand():
    """Of two samples with the weight w, the eigenvalues of the normalized kernel are (1 +- r) / 2, r = tanh(w t)."""
    for similarity in (0.0, 0.25, 0.5, 1.0):
        r = math.tanh(2 * similarity * 0.3)
        expected = -sum(p * math.log2(p) for p in ((1 + r) / 2, (1 - r) / 2) if p > 0)
        found = semantic_uncertainty.kernel_entropy(np.array([[1.0, similarity], [similarity, 1.0]]), 0.3)
        assert found == pytest.approx(expected, abs=1e-12)
    assert semantic_uncertainty.kernel_entropy(np.ones((2, 2)), 20.0) == 0.0  # the smaller eigenvalue is 0 itself
    reader = synthetic.reader("readers.semantic_uncertainty", PLATT, {"k": 3, "t": 0.3})
    given = sampled(("a", [*"bcd"]), ("a", [*"bbd"]), ("a", [*"dbc"]), ("a", [*"bbb"]), ("a", [*".d."]))
    found = semantic_uncertainty.score(reader, meant(given)).score
    assert found[0] == found[2]  # the order of samples says nothing
    assert found[4] == -1.0 < found[0] < found[1] < found[3] < 0  # b and c are near; b and b are nearer
