"""What is declared of metrics."""

import pytest

from dualread.evaluation import controls
from dualread.evaluation.answer_metrics import ANSWER_METRICS, SQUARED_CALIBRATION_ERROR
from dualread.evaluation.channel import CHANNEL_METRICS
from dualread.evaluation.metric import Metric
from dualread.evaluation.pair_metrics import PAIR_METRICS

ALL = [*ANSWER_METRICS.values(), *PAIR_METRICS.values()]
ALL += [*controls.FIXED_METRICS.values(), *controls.SHUFFLED_METRICS.values()]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (Metric(name="x", head="AUROC", better="higher"), r"AUROC$\uparrow$"),
        (Metric(name="x", head="Brier", better="lower"), r"Brier$\downarrow$"),
        (SQUARED_CALIBRATION_ERROR, r"CE$^2\downarrow$"),
        (Metric(name="x", head="Slope"), "Slope"),
        (Metric(name="x", better="higher"), ""),
    ],
)
def test_an_arrow_says_what_is_better(metric, expected):
    assert metric.headed() == expected
    assert metric.headed("") == ""


def test_a_metric_has_one_declaration_and_a_meaning_where_people_meet_it():
    names = [metric.name for metric in ALL]
    assert len(set(names)) == len(names)
    known = {name for name, metric in {**ANSWER_METRICS, **PAIR_METRICS}.items() if metric.meaning}
    assert known == {*ANSWER_METRICS, *PAIR_METRICS} - set(CHANNEL_METRICS)  # these need what a plain table has not


def test_what_is_compared_can_be_and_has_a_head_in_tables():
    for metric in ALL:
        if getattr(metric, "is_stored", False):
            assert metric.head, metric.name
            assert metric.better, metric.name
            assert getattr(metric, "kernel", None) or getattr(metric, "of_pairs", None), metric.name
