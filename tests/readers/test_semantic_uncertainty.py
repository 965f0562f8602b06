import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from dualread.readers import semantic_uncertainty
from dualread.readers.semantic_uncertainty import normalized_entropy
from tests.readers import synthetic
from tests.readers.test_self_consistency import PLATT, sampled

# None is an invalid sample, a group of its own.
SAMPLES = st.lists(st.sampled_from(["liver", "lung", "heart", None]), min_size=2, max_size=9)


@pytest.mark.parametrize(
    ("samples", "value"),
    [
        (["a"] * 8, 0.0),
        ([*"abcdefgh"], 1.0),
        (["a"] * 4 + ["b"] * 4, 1 / 3),  # ln 2 / ln 8
        (["a", "a", "b", "c"], 0.75),  # (1/2 ln 2 + 2 * 1/4 ln 4) / ln 4 = 1.5 ln 2 / 2 ln 2
        ([None] * 4, 1.0),
        (["a", "a", None, None], 0.75),  # as with b and c
    ],
)
def test_by_hand(samples, value):
    assert normalized_entropy(samples) == pytest.approx(value, abs=1e-15)


@given(SAMPLES)
def test_is_scipys_entropy_of_the_group_sizes(samples):
    names = [answer or f"invalid {i}" for i, answer in enumerate(samples)]
    sizes = np.unique(names, return_counts=True)[1]
    assert normalized_entropy(samples) == pytest.approx(entropy(sizes) / entropy(np.ones(len(samples))), abs=1e-14)


@given(SAMPLES, st.randoms(use_true_random=False))
def test_the_order_of_the_samples_changes_no_bit(samples, random):
    shuffled = random.sample(samples, len(samples))
    assert normalized_entropy(shuffled) == normalized_entropy(samples)


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
