import math

import numpy as np
import pytest

from dualread.training.rewards import vl_calibration
from dualread.training.rewards.base import verdicts
from dualread.training.rewards.vl_calibration import has_five_parts, token_weights, visual_certainty

GOLD = ["left lung"]


def completion(answer="left lung", vision=8, reasoning=8, seen="a mass", **parts):
    blocks = {
        "vision": seen,
        "reasoning": "it is bright",
        "answer": answer,
        "analysis": "clear",
        "confidence": f"<vision_confidence>{vision}</vision_confidence>"
        f"<reasoning_confidence>{reasoning}</reasoning_confidence>",
    } | parts
    return "\n".join(f"<{tag}>{text}</{tag}>" for tag, text in blocks.items() if text is not None)


def graded(*texts):
    return verdicts(texts, [GOLD] * len(texts), vl_calibration.CONTRACT)


def reward(text, certainty):
    return vl_calibration.reward(graded(text), visual_certainty=[certainty], image=[None])[0]


@pytest.mark.parametrize(
    ("text", "certainty", "value"),
    [
        # Both confidences c: Phi = c. R = z - 2 (c - z)^2 + .4 fmt - .4 (c - .5)^2, and .4 * .3^2 = .036.
        (completion(), 0.5, 1 - 0.08 + 0.4 - 0.036),
        (completion(vision=2, reasoning=2), 0.5, 1 - 1.28 + 0.4 - 0.036),
        (completion("heart"), 0.5, 0 - 1.28 + 0.4 - 0.036),
        (completion("heart", vision=2, reasoning=2), 0.5, 0 - 0.08 + 0.4 - 0.036),
        # Phi = 2 / (1/.8 + 1/.6) = .685714...; (1 - Phi)^2 = (.314286)^2 = .0987755; .4 (.8 - .9)^2 = .004
        (completion(vision=8, reasoning=6), 0.9, 1 - 2 * 0.09877551 + 0.4 - 0.004),
        # 0 in one of them: Phi = 0
        (completion(vision=0, reasoning=10), 0.0, 1 - 2 + 0.4 - 0),
        # no analysis: fmt = 0, nothing else changes
        (completion(analysis=None), 0.5, 1 - 0.08 + 0 - 0.036),
        (completion("heart", analysis=None), 0.5, 0 - 1.28 + 0 - 0.036),
        # one confidence instead of two: not valid, both squares are 1
        (completion(confidence="9"), 0.5, 1 - 2 + 0 - 0.4),
        (completion("heart", confidence="9"), 0.5, 0 - 2 + 0 - 0.4),
        # no vision block, so no S: its square is 1
        (completion(seen=None), None, 1 - 0.08 + 0 - 0.4),
        # no answer is not correct
        (completion(answer=None), 0.5, 0 - 1.28 + 0 - 0.036),
        ("left lung", None, 0 - 2 + 0 - 0.4),
    ],
)
def test_rewards_by_hand(text, certainty, value):
    assert reward(text, certainty) == pytest.approx(value, abs=1e-7)


def test_terms_are_the_parts_of_the_reward():
    terms = vl_calibration.terms(
        graded(completion(vision=8, reasoning=6), completion("heart", seen=None, confidence="9")),
        visual_certainty=[0.7, None],
        visual_kl=[0.2, None],
        visual_entropy=[1.5, None],
        image=[None] * 2,
    )
    assert {name: values[0] for name, values in terms.items()} == {
        "five_parts": 1,
        "vision_confidence": 0.8,
        "visual_certainty": 0.7,
        "visual_kl": 0.2,
        "visual_entropy": 1.5,
        "no_vision_block": 0,
    }
    undefined = ("vision_confidence", "visual_certainty", "visual_kl", "visual_entropy")
    assert all(math.isnan(terms[name][1]) for name in undefined)
    assert [terms[name][1] for name in ("five_parts", "no_vision_block")] == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        completion(seen=" \n"),
        completion(analysis=""),
        completion(confidence="9"),
        completion(answer="<b>") + "<vision>again</vision>",
        completion().replace("<reasoning>", "<analysis>", 1),
        "\n".join(reversed(completion().splitlines())),
        completion(seen="a mass</vision>"),
        completion()[:-1],
    ],
)
def test_violations_of_the_five_parts(text):
    found = graded(completion(), f"Well. {completion()} Done.", text)
    assert [has_five_parts(verdict) for verdict in found] == [True, True, False]


def test_certainty_by_hand():
    # log KL - log H is 1 and 0: mean .5, population standard deviation .5, z = 1 and -1;
    # sigmoid(1) = 1 / (1 + 1/e) = .7310586, sigmoid(-1) = .2689414. Completions without a block are ignored.
    certainty = visual_certainty([math.e, None, 2.0], [1.0, None, 2.0])
    assert certainty == [pytest.approx(0.7310586, abs=1e-6), None, pytest.approx(0.2689414, abs=1e-6)]


def test_certainty_without_spread_is_a_half():
    assert visual_certainty([0.2, 0.4], [1.0, 2.0]) == [0.5, 0.5]  # both log(1/5)
    assert visual_certainty([0.0, 0.0], [0.0, 0.0]) == [0.5, 0.5]
    assert visual_certainty([None, 0.3], [None, 2.0]) == [None, 0.5]
    assert visual_certainty([None], [None]) == [None]


def test_token_weights_by_hand():
    # As above: 1.1 - .2 * .7310586 = .9537883 and 1.1 - .2 * .2689414 = 1.0462117
    assert token_weights(np.array([math.e, 2.0]), np.array([1.0, 2.0])) == pytest.approx(
        [0.9537883, 1.0462117], abs=1e-6
    )
    assert token_weights(np.array([0.3]), np.array([2.0])) == pytest.approx([1.0], abs=1e-12)
    # Entropies of 0, and a KL of 0: the scores are log(1 / 1e-8) and 0, so that z is 1 and -1 again.
    assert token_weights(np.array([1.0, 0.0]), np.zeros(2)) == pytest.approx([0.9537883, 1.0462117], abs=1e-6)
