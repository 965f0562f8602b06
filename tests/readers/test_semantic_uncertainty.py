import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from dualread.readers import semantic_uncertainty
from dualread.readers.semantic_uncertainty import normalized_entropy
from tests.readers import synthetic
from tests.readers.test_self_consistency import PLATT, sampled


@pytest.mark.parametrize(
    ("samples", "value"),
    [
        (["a"] * 8, 0.0),
        ([*"abcdefgh"], 1.0),
        (["a"] * 4 + ["b"] * 4, 1 / 3),  # ln 2 / ln 8
        (["a", "a", "b", "c"], 0.75),  # (1/2 ln 2 + 2 * 1/4 ln 4) / ln 4 = 1.5 ln 2 / 2 ln 2
        ([None] * 4, 1.0),
        ([""] * 4, 0.0),  # an answer of punctuation alone has an empty form, and is an answer
        (["a", "a", None, None], 0.75),  # as with b and c
    ],
)
def test_by_hand(samples, value):
    assert normalized_entropy(samples) == pytest.approx(value, abs=1e-15)


def group_sizes(total: int, largest: int) -> Iterator[list[int]]:
    """Yield every way to divide `total` answers into groups of at most `largest`, largest group first."""
    if total == 0:
        yield []
    for size in range(min(total, largest), 0, -1):
        yield from ([size, *rest] for rest in group_sizes(total - size, size))


@pytest.mark.parametrize("k", [2, 8, 12, 16, 24])
def test_equal_entropies_of_different_groups_are_equal_floats_and_others_are_not(k):
    """K ln K minus K times the entropy is the sum of n ln n, whose exponential is the integer product of n^n."""
    found = defaultdict(set)
    for sizes in group_sizes(k, k):
        samples = [str(group) for group, size in enumerate(sizes) for _ in range(size)]
        found[math.prod(size**size for size in sizes)].add(normalized_entropy(samples))
    assert all(len(values) == 1 for values in found.values())
    ordered = [value for _, (value,) in sorted(found.items(), reverse=True)]
    assert ordered == sorted(set(ordered))
    assert (ordered[0], ordered[-1]) == (0.0, 1.0)


def test_more_agreement_is_a_higher_score_and_the_committed_answer_is_not_read():
    answers = sampled(
        ("liver", ["Liver", "liver", "the liver", "livers"]),
        ("heart", ["liver", "liver", "lung", "lung"]),
        (None, [".", ".", "liver", "lung"]),
    )
    found = semantic_uncertainty.score(synthetic.reader("readers.semantic_uncertainty", PLATT, {"k": 4}), answers)
    assert found.score == pytest.approx([0.0, -0.5, -1.0], abs=1e-15)  # ln 2 / ln 4
    assert not np.signbit(found.score[0])
    assert found.confidence == pytest.approx(1 / (1 + np.exp(1 - 2 * found.score)), abs=1e-15)
