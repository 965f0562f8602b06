import math

import numpy as np
import pytest

from dualread import evaluate
from dualread.apps.harnesses import lm_eval
from dualread.evaluation import metrics

ITEMS = [(0.9, 1), (0.8, 0), (0.7, 1), (0.2, 0)]


def test_values_by_hand():
    # Pairs (correct, wrong): .9>.8, .9>.2, .7<.8, .7>.2: 3 of 4.
    assert lm_eval.auroc(ITEMS) == 0.75
    # (.01 + .64 + .09 + .04) / 4
    assert lm_eval.brier(ITEMS) == pytest.approx(0.195)
    # Each answer is in a bin of its own: (.1 + .8 + .3 + .2) / 4
    assert lm_eval.ece(ITEMS) == pytest.approx(0.35)
    # Errors of the 1, 2, 3 and 4 most confident: 0, 1/2, 1/3, 1/2.
    assert lm_eval.aurc(ITEMS) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)


def test_options_give_the_share_of_the_likeliest_one():
    # exp(-1) : exp(-2) : exp(-3) = 1 : .3679 : .1353
    confidence, correct = lm_eval.choice_confidence([(-2.0, False), (-1.0, True), (-3.0, False)], gold=1)
    assert (confidence, correct) == (pytest.approx(1 / (1 + math.exp(-1) + math.exp(-2))), 1)
    # Per character, the second one is the least likely: -2 / 2, -1 / 1 against -3 / 6.
    assert lm_eval.choice_confidence([-2, -1, -3], gold=2, lengths=[2, 1, 6])[1] == 1
    assert lm_eval.choice_confidence([-2000.0, -1.0], gold=0) == (1.0, 0)
    with pytest.raises(ValueError, match="gold: 2, expected the number of one of 2 options"):
        lm_eval.choice_confidence([-2, -1], gold=2)


def test_images_count_once():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(size=200).round(3)
    items = [(float(p), int(rng.uniform() < p), f"image {k // 4}") for k, p in enumerate(confidence)]
    table = {name: [item[k] for item in items] for k, name in enumerate(("confidence", "correct", "image_id"))}
    rows = evaluate(table, replicates=0).metrics.filter(subset="all", metric="squared_calibration_error")
    assert lm_eval.squared_calibration_error(items) == rows["estimate"].item()
    alone = [item[:2] for item in items]
    assert lm_eval.squared_calibration_error(alone) != lm_eval.squared_calibration_error(items)
    assert lm_eval.ece(items) == lm_eval.ece(alone) == metrics.ece(table["confidence"], table["correct"])
    assert 0 < lm_eval.ece_noise_floor(items) < 0.3


def test_what_has_no_value_is_nan_with_a_reason_and_wrong_input_is_an_error(caplog):
    assert math.isnan(lm_eval.auroc([(0.9, 1), (0.8, 1)]))
    assert "auroc has no value" in caplog.text
    with pytest.raises(ValueError, match="confidence"):
        lm_eval.auroc([(1.9, 1), (0.8, 0)])
