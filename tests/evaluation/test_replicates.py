"""Replicates against the literal loop: draw images, repeat their rows, compute the metric anew."""

import tracemalloc
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import scipy.stats

from dualread.errors import UndefinedMetricError
from dualread.evaluation.answer_metrics import ALL_METRICS, FURTHER_METRICS, WITH_REPLICATES
from dualread.evaluation.columns import CellColumns, Columns
from dualread.evaluation.controls import SHUFFLED_AUROC
from dualread.evaluation.join import Joined
from dualread.evaluation.replicates import replicates
from dualread.evaluation.statistics import t_replicates
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from tests.evaluation.spread import spread_as_t

CE2 = "squared_calibration_error"


@pytest.fixture(scope="module")
def draws(evaluated):
    images = tuple(sorted(set(evaluated.answers["cluster_id"])))
    return ClusterDraws(names=("study", "slake", "test"), cluster_ids=images, replicates=60)


def replicates_of(cell, draws):
    return replicates({"all": cell}, draws, FURTHER_METRICS)["all"]


def weights_of(draws):
    return [dict(zip(draws.cluster_ids, column, strict=True)) for chunk in draws.weights() for column in chunk.T]


def on_repeated_rows(metric, frame, times):
    rows = np.repeat(np.arange(len(frame)), np.asarray(times, dtype=int))
    try:
        return ALL_METRICS[metric].value(Columns.of(frame[rows]))
    except UndefinedMetricError:
        return np.nan


def by_loop(metric, answers, draws):
    every = on_repeated_rows(metric, answers, np.ones(len(answers)))
    if metric == CE2:
        images = sorted(set(answers["cluster_id"]))
        left = [on_repeated_rows(metric, answers, answers["cluster_id"] != image) for image in images]
        n = len(images)
        shift = (np.mean(left) - left) * np.sqrt((n - 1) / n)
        rarer = min(answers.filter(correct=kind)["cluster_id"].n_unique() for kind in (True, False))
        shift *= scipy.stats.t.ppf(0.975, rarer - 1) / scipy.stats.norm.ppf(0.975)
        return np.array(
            [every + sum((own[i] - 1) * s for i, s in zip(images, shift, strict=True)) for own in weights_of(draws)]
        )
    values = [
        on_repeated_rows(metric, answers, [own[name] for name in answers["cluster_id"]]) for own in weights_of(draws)
    ]
    if ALL_METRICS[metric].spread is None:
        return np.array(values)
    parts = [answers]
    if ALL_METRICS[metric].is_of_ranks:
        parts += [answers.filter("correct"), answers.filter(~answers["correct"])]
    images = [part["cluster_id"].n_unique() for part in parts]
    if metric in ("brier", "log_loss"):
        rarer = min(answers.filter(correct=kind)["cluster_id"].n_unique() for kind in (True, False))
        n = min(max(images), 2 * rarer + 1)
        return spread_as_t(values, every, n, max(images), has_end=metric == "brier")
    return spread_as_t(values, every, min(images), max(images))


@pytest.mark.parametrize("metric", WITH_REPLICATES)
def test_a_replicate_is_the_metric_of_the_resampled_rows_with_the_spread_of_t(evaluated, draws, metric, monkeypatch):
    if metric == "fpr_at_95_tpr":
        assert np.isnan(replicates_of(CellColumns.of(evaluated), draws)[metric]).all()  # 12 images, and not 20
        monkeypatch.setattr(t_replicates, "_FEWEST_AT_TPR", 12)
    if metric == "log_loss":
        assert np.isnan(replicates_of(CellColumns.of(evaluated), draws)[metric]).all()  # one is wrong with certainty
        clipped = evaluated.answers.with_columns(pl.col("confidence").clip(0.01, 0.99))
        evaluated = replace(evaluated, answers=clipped)
    expected = by_loop(metric, evaluated.answers, draws)
    found = replicates_of(CellColumns.of(evaluated), draws)[metric]
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.nanmax(np.abs(found - expected)) < 1e-9


