import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.training.rewards import rlcr
from dualread.training.rewards.base import verdicts


def completion(answer, confidence):
    return f"<answer>{answer}</answer><confidence>{confidence}</confidence>"


def reward(completions, references):
    return rlcr.reward(verdicts(completions, references, rlcr.CONTRACT))


@pytest.mark.parametrize(
    ("answer", "confidence", "expected"),
    # z - (c - z)^2 + R_fmt; gold is "lung"
    [
        ("lung", "90", 1 - 0.01),  # (.9 - 1)^2
        ("lung", "20", 1 - 0.64),  # (.2 - 1)^2
        ("heart", "90", 0 - 0.81),  # .9^2
        ("heart", "20", 0 - 0.04),  # .2^2
        ("lung", "likely", 1 - 0.25 - 0.5),  # c counts as .5: (.5 - 1)^2, and the format penalty
        ("heart", "101", 0 - 0.25 - 0.5),
    ],
)
def test_reward(answer, confidence, expected):
    assert reward([completion(answer, confidence)], [["Lung"]]) == [pytest.approx(expected, abs=1e-15)]


def test_a_valid_confidence_is_scored_even_if_the_answer_is_invalid():
    # No answer block: z = 0, c = .3, R = 0 - .09 - .5
    assert reward(["<confidence>30</confidence>"], [["lung"]]) == [pytest.approx(-0.59)]


def test_terms_are_the_parts_of_the_reward():
    texts = [completion("lung", "90"), completion("lung", "likely"), completion("heart", "20")]
    terms = rlcr.terms(verdicts(texts, [["lung"]] * 3, rlcr.CONTRACT))
    assert terms == {"calibration": pytest.approx([-0.01, -0.25, -0.04])}


@given(percent=st.integers(0, 100))
def test_stating_the_true_probability_has_the_highest_reward(percent):
    """For an answer that is correct `percent` times in a hundred, no other statement has a higher mean reward."""

    def expected(stated):
        right, wrong = reward([completion("lung", stated), completion("heart", stated)], [["lung"]] * 2)
        return (percent * right + (100 - percent) * wrong) / 100

    assert max(range(101), key=expected) == percent
