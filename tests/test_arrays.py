"""The page docs/arrays.md: what it shows runs, and gives what scikit-learn and values computed by hand give."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import StratifiedKFold
from transformers import EvalPrediction

from tests.test_docs import shown


def test_the_page_of_plain_arrays_runs_and_says_what_it_gives(capsys):
    names: dict[str, Any] = {}
    for block in shown("docs/arrays.md", "python"):
        exec(compile(block, "docs/arrays.md", "exec"), names)
    said = capsys.readouterr().out.splitlines()
    confidence, correct = names["confidence"], names["correct"]
    assert float(said[0]) == pytest.approx(8 / 9)
    assert float(said[1]) == pytest.approx(brier_score_loss(correct, confidence))
    assert "one class" in said[4]
    assert float(said[5]) == names["ccg"] == 0.5  # of two decisive pairs, .9 > .4 and .7 < .75
    # cross_val_score by hand: four folds of LogisticRegression
    folds = StratifiedKFold(4).split(names["states"], names["is_correct"])
    by_hand = []
    for train, test in folds:
        fitted = LogisticRegression().fit(names["states"][train], names["is_correct"][train])
        by_hand.append(-brier_score_loss(names["is_correct"][test], fitted.predict_proba(names["states"][test])[:, 1]))
    assert names["scores"] == pytest.approx(by_hand)
    assert names["by_method"]["ours"] == 1.0  # .9 and .8 above .6 and .3
    assert names["by_method"].isna()["other"]  # one class
    logits = np.log([[0.8, 0.2], [0.3, 0.7], [0.45, 0.55]])
    prediction = EvalPrediction(predictions=logits, label_ids=np.array([0, 1, 0]))
    measured = names["compute_metrics"](prediction)
    assert measured["auroc"] == 1.0  # right with .8 and .7, wrong with .55
    assert measured["ece"] == pytest.approx((0.2 + 0.3 + 0.55) / 3)  # one answer per bin: |1 - .8|, |1 - .7|, |0 - .55|
