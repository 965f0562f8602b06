import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.evaluation.metrics import grounding
from tests.evaluation.metrics import literal
from tests.evaluation.metrics.samples import LEVELS

# confidence real, donor; correct real, donor; canonical answers real, donor
ROWS = [
    (0.9, 0.2, True, False, "yes", "no"),  # decisive, won
    (0.4, 0.4, True, False, "lung", "lung"),  # decisive and strict, tied
    (0.3, 0.7, True, False, "ct", "ct"),  # decisive and strict, lost
    (0.8, 0.1, True, True, "mri", "ct"),  # both right
    (0.1, 0.9, False, False, None, None),  # both wrong
    (0.2, 0.6, False, True, "no", "no"),  # flips the other way
]


def columns(rows):
    return [
        np.array(column, dtype=kind)
        for column, kind in zip(zip(*rows, strict=True), (float, float, bool, bool, object, object), strict=True)
    ]


def test_by_hand():
    real, donor, right, donor_right, answer, donor_answer = columns(ROWS)
    assert grounding.decisive(right, donor_right).tolist() == [True, True, True, False, False, False]
    assert grounding.natural_ccg_auc(real, donor, right, donor_right) == 0.5  # (1 + 1/2 + 0) / 3
    assert grounding.strict_ccg_auc(real, donor, right, donor_right, answer, donor_answer) == 0.25  # (1/2 + 0) / 2
    assert grounding.vrs(right, donor_right) == 2 / 6  # (4 - 2) / 6
    assert grounding.vbr(right, donor_right) == 0.5  # 3 / 6


def test_two_missing_answers_are_not_the_same_answer():
    assert grounding.strict_decisive([True] * 3, [False] * 3, ["", None, "a"], ["", None, "a"]).tolist() == [
        False,
        False,
        True,
    ]


def test_power_counts_distinct_images_of_the_mask():
    found = grounding.power([True, True, False, True], ["s1", "s1", "s2", "s3"], ["d1", "d2", "d3", "d2"])
    assert (found.pairs, found.source_images, found.donor_images) == (3, 2, 2)


@pytest.mark.parametrize(("sources", "donors"), [(30, 30), (29, 30), (30, 29)])
def test_thirty_images_on_a_side_are_enough(sources, donors):
    n = 60
    found = grounding.power([True] * n, [str(i % sources) for i in range(n)], [str(i % donors) for i in range(n)])
    assert (found.few_sources, found.few_donors) == (sources == 29, donors == 29)


pairs = st.lists(
    st.tuples(
        st.sampled_from(LEVELS), st.sampled_from(LEVELS), st.booleans(), st.booleans(),
        st.sampled_from(["a", "b", "", None]), st.sampled_from(["a", "b", "", None]),
    ),
    min_size=1,
    max_size=40,
)  # fmt: skip


@given(pairs, st.randoms())
def test_literal_definition_order_and_rescaling(rows, random):
    rows = [*rows, (0.6, 0.5, True, False, "a", "a")]  # so that both sets are never empty
    real, donor, right, donor_right, answer, donor_answer = columns(rows)
    natural = grounding.natural_ccg_auc(real, donor, right, donor_right)
    strict = grounding.strict_ccg_auc(real, donor, right, donor_right, answer, donor_answer)
    assert natural == pytest.approx(literal.ccg_auc(rows, strict=False), abs=1e-15)
    assert strict == pytest.approx(literal.ccg_auc(rows, strict=True), abs=1e-15)
    shuffled = list(rows)
    random.shuffle(shuffled)
    again = columns(shuffled)
    assert grounding.natural_ccg_auc(*again[:4]) == natural
    assert grounding.strict_ccg_auc(*again) == strict
    # only the sign counts: square both, swap both, make both constant
    assert grounding.natural_ccg_auc(real**2, donor**2, right, donor_right) == natural
    assert grounding.natural_ccg_auc(donor, real, right, donor_right) == pytest.approx(1 - natural, abs=1e-15)
    assert grounding.natural_ccg_auc(real * 0, donor * 0, right, donor_right) == 0.5
