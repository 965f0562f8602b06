"""The contract that every reward plugin fulfills."""

import pytest

from dualread import plugins
from dualread.grading.parse import parse

REWARDS = [plugins.load("rewards", name) for name in plugins.known("rewards")]


@pytest.mark.parametrize("reward", REWARDS, ids=lambda module: module.__name__)
def test_the_train_log_gets_accuracy_validity_and_confidence(reward):
    parse("", reward.CONTRACT)  # a known contract
    # Columns that one trainer measures for its reward; other rewards ignore them.
    measured = {name: [None, None] for name in ("visual_certainty", "visual_kl", "visual_entropy")}
    terms = reward.terms(["<answer>lung</answer>", ""], [["lung"], ["lung"]], **measured)
    assert {"correct", "valid", "confidence"} <= set(terms)
    assert all(len(values) == 2 for values in terms.values())
    assert terms["correct"] == [1, 0]
    assert terms["valid"] == [0, 0]
