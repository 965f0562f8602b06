import math

from dualread.training.rewards import base, rlvr
from dualread.training.rewards.base import verdicts

COMPLETIONS = [
    "<answer>The Lungs</answer><confidence>80</confidence>",
    "<answer>lung</answer><confidence>often</confidence>",
    "<answer>heart</answer><confidence>100</confidence>",
    "heart",
]
GOLD = [["Lung"], ["Lung"], ["Lung"], ["Heart"]]


def reward(completions, references, **columns):
    return rlvr.reward(verdicts(completions, references, rlvr.CONTRACT), **columns)


def test_reward_is_correctness_plus_format():
    # 1 + 0; 1 - .5; 0 + 0; 0 - .5 (no answer block, so not correct either)
    assert reward(COMPLETIONS, GOLD, image=[None] * 4) == [1.0, 0.5, 0.0, -0.5]


def test_terms_are_the_parts_of_the_reward():
    terms = base.terms(verdicts(COMPLETIONS, GOLD, rlvr.CONTRACT))
    assert terms["correct"] == [1, 1, 0, 0]
    assert terms["valid"] == [1, 0, 1, 0]
    assert terms["confidence"][0] == 0.8
    assert [math.isnan(value) for value in terms["confidence"]] == [False, True, False, True]
