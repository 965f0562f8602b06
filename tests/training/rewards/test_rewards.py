"""What every reward plugin fulfills, and rewards by hand; those of VL-Calibration are in test_vl_calibration.py."""

import math

import numpy as np
import pytest

from dualread import plugins
from dualread.training.rewards import base, dcpo, rlcr, rlvr, supported_claims
from dualread.training.rewards.base import verdicts

REWARDS = [plugins.load("rewards", name) for name in plugins.known("rewards")]


def completion(answer, confidence):
    return f"<answer>{answer}</answer><confidence>{confidence}</confidence>"


@pytest.mark.parametrize("reward", REWARDS, ids=lambda module: module.__name__)
def test_the_train_log_gets_accuracy_validity_and_confidence(reward):
    found = base.verdicts(["<answer>lung</answer>", ""], [["lung"], ["lung"]], reward.CONTRACT)
    # Columns that one training measures for its reward; other rewards ignore them.
    measured = {name: [None, None] for name in ("visual_certainty", "visual_kl", "visual_entropy")}
    measured |= {"reference_answers": [["lung"], ["lung"]], "state_confidence": [0.5, 0.5]}
    assert len(reward.reward(found, **measured)) == 2
    more = reward.terms(found, **measured) if hasattr(reward, "terms") else {}
    assert all(len(values) == 2 for values in more.values())
    terms = base.terms(found)
    assert not set(terms) & set(more)
    assert (terms["correct"], terms["valid"]) == ([1, 0], [0, 0])
    assert all(math.isnan(value) for value in terms["confidence"])


def test_the_reward_of_rlvr_is_correctness_plus_format():
    texts = [completion("The Lungs", 80), completion("lung", "often"), completion("heart", 100), "heart"]
    found = verdicts(texts, [["Lung"], ["Lung"], ["Lung"], ["Heart"]], rlvr.CONTRACT)
    # 1 + 0; 1 - .5; 0 + 0; 0 - .5 (no answer block, so not correct either)
    assert rlvr.reward(found, image=[None] * 4) == [1.0, 0.5, 0.0, -0.5]
    terms = base.terms(found)
    assert (terms["correct"], terms["valid"]) == ([1, 1, 0, 0], [1, 0, 1, 0])
    np.testing.assert_array_equal(terms["confidence"], [0.8, math.nan, 1.0, math.nan])


@pytest.mark.parametrize(
    ("text", "expected"),
    # z - (c - z)^2 + R_fmt; gold is "lung"
    [
        (completion("lung", "90"), 1 - 0.01),  # (.9 - 1)^2
        (completion("lung", "20"), 1 - 0.64),  # (.2 - 1)^2
        (completion("heart", "90"), 0 - 0.81),  # .9^2
        (completion("heart", "20"), 0 - 0.04),  # .2^2
        (completion("lung", "likely"), 1 - 0.25 - 0.5),  # c counts as .5: (.5 - 1)^2, and the format penalty
        (completion("heart", "101"), 0 - 0.25 - 0.5),
        # A valid confidence is scored even if the answer is invalid: z = 0, c = .3, R = 0 - .09 - .5
        ("<confidence>30</confidence>", -0.59),
    ],
)
def test_the_reward_of_rlcr(text, expected):
    assert rlcr.reward(verdicts([text], [["Lung"]], rlcr.CONTRACT)) == [pytest.approx(expected, abs=1e-15)]


def test_the_terms_of_rlcr_are_the_parts_of_its_reward():
    texts = [completion("lung", "90"), completion("lung", "likely"), completion("heart", "20")]
    terms = rlcr.terms(verdicts(texts, [["lung"]] * 3, rlcr.CONTRACT))
    assert terms == {"calibration": pytest.approx([-0.01, -0.25, -0.04])}


@pytest.mark.parametrize(
    ("gamma", "expected"),
    # Two prompts, interleaved. "a" is answered correctly in two of three completions, "b" in none of two.
    # Target gamma * accuracy + (1 - gamma) * z. With gamma .5: a right 1/3 + 1/2 = 5/6, a wrong 1/3, b 0:
    # -|.8 - 5/6| = -1/30; -|.4 - 0|; -|.9 - 1/3| = -17/30; -|.5 - 0| (invalid counts as .5); -|.5 - 5/6| = -1/3
    # gamma 0: the target is the completion's own z; gamma 1: its group's accuracy.
    [
        (0.5, [-1 / 30, -0.4, -17 / 30, -0.5, -1 / 3]),
        (0.0, [-0.2, -0.4, -0.9, -0.5, -0.5]),
        (1.0, [-(0.8 - 2 / 3), -0.4, -(0.9 - 2 / 3), -0.5, -(2 / 3 - 0.5)]),
    ],
)
def test_the_calibration_reward_of_dcpo_with_interleaved_groups(gamma, expected):
    said = [("lung", "80"), ("no", "40"), ("heart", "90"), ("maybe", "high"), ("lung", "50")]
    gold = [["lung"], ["yes"], ["lung"], ["yes"], ["lung"]]
    found = verdicts([completion(*of) for of in said], gold, dcpo.CONTRACT)
    assert dcpo.calibration_reward(found, groups=[*"ababa"], gamma=gamma) == pytest.approx(expected)


def test_the_reward_of_reports_is_the_share_of_supported_sentences_plus_format():
    stated = "<confidence>80</confidence>"
    completions = [
        f"<answer>Axial CT image. Image of the head. There is evidence of no lesion.</answer>{stated}",
        f"<answer>Axial CT image. Image of the head. One lesion in this image. Nothing known.</answer>{stated}",
        "<answer>CT in axial plane.</answer>",
        f"<answer>Coronal CT image.</answer>{stated}",
        "Axial CT image.",
    ]
    references = [["Axial CT image. The head is shown.\nNo lesion in this image."]] * len(completions)
    graded = verdicts(completions, references, supported_claims.CONTRACT)
    # 3/3; 2/4, as an unknown sentence counts; 1/1 - .5; 0/1; no answer block: 0 - .5
    assert supported_claims.reward(graded, reference_answers=references) == [1.0, 0.5, 0.5, 0.0, -0.5]
