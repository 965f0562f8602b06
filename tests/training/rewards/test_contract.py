"""The contract that every reward plugin fulfills."""

import math

import pytest

from dualread import plugins
from dualread.training.rewards import base

REWARDS = [plugins.load("rewards", name) for name in plugins.known("rewards")]


@pytest.mark.parametrize("reward", REWARDS, ids=lambda module: module.__name__)
def test_the_train_log_gets_accuracy_validity_and_confidence(reward):
    found = base.verdicts(["<answer>lung</answer>", ""], [["lung"], ["lung"]], reward.CONTRACT)
    # Columns that one training measures for its reward; other rewards ignore them.
    measured = {name: [None, None] for name in ("visual_certainty", "visual_kl", "visual_entropy")}
    measured["reference_answers"] = [["lung"], ["lung"]]
    measured["state_confidence"] = [0.5, 0.5]
    assert len(reward.reward(found, **measured)) == 2
    more = reward.terms(found, **measured) if hasattr(reward, "terms") else {}
    assert all(len(values) == 2 for values in more.values())
    terms = base.terms(found)
    assert not set(terms) & set(more)
    assert terms["correct"] == [1, 0]
    assert terms["valid"] == [0, 0]
    assert all(math.isnan(value) for value in terms["confidence"])
