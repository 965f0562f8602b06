import pytest

from dualread.training.rewards import dcpo
from dualread.training.rewards.base import verdicts


def completion(answer, confidence):
    return f"<answer>{answer}</answer><confidence>{confidence}</confidence>"


# Two prompts, interleaved. "a" is answered correctly in two of three completions, "b" in none of two.
GROUPS = ["a", "b", "a", "b", "a"]
GOLD = [["lung"], ["yes"], ["lung"], ["yes"], ["lung"]]
COMPLETIONS = [
    completion("lung", "80"),
    completion("no", "40"),
    completion("heart", "90"),
    completion("maybe", "high"),
    completion("lung", "50"),
]
FOUND = verdicts(COMPLETIONS, GOLD, dcpo.CONTRACT)


def test_calibration_reward_with_interleaved_groups():
    # Accuracy: a 2/3, b 0. Target gamma * accuracy + (1 - gamma) * z with gamma .5:
    #   a right 1/3 + 1/2 = 5/6, a wrong 1/3, b 0.
    # -|.8 - 5/6| = -1/30; -|.4 - 0|; -|.9 - 1/3| = -17/30; -|.5 - 0| (invalid counts as .5); -|.5 - 5/6| = -1/3
    found = dcpo.calibration_reward(FOUND, groups=GROUPS, gamma=0.5)
    assert found == pytest.approx([-1 / 30, -0.4, -17 / 30, -0.5, -1 / 3])


def test_gamma_mixes_the_two_targets():
    # gamma 0: the target is the completion's own z; gamma 1: its group's accuracy.
    own = dcpo.calibration_reward(FOUND, groups=GROUPS, gamma=0.0)
    assert own == pytest.approx([-0.2, -0.4, -0.9, -0.5, -0.5])
    shared = dcpo.calibration_reward(FOUND, groups=GROUPS, gamma=1.0)
    assert shared == pytest.approx([-(0.8 - 2 / 3), -0.4, -(0.9 - 2 / 3), -0.5, -(2 / 3 - 0.5)])


def test_groups_are_formed_by_name_and_not_by_position():
    order = [3, 0, 4, 1, 2]
    found = dcpo.calibration_reward(FOUND, groups=GROUPS, gamma=0.5)
    shuffled = dcpo.calibration_reward([FOUND[i] for i in order], groups=[GROUPS[i] for i in order], gamma=0.5)
    assert shuffled == [found[i] for i in order]
