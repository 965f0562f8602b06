"""Replicates against the literal loop: draw images, repeat their rows, compute the metric anew."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dualread.errors import UndefinedMetricError
from dualread.evaluation import estimates
from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.join import Evaluated, evaluate
from dualread.evaluation.replicates import ANSWERS, INTERVALS, replicates
from dualread.evaluation.statistics.bootstrap import ImageDraws
from tests.evaluation.cells import control_cell


@pytest.fixture(scope="module")
def evaluated():
    questions, donors, grades, predictions = control_cell()
    return evaluate(where="slake/test", manifest=questions, pairs=donors, graded=grades, predictions=predictions)


@pytest.fixture(scope="module")
def draws(evaluated):
    images = tuple(sorted(set(evaluated.answers["image_id"])))
    return ImageDraws(names=("study", "slake", "test"), image_ids=images, replicates=60)


def weights_of(draws):
    return [dict(zip(draws.image_ids, column, strict=True)) for chunk in draws.weights() for column in chunk.T]


def on_repeated_rows(metric, frame, times):
    rows = np.repeat(np.arange(len(frame)), np.asarray(times, dtype=int))
    try:
        return estimates.ANSWER_METRICS[metric](Columns.of(frame[rows]))
    except UndefinedMetricError:
        return np.nan


@pytest.mark.parametrize("metric", ANSWERS)
def test_a_replicate_is_the_metric_of_the_resampled_rows(evaluated, draws, metric):
    expected = [
        on_repeated_rows(metric, evaluated.answers, [own[name] for name in evaluated.answers["image_id"]])
        for own in weights_of(draws)
    ]
    found = replicates(CellColumns.of(evaluated), draws)[metric]
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.nanmax(np.abs(found - expected)) < 1e-12


def test_differences_of_methods_are_those_of_the_loop(evaluated, draws):
    rng = np.random.default_rng(5)
    other = replace(evaluated, answers=evaluated.answers.with_columns(confidence=pl.Series(rng.random(40))))
    for metric in ANSWERS:
        expected = [
            on_repeated_rows(metric, evaluated.answers, times) - on_repeated_rows(metric, other.answers, times)
            for own in weights_of(draws)
            for times in [[own[name] for name in evaluated.answers["image_id"]]]
        ]
        found = replicates(CellColumns.of(evaluated), draws)[metric] - replicates(CellColumns.of(other), draws)[metric]
        assert np.abs(found - expected).max() < 1e-12, metric


def test_every_interval_has_replicates_and_rows_in_another_order_the_same_bits(evaluated, draws):
    found = replicates(CellColumns.of(evaluated), draws)
    assert set(found) == set(INTERVALS)
    turned = Evaluated(**{name: frame.reverse() for name, frame in evaluated.__dict__.items()})
    for name, values in replicates(CellColumns.of(turned), draws).items():
        assert values.tobytes() == found[name].tobytes(), name


def test_without_shuffled_images_there_are_no_replicates_of_them(evaluated, draws):
    found = replicates(CellColumns.of(replace(evaluated, shuffled="none")), draws)
    assert set(found) == set(ANSWERS)
