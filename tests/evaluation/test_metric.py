"""What is declared of metrics."""

from typing import get_args

import polars as pl
import pytest

from dualread.evaluation import controls
from dualread.evaluation.answer_metrics import (
    ANSWER_METRICS,
    CHANNEL_METRICS,
    FURTHER_METRICS,
    NOISE_FLOOR,
    SQUARED_CALIBRATION_ERROR,
    WITH_REPLICATES,
)
from dualread.evaluation.columns import Columns
from dualread.evaluation.explained import COUNTS, METRICS
from dualread.evaluation.metric import Metric
from dualread.evaluation.pair_metrics import PAIR_METRICS
from dualread.schema.metrics import FurtherCompared, FurtherMetric

ALL = [*ANSWER_METRICS.values(), *FURTHER_METRICS.values(), *PAIR_METRICS.values()]
ALL += [*controls.FIXED_METRICS.values(), *controls.SHUFFLED_METRICS.values(), *controls.CLAIM_METRICS.values()]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (Metric(name="x", head="AUROC", better="higher"), "AUROC↑"),
        (Metric(name="x", head="Brier", better="lower"), "Brier↓"),
        (SQUARED_CALIBRATION_ERROR, "CE²↓"),
        (Metric(name="x", head="Slope"), "Slope"),
        (Metric(name="x", better="higher"), ""),
    ],
)
def test_an_arrow_says_what_is_better(metric, expected):
    assert metric.headed() == expected
    assert metric.headed("") == ""


def test_images_are_counted_that_have_a_right_answer_and_a_wrong_one():
    answers = Columns.of(pl.DataFrame({"cluster_id": ["a", "a", "b", "c"], "correct": [True, False, False, False]}))
    counts = [ANSWER_METRICS[f"images_with_{kind}"].value(answers) for kind in ("right", "wrong")]
    assert counts == [1.0, 3.0]


def test_a_metric_has_one_declaration_and_a_meaning_where_people_meet_it():
    names = [metric.name for metric in ALL]
    assert len(set(names)) == len(names)
    known = {*ANSWER_METRICS, *PAIR_METRICS, *FURTHER_METRICS, NOISE_FLOOR} - set(CHANNEL_METRICS)
    assert not COUNTS.keys() & METRICS.keys()
    assert {*COUNTS, *METRICS} == known  # those of channels need what a plain table has not


def test_what_a_study_may_name_besides_is_what_there_is():
    assert set(get_args(FurtherMetric)) == set(FURTHER_METRICS)
    assert not set(FURTHER_METRICS) & set(ANSWER_METRICS)
    assert all(metric.head for metric in FURTHER_METRICS.values())
    neither = [name for name, metric in FURTHER_METRICS.items() if not (metric.better or metric.is_of_actor)]
    assert neither == ["confidence_entropy"]  # like the number of different confidences


def test_what_is_compared_can_be_and_has_a_head_in_tables():
    for metric in ALL:
        if getattr(metric, "is_stored", False):
            assert metric.head, metric.name
            assert metric.better, metric.name
            assert getattr(metric, "kernel", None) or getattr(metric, "of_pairs", None), metric.name
    assert set(get_args(FurtherCompared)) == set(FURTHER_METRICS) & set(WITH_REPLICATES)
