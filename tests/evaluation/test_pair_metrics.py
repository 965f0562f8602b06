"""Means over pairs: their values pair by pair against the metrics, and intervals against leaving out rows."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import scipy

from dualread.evaluation import controls
from dualread.evaluation.columns import Columns
from dualread.evaluation.join import Joined
from dualread.evaluation.pair_metrics import (
    COMPARABLE,
    NATURAL_CCG_AUC,
    PAIR_METRICS,
    detectable,
    limits,
    pair_values,
    ties,
)
from dualread.evaluation.statistics.jackknife import Variance
from dualread.evaluation.statistics.t_intervals import logit_interval
from tests.evaluation.statistics.test_jackknife import literal_variance

METRICS = {**PAIR_METRICS, **controls.FIXED_METRICS, **controls.SHUFFLED_METRICS}
MEANS = {name: metric.of_pairs for name, metric in METRICS.items() if metric.of_pairs}
NATURAL = MEANS[NATURAL_CCG_AUC.name]


def frame_of(evaluated: Joined, name: str) -> pl.DataFrame:
    is_fixed, is_of_donors = name in controls.FIXED_METRICS, name in PAIR_METRICS
    frame = evaluated.pairs if is_of_donors else evaluated.fixed if is_fixed else evaluated.shuffled
    assert isinstance(frame, pl.DataFrame)
    return frame


@pytest.mark.parametrize("name", MEANS)
def test_a_metric_is_the_mean_of_its_values(evaluated, name):
    rows, of = Columns.of(frame_of(evaluated, name)), MEANS[name]
    mean = of.low + (of.high - of.low) * np.nanmean(of.values(rows))
    assert mean == pytest.approx(METRICS[name].value(rows), abs=1e-15)


@pytest.mark.parametrize("name", MEANS)
def test_an_interval_is_that_of_leaving_out_rows(evaluated, name):
    frame, of = frame_of(evaluated, name), MEANS[name]
    rows = Columns.of(frame)
    values, sides = of.values(rows), [frame["source_cluster_id"].to_numpy(), frame[of.other].to_numpy()]
    used = ~np.isnan(values)
    effective = [used.sum() ** 2 / sum(np.unique(side[used], return_counts=True)[1] ** 2) for side in sides]
    names = sorted({*sides[0], *sides[1]})
    numbers = [np.array([names.index(image) for image in side]) for side in sides]
    variance = literal_variance(values, *numbers) * (of.high - of.low) ** 2
    n, estimate = min(effective), METRICS[name].value(rows)
    expected = logit_interval(estimate, Variance(value=variance, df=n - 1, n=n), low=of.low, high=of.high)
    assert expected is not None
    assert limits(of, rows, estimate) == pytest.approx(expected)


def test_a_part_of_the_rows_has_the_image_numbers_of_the_whole(evaluated):
    rows = Columns.of(evaluated.pairs)
    chosen = np.arange(len(rows)) % 3 == 0
    names = ("source_cluster_id", "donor_cluster_id")
    assert rows.where(chosen).cluster_numbers(*names).tolist() == rows.cluster_numbers(*names)[:, chosen].tolist()
    known = sorted({*evaluated.pairs["source_cluster_id"], *evaluated.pairs["donor_cluster_id"]})
    assert rows.cluster_numbers(*names)[0].tolist() == [known.index(i) for i in evaluated.pairs["source_cluster_id"]]


def of_values(values: list[float], donors: int | None = None) -> Columns:
    """Return decisive pairs with the given values of CCG-AUC, each on images of its own or on a few donors."""
    n = len(values)
    frame = pl.DataFrame(
        {
            "source_cluster_id": [f"s{k:03d}" for k in range(n)],
            "donor_cluster_id": [f"d{k % (donors or n):03d}" for k in range(n)],
            "correct_real": [True] * n,
            "correct_donor": [False] * n,
            "confidence_real": values,
            "confidence_donor": [0.5] * n,
        }
    )
    return Columns.of(frame)


def test_ties_are_counted_among_the_decisive_pairs():
    assert ties(NATURAL)(of_values([1.0, 0.5, 0.5, 0.0])) == 0.5


def test_what_a_sample_can_detect_by_hand():
    # 100 independent pairs, half of which win. Each is left out with its source, with its donor, and alone, and moves
    # the mean by .5 / 99: V = (199 / 200 x 200 - 99 / 100 x 100) x (.5 / 99)**2 = .0025508, standard error .050505.
    # t(99) has 1.984217 and .845230 at .975 and .8: .5 + 2.829447 x .050505 = .642901.
    found = detectable(NATURAL)(of_values([1.0, 0.0] * 50))
    steps = scipy.stats.t.ppf(0.975, 99) + scipy.stats.t.ppf(0.8, 99)
    assert steps == pytest.approx(2.829447, abs=1e-4)
    assert found == pytest.approx(0.5 + steps * 0.050505, abs=1e-5)


def test_a_sample_at_the_end_of_the_scale_counts_its_images():
    # All of 40 pairs win: .5 / 40**.5 = .0790569 is the standard error of a share of .5.
    found = detectable(NATURAL)(of_values([1.0] * 40))
    steps = scipy.stats.t.ppf(0.975, 39) + scipy.stats.t.ppf(0.8, 39)
    assert found == pytest.approx(0.5 + steps * 0.0790569, abs=1e-6)
    assert detectable(NATURAL)(of_values([0.5] * 40)) == found  # nor does any of 40 ties differ from the others


def test_what_lies_just_below_1_can_be_told():
    # As by hand above: 12 x (.5 / 11)**2 = .024793, standard error .157459; t(11) has 2.200985 and .875530.
    # .5 + 3.076515 x .157459 = .984425; of 10 pairs, it would be 1.05.
    assert detectable(NATURAL)(of_values([1.0, 0.0] * 6)) == pytest.approx(0.984425, abs=1e-5)


def test_one_donor_gives_no_interval():
    rows = of_values([1.0, 0.0, 1.0, 1.0], donors=1)
    assert limits(NATURAL, rows, 0.75) is None
    assert replace(NATURAL, other="source_cluster_id").shifts(rows) is not None


def test_what_is_kept_for_comparisons_is_pair_by_pair(evaluated):
    for name in COMPARABLE:
        kept = pair_values(MEANS[name], Columns.of(evaluated.pairs))
        assert len(kept.values) == len(kept.source) == len(kept.donor) == len(evaluated.pairs)
        assert not np.isnan(kept.values).all()
