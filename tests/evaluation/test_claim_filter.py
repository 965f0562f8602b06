"""The certified filter of claims: losses and p-values by hand and by loops, and the guarantee by simulation."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import UndefinedMetricError
from dualread.evaluation.claim_filter import (
    LabeledClaims,
    certified_filter,
    choose_filters,
    filter_metric,
    filter_p_values,
    filter_rows,
    mean_interval,
    report_losses,
    without_filters,
)
from dualread.evaluation.columns import Columns
from dualread.evaluation.statistics.proportion import share_interval
from tests.evaluation.metrics import literal

LOSS = ("share", "any")


def claims(confidence, correct, report, cluster=None):
    report = np.asarray(report)
    return LabeledClaims(
        np.asarray(confidence, float), np.asarray(correct, bool), report, np.asarray(cluster or report)
    )


# Report 0 has three claims, report 1 two, report 2 one.
SMALL = ([0.9, 0.7, 0.3, 0.9, 0.7, 0.4], [1, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 2])


@pytest.mark.parametrize(
    ("threshold", "share", "lost"),
    [
        (0.95, [0, 0, 0], [0, 0, 0]),  # none is kept
        (0.9, [0, 0, 0], [0, 0, 0]),
        (0.7, [1 / 2, 0, 0], [1, 0, 0]),
        (0.0, [1 / 3, 0, 1], [1, 0, 1]),  # the loss of the first report falls again
    ],
)
def test_losses_by_hand(threshold, share, lost):
    small = claims(*SMALL)
    assert report_losses(small, "share", threshold=threshold).tolist() == pytest.approx(share)
    assert report_losses(small, "any", threshold=threshold).tolist() == lost


def test_p_values_by_hand():
    # Target .5, one report per cluster. "any": P(Bin(3, .5) <= k) with k = 0, 0, 1, 2, 2 lost reports.
    levels, p = filter_p_values(claims(*SMALL), "any", target_risk=0.5)
    assert levels.tolist() == [0.9, 0.7, 0.4, 0.3]
    assert p.tolist() == pytest.approx([1 / 8, 1 / 8, 4 / 8, 7 / 8, 7 / 8])
    # "share": the stake 1 / .5 doubles what has the loss 0: half the capital makes .5 * 2^3 = 4 from three reports. At
    # .7 the first one has the loss .5, a factor 1: .5 * 2 * 2 = 2. At .4 the third has the loss 1, a factor 0, and the
    # others are in places 0 and 1 of the order, or not.
    p = filter_p_values(claims(*SMALL), "share", target_risk=0.5)[1]
    assert p[:3].tolist() == pytest.approx([1 / 4, 1 / 4, 1 / 2])
    # A risk is always at least 0: no number of reports speaks against it.
    assert filter_p_values(claims(*SMALL), "any", target_risk=0.0)[1].tolist() == [1.0] * 5


def literal_p(sample, loss, threshold, target_risk, most):
    """The bets of the definition, one cluster after another."""
    losses = {}
    for report in set(sample.report.tolist()):
        rows = [k for k in range(len(sample.report)) if sample.report[k] == report]
        kept = [bool(sample.correct[k]) for k in rows if sample.confidence[k] >= threshold]
        unsupported = kept.count(False)
        value = (unsupported / len(kept) if kept else 0.0) if loss == "share" else float(unsupported > 0)
        losses.setdefault(int(sample.cluster[rows[0]]), []).append(value)
    return literal.p_of_bets(losses, target_risk, most)


@given(st.integers(0, 10_000), st.sampled_from(LOSS), st.sampled_from([0.1, 0.5]))
def test_p_values_are_those_of_the_definition_in_any_order(seed, loss, target_risk):
    rng = np.random.default_rng(seed)
    cluster_of_report = np.unique(rng.integers(0, 5, 9), return_inverse=True)[1]
    report = np.unique(np.append(rng.integers(0, 9, 20), range(9)), return_inverse=True)[1]
    confidence = rng.integers(0, 6, len(report)) / 5
    sample = LabeledClaims(confidence, rng.random(len(report)) < 0.7, report, cluster_of_report[report])
    most = int(np.bincount(cluster_of_report).max()) + 1
    levels, p = filter_p_values(sample, loss, target_risk=target_risk, max_reports=most)
    for threshold, value in zip([2.0, *levels], p, strict=True):
        assert value == pytest.approx(literal_p(sample, loss, threshold, target_risk, most), rel=1e-9)
    order = rng.permutation(len(report))
    turned = filter_p_values(
        LabeledClaims(*(part[order] for part in sample)), loss, target_risk=target_risk, max_reports=most
    )
    assert np.array_equal(turned[1], p)


def test_the_smallest_confidence_that_passes_is_the_filter():
    # 100 reports of three claims, .9 and .8 supported, .2 not. Target .1: at .8 no report has a loss; with "any" all do
    # at .2, with "share" each has 1/3.
    sample = claims([0.9, 0.8, 0.2] * 100, [1, 1, 0] * 100, np.repeat(np.arange(100), 3))
    for loss in LOSS:
        assert certified_filter(sample, loss, target_risk=0.1) == 0.8
    # The share 1/3 is below a target of .5, so that 0, where a sequence begins, passes. With "any", .5 is the last one
    # that does: a sequence begins there, and it keeps what .8 keeps.
    assert certified_filter(sample, "share", target_risk=0.5) == 0.0
    assert certified_filter(sample, "any", target_risk=0.5) == 0.5


def test_how_many_reports_it_takes_and_that_those_of_a_patient_count_once():
    # "any": .9^26 = .0646 is above .06 = 3/5 delta, and .9^27 = .0581 is not.
    for n, certified in ((26, False), (27, True)):
        sample = claims([0.9] * n, [1] * n, range(n))
        if certified:
            assert certified_filter(sample, "any", target_risk=0.1) == 0.0
        else:
            with pytest.raises(UndefinedMetricError, match=r"too few images \(26\)"):
                certified_filter(sample, "any", target_risk=0.1)
    of_few_patients = claims([0.9] * 200, [1] * 200, range(200), (np.arange(200) % 20).tolist())
    with pytest.raises(UndefinedMetricError, match=r"too few images \(20\)"):
        certified_filter(of_few_patients, "any", target_risk=0.1)


def test_intervals_of_means_over_reports():
    lost = np.array([1.0, 0.0, 1.0, 0.0, 0.0])
    assert mean_interval(lost, np.arange(5)) == share_interval(lost == 1, np.arange(5))
    assert mean_interval(np.array([0.5, 0.0, 1.0]), np.zeros(3, int)) is None  # one cluster
    # .25 and .75, each of ten clusters: the mean .5 has the variance 20 / 19 * .25^2 / 20 = .00329; with t[19] = 2.093,
    # half the interval is 2.093 * .05735 / (.5 * .5) = .4802 on the logit.
    assert mean_interval(np.array([0.25, 0.75] * 10), np.arange(20)) == pytest.approx(
        (1 / (1 + np.exp(0.4802)), 1 / (1 + np.exp(-0.4802))), abs=1e-4
    )


def columns(n_reports, confidence, correct):
    """Claims of reports with an image each, in the columns of a study."""
    reports = [f"slake/test/{k}#{c}" for k in range(n_reports) for c in range(len(confidence))]
    rows = {"sample_id": reports, "confidence": confidence * n_reports, "correct": correct * n_reports}
    images = [name.rpartition("#")[0] for name in reports]
    return Columns.of(pl.DataFrame({**rows, "cluster_id": images}))


def test_a_filter_of_a_study_is_chosen_on_validation_and_judged_on_test():
    # 100 validation reports: .9 and .8 are supported, .2 is not, as above: .8 is the filter for both losses at 10%.
    chosen = choose_filters(columns(100, [0.9, 0.8, 0.2], [True, True, False]), [10])
    # Of each of two test reports, .85 and .8 are kept of three claims, and one of these is unsupported.
    rows = filter_rows(columns(2, [0.85, 0.8, 0.1], [True, False, True]), chosen)
    by_name = {row["metric"]: row["estimate"] for row in rows}
    for loss, risk, of_all in (("share", 1 / 2, 1 / 3), ("any", 1.0, 1.0)):
        kinds = {"threshold": 0.8, "kept": 2 / 3, "unsupported": 1 / 2, "none_kept": 0.0, "risk": risk}
        found = {kind: by_name[filter_metric(loss, kind, 10)] for kind in kinds}
        assert found == pytest.approx(kinds)
        assert by_name[f"reports_{loss}"] == pytest.approx(of_all)
    nothing = list(without_filters([10], "no reader"))
    assert [row["metric"] for row in nothing] == list(by_name)
    assert {row["estimate"] for row in nothing} == {None}


def test_a_filter_that_is_not_certified_is_a_reason_in_the_unit_of_what_chose():
    rows = filter_rows(columns(40, [0.9], [True]), choose_filters(columns(3, [0.9], [True]), [10], "patient"))
    reasons = {row["reason"] for row in rows if row["metric"].startswith("filter_")}
    assert len(reasons) == 1
    assert "too few patients (3)" in reasons.pop()


def drawn(rng, n_patients, wrong, slope, together):
    """Patients with 1 to 6 reports of 1 to 12 claims; `together`, all of a patient are supported or none."""
    cluster = np.repeat(np.arange(n_patients), rng.integers(1, 7, n_patients))
    report = np.repeat(np.arange(len(cluster)), rng.integers(1, 13, len(cluster)))
    confidence = np.round(rng.beta(3, 1, len(report)), 2)
    luck = rng.random(n_patients)[cluster][report] if together else rng.random(len(report))
    of_report = np.zeros(len(cluster)) if together else rng.normal(size=len(cluster))
    odds = np.exp(wrong - slope * (confidence - 0.75) + of_report[report])
    return LabeledClaims(confidence, luck > odds / (1 + odds), report, cluster[report])


@pytest.mark.parametrize("loss", LOSS)
@pytest.mark.parametrize(
    ("wrong", "slope", "together", "kept_from"),
    [(-1.4, 0.0, True, 0.8), (-2.5, 8.0, False, 0.7), (-1.5, -6.0, False, 0.0)],
)
def test_the_risk_is_above_the_target_in_at_most_delta(loss, wrong, slope, together, kept_from):
    """The target is just below the risk of a threshold, so that all thresholds below it, or above it, are too risky."""
    rng = np.random.default_rng([len(loss), int(-10 * wrong)])
    many = drawn(rng, 20_000, wrong, slope, together)
    target = float(report_losses(many, loss, threshold=kept_from).mean()) * 0.999
    above = {"claims of a patient together": 0, "claims as if independent": 0}
    for _ in range(60):
        sample = drawn(rng, 60, wrong, slope, together)
        alone = np.arange(len(sample.report))
        samples = (sample, 6), (sample._replace(report=alone, cluster=alone), 1)
        for how, (calibration, most) in zip(above, samples, strict=True):
            try:
                cut = certified_filter(calibration, loss, target_risk=target, max_reports=most)
            except UndefinedMetricError:
                continue
            above[how] += report_losses(many, loss, threshold=cut).mean() > target
    assert above["claims of a patient together"] <= 12  # P(Bin(60, .1) > 12) = .01
    assert above["claims as if independent"] > 12
