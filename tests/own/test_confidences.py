import math

import pytest

from dualread.data.logs.base import Sample, Score
from dualread.own.log_confidences import (
    Stated,
    answer_of,
    answer_to,
    choice_likelihood,
    kinds_of,
    self_consistency,
    sequence_likelihood,
)


def tokens(*pairs):
    return tuple((text.encode(), log_prob) for text, log_prob in pairs)


def spelled(*pairs, completion=None):
    whole = "".join(text for text, _ in pairs)
    return Sample(sample_id="q", completions=(whole if completion is None else completion,), tokens=tokens(*pairs))


def drawn(*completions):
    return Sample(sample_id="q", completions=completions)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("the liver", "the liver"),
        ("<answer>liver</answer>", "liver"),
        ("<answer>liver", None),
        ("liver <confidence>80</confidence>", None),
    ],
)
def test_an_answer_is_a_block_or_a_completion_without_tags(completion, answer):
    assert answer_of(completion) == answer


def test_the_likelihood_of_a_completion_is_the_geometric_mean_of_its_tokens():
    # (.5 * .25) ^ (1/2) = .125 ^ .5
    assert sequence_likelihood(spelled(("the ", math.log(0.5)), ("liver", math.log(0.25))), None) == pytest.approx(
        math.sqrt(0.125)
    )


def test_only_the_tokens_of_the_answer_count():
    pairs = [("<answer>", -9.0), ("left", math.log(0.5)), (" lung", math.log(0.125)), ("</answer>", -9.0)]
    assert sequence_likelihood(spelled(*pairs), None) == pytest.approx(0.25)  # (.5 * .125) ^ (1/2)


def test_tokens_outside_the_completion_do_not_count():
    pairs = [("<think>yes</think>", -9.0), ("yes", math.log(0.5)), ("<|im_end|>", -9.0)]
    assert sequence_likelihood(spelled(*pairs, completion="yes"), None) == pytest.approx(0.5)


def test_tokens_may_split_a_letter():
    sample = Sample(sample_id="q", completions=("ä",), tokens=((b"\xc3", math.log(0.5)), (b"\xa4", math.log(0.125))))
    assert sequence_likelihood(sample, None) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "sample",
    [
        spelled(("no", -0.5), completion="yes"),
        spelled(("<answer>", -0.5), ("no", -0.5)),
        spelled(("yes", 0.5)),
        spelled(("yes", math.nan)),
        spelled(("", -0.5)),
    ],
)
def test_tokens_that_spell_no_answer_have_no_likelihood(sample):
    assert sequence_likelihood(sample, None) is None


def test_consistency_is_the_share_of_further_draws_that_agree():
    assert self_consistency(drawn("Liver", "the liver", "kidney", "liver."), None) == pytest.approx(2 / 3)
    assert self_consistency(drawn("<answer>yes</answer>", "<answer>Yes</answer> so", "yes, <answer>"), None) == 0.5
    assert self_consistency(drawn("<answer>", "<answer>"), None) == 0.0  # an invalid answer agrees with none
    assert self_consistency(drawn("yes"), None) is None


def test_answers_that_the_score_read_are_compared():
    sample = drawn("I say B", "B of course", "A")
    assert self_consistency(sample, Score(value=1, answer="B", draws=("B", "A"))) == 0.5
    assert self_consistency(sample, Score(value=1, answer="B")) is None  # which it reads in the others is not known
    assert self_consistency(sample, Score(value=1, answer="I say B.")) == 0.0  # it judges the whole completion


def test_a_score_of_another_draw_judges_no_confidence_of_the_first():
    sample = Sample(
        sample_id="q",
        completions=("<answer>yes</answer><confidence>80</confidence>",) * 2,
        tokens=tokens(("yes", -1.0)),
    )
    score = Score(value=1, answer="no", of_first=False)
    assert [kind.of(sample, score) for kind in kinds_of(Stated(scale=100, note=None)).values()] == [None] * 4


def test_reasoning_that_mentions_the_tags_does_not_count():
    completion = "<think>I need <answer>X</answer> and <confidence>NN</confidence></think><answer>left</answer>"
    assert answer_of(completion) == "left"
    assert answer_of("<think>so</think>left") == "left"
    pairs = [("<think>an <answer></think>", -9.0), ("<answer>", -9.0), ("left", math.log(0.5)), ("</answer>", -9.0)]
    assert sequence_likelihood(spelled(*pairs), None) == pytest.approx(0.5)
    assert self_consistency(drawn(completion, "<think>or right</think><answer>Left</answer>", "right"), None) == 0.5


@pytest.mark.parametrize(
    ("completion", "answer"),
    [("B. Right lung", "right lung"), ("<answer>(b)</answer>", "right lung"), ("lung", "lung"), ("<answer>", None)],
)
def test_an_answer_that_names_an_option_is_this_option(completion, answer):
    sample = Sample(sample_id="q", options=("left lung", "right lung"))
    assert answer_to(sample, completion) == answer


def test_draws_that_name_one_option_agree():
    sample = Sample(sample_id="q", completions=("A. left", "A", "The left", "B"), options=("left", "right"))
    assert self_consistency(sample, None) == pytest.approx(2 / 3)


def test_the_probability_of_a_choice_is_a_softmax():
    sample = Sample(sample_id="q", choices=(-1000.0, -1000.0 + math.log(3)))
    assert choice_likelihood(sample, Score(value=1, choice=1)) == pytest.approx(0.75)  # 3 / (1 + 3)
    assert choice_likelihood(sample, Score(value=1, choice=0)) == pytest.approx(0.25)
    assert choice_likelihood(sample, Score(value=1)) is None
    assert choice_likelihood(sample, None) is None