def test_one_image_with_wrong_answers_gives_ranks_no_interval(evaluated, draws):
    first = evaluated.answers["cluster_id"] == evaluated.answers["cluster_id"][0]
    frame = evaluated.answers.with_columns(correct=~first)
    found = replicates_of(CellColumns.of(replace(evaluated, answers=frame)), draws)
    assert np.isnan(found["auroc"]).all()
    assert np.isnan(found["aurc"]).all()
    assert np.isnan(found[CE2]).all()
    two = evaluated.answers["cluster_id"].is_in(evaluated.answers["cluster_id"].unique().sort()[:2])
    of_two = replace(evaluated, answers=evaluated.answers.with_columns(correct=~two))
    for metric in ("auroc", "aurc", "aupr_errors", CE2):
        assert np.isfinite(replicates_of(CellColumns.of(of_two), draws)[metric]).any(), metric
    assert np.isnan(replicates_of(CellColumns.of(of_two), draws)["log_loss"]).all()  # nothing bounds a third image's
    # As of 12 independent rows: nothing is known of what other wrong answers would add.
    brier = on_repeated_rows("brier", frame, np.ones(len(frame)))
    found = replicates_of(CellColumns.of(replace(evaluated, answers=frame)), replace(draws, replicates=20_000))["brier"]
    ends = scipy.stats.beta.ppf([0.025, 0.975], [12 * brier, 12 * brier + 1], [13 - 12 * brier, 12 - 12 * brier])
    assert np.percentile(found, [2.5, 97.5]) == pytest.approx(ends, abs=0.01)


def test_every_interval_has_replicates_and_rows_in_another_order_the_same_bits(evaluated, draws):
    found = replicates_of(CellColumns.of(evaluated), draws)
    assert set(found) == {*WITH_REPLICATES, SHUFFLED_AUROC.name}
    tables = {name: frame.reverse() for name, frame in evaluated.__dict__.items() if isinstance(frame, pl.DataFrame)}
    turned = Joined(**{**evaluated.__dict__, **tables})
    for name, values in replicates_of(CellColumns.of(turned), draws).items():
        assert values.tobytes() == found[name].tobytes(), name


def test_without_answers_nothing_is_drawn(evaluated, draws):
    """Drawing them would take minutes, and 30 GB."""
    nothing = Joined(**{name: frame.clear() for name, frame in evaluated.__dict__.items()})
    many = replace(draws, cluster_ids=tuple(f"{k:04d}" for k in range(4000)), replicates=1_000_000)
    found = replicates_of(CellColumns.of(nothing), many)
    assert set(found) == {*WITH_REPLICATES, SHUFFLED_AUROC.name}
    assert all(len(values) == 1_000_000 and np.isnan(values).all() for values in found.values())


def test_few_answers_among_many_images_take_little_memory(evaluated, draws):
    others = {f"other-{k:05d}" for k in range(20_000)}
    many = replace(draws, cluster_ids=tuple(sorted({*draws.cluster_ids, *others})), replicates=300)
    tracemalloc.start()
    replicates_of(CellColumns.of(evaluated), many)
    assert tracemalloc.get_traced_memory()[1] < 2e7  # all draws at once: 300 * 20,000 * 8 bytes = 48 MB
    tracemalloc.stop()


def test_the_parts_of_a_cell_are_resampled_with_it_and_have_their_own_values(evaluated, draws):
    cell = CellColumns.of(evaluated)
    parts = {"all": cell, "open": cell.of_type("open"), "closed": cell.of_type("closed")}
    together = replicates(parts, draws, FURTHER_METRICS)
    for name, part in parts.items():
        for metric, values in replicates_of(part, draws).items():
            assert values.tobytes() == together[name][metric].tobytes(), (name, metric)
