"""What is declared of metrics."""

from typing import get_args

import polars as pl
import pytest

from dualread.evaluation import answer_metrics, controls
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


def channel(*values):
    schema = {"confidence": pl.Float64, "imputed": pl.Boolean}
    return Columns.of(pl.DataFrame(values, schema=schema, orient="row"))


def test_the_channel_by_hand():
    # Of 5 rows one is imputed; the valid ones are 0, 1, 1 and .5: three values, three of four at an end.
    rows = channel((0.0, False), (1.0, False), (0.5, True), (1.0, False), (0.5, False))
    assert answer_metrics.imputed_share(rows) == 0.2
    assert answer_metrics.unique_confidences(rows) == 3.0
    assert answer_metrics.endpoint_share(rows) == 0.75
    assert answer_metrics.imputed_share(channel((0.5, True))) == 1.0
    # Shares 1/4, 1/2 and 1/4: 2 bits / 4 + 1 bit / 2 + 2 bits / 4.
    assert answer_metrics.confidence_entropy(rows) == 1.5
    assert answer_metrics.confidence_entropy(channel(*[(0.3, False)] * 7)) == 0.0
    # An imputed half is no value of the channel, and what is near an end is not at it.
    assert answer_metrics.unique_confidences(channel((0.5, True), (0.25, False))) == 1.0
    assert answer_metrics.endpoint_share(channel((0.5, True), (1.0, False))) == 1.0
    nearly = channel((1.0 - 2**-53, False), (5e-324, False), (1.0, False))
    assert answer_metrics.unique_confidences(nearly) == 3.0
    assert answer_metrics.endpoint_share(nearly) == pytest.approx(1 / 3)
