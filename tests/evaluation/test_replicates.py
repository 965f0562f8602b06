"""Replicates against the literal loop: draw images, repeat their rows, compute the metric anew."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dualread.errors import UndefinedMetricError
from dualread.evaluation import estimates
from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.join import Evaluated, evaluate
from dualread.evaluation.replicates import ANSWERS, INTERVALS, PAIRS, TWO_WAY, replicates
from dualread.evaluation.statistics.bootstrap import ImageDraws
from tests.evaluation.cells import control_cell

METRICS = estimates.ANSWER_METRICS | {name: metric for name, (metric, _) in estimates.PAIR_METRICS.items()}


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
        return METRICS[metric](Columns.of(frame[rows]))
    except UndefinedMetricError:
        return np.nan


@pytest.mark.parametrize("metric", [*ANSWERS, *PAIRS, *TWO_WAY.values()])
def test_a_replicate_is_the_metric_of_the_resampled_rows(evaluated, draws, metric):
    frame = evaluated.answers if metric in ANSWERS else evaluated.pairs
    image = "image_id" if metric in ANSWERS else "source_image_id"
    expected = []
    for own, of_donors in zip(weights_of(draws), weights_of(draws.of_donors()), strict=True):
        times = np.array([own[name] for name in frame[image]])
        if metric in TWO_WAY.values():
            times *= [of_donors[name] for name in frame["donor_image_id"]]
        expected.append(on_repeated_rows(metric, frame, times))
    found = replicates(CellColumns.of(evaluated), draws)[metric]
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.nanmax(np.abs(found - expected)) < 1e-12


@pytest.mark.parametrize("share", ["some", "all"])
def test_donors_without_questions_are_resampled_by_themselves(evaluated, draws, share):
    """The first donor image, or every one, is not an image of the manifest."""
    donors = evaluated.pairs["donor_image_id"]
    known = {donors[0]} if share == "some" else set(donors)
    pairs = evaluated.pairs.with_columns(donor_image_id=donors.replace({name: f"other-{name}" for name in known}))
    wider = replace(draws, donors_only=tuple(sorted(f"other-{name}" for name in known)))
    images = pairs.select("source_image_id", "donor_image_id").rows()
    found = replicates(CellColumns.of(replace(evaluated, pairs=pairs)), wider)
    for metric in PAIRS:
        assert found[metric].tobytes() == replicates(CellColumns.of(evaluated), draws)[metric].tobytes()
        expected = [
            on_repeated_rows(metric, pairs, [own[source] * of_donors[donor] for source, donor in images])
            for own, of_donors in zip(weights_of(wider), weights_of(wider.of_donors()), strict=True)
        ]
        assert np.array_equal(np.isnan(found[TWO_WAY[metric]]), np.isnan(expected))
        assert np.nanmax(np.abs(found[TWO_WAY[metric]] - expected)) < 1e-12


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


def test_without_pairs_there_are_no_replicates_of_pairs(evaluated, draws):
    found = replicates(CellColumns.of(replace(evaluated, pairs="none", fixed="none", shuffled="none")), draws)
    assert set(found) == set(ANSWERS)


def test_resampling_donors_too_changes_the_interval_and_not_the_estimate(evaluated, draws):
    rows = {(row["subset"], row["metric"]): row for row in estimates.estimate(CellColumns.of(evaluated), draws)[0]}
    for name in PAIRS:
        one, two = rows["all", name], rows["all", TWO_WAY[name]]
        assert (one["estimate"], one["n"], one["n_clusters"]) == (two["estimate"], two["n"], two["n_clusters"])
        assert (one["low"], one["high"]) != (two["low"], two["high"])
