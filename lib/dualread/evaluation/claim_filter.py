"""Certified filter of claims: of each report, keep those with at least the confidence that calibration reports choose.

The loss of a report is in [0, 1]: the share of unsupported claims among those that are kept ("share"), or 1 if any of
these is unsupported ("any"); 0 if none is kept. The risk of a threshold is E[sum of the losses of a cluster's reports]
divided by E[number of its reports], with clusters such as patients, whose claims and reports may depend on each other
in any way. A threshold is certified if a test rejects "the risk is at least the target" (Learn then Test); of many sets
of calibration reports, at most the share delta certify one whose risk is above the target. The risk need not fall with
the threshold. What this assumes is what `metrics.risk_control` assumes, with reports in place of answers.

The filters of a study are chosen on the validation reports for each loss of `LOSSES` and target risk, and judged on
those of every data set; they hold for new reports of the source of the validation reports alone. For the loss "share"
and a target of 10%, `filter_share_kept_at_risk_10` is the share of claims that one keeps, and so on for `RATES` and the
threshold. `reports_share` and `reports_any` are the mean losses with all claims: the mean share of unsupported claims
per report, and the share of reports with any. The report of a claim is what stands before the last # of its id.

References:
    Mohri, Hashimoto, Language Models with Conformal Factuality Guarantees, 2024 (the filter, with the loss "any" and
    conformal prediction over reports, where every report is a cluster; its guarantee is on average over calibrations).
    Angelopoulos, Bates, Candes, Jordan, Lei, Learn then Test, 2021 (tests of thresholds in fixed sequences).
    Waudby-Smith, Ramdas, Estimating Means of Bounded Random Variables by Betting, 2024 (the p-value).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import scipy  # loads its submodules when they are first used

from dualread.errors import UndefinedMetricError
from dualread.evaluation.columns import Columns
from dualread.evaluation.metric import metric_row
from dualread.evaluation.metrics._bets import log_largest_wealth_after, running_sums_by
from dualread.evaluation.metrics._checks import checked, same_length
from dualread.evaluation.metrics.risk_control import DELTA, order_of_bets, smallest_certified
from dualread.evaluation.statistics.clusters import Clusters, in_unit
from dualread.evaluation.statistics.jackknife import Variance
from dualread.evaluation.statistics.proportion import share_interval
from dualread.evaluation.statistics.t_intervals import Limits, logit_interval

# The loss of reports, given how many claims are kept of each, and how many of these are unsupported.
LOSSES: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "share": lambda n_kept, n_unsupported: n_unsupported / np.maximum(n_kept, 1),
    "any": lambda n_kept, n_unsupported: np.minimum(n_unsupported, 1.0),
}

# What a threshold leads to on other reports, each a share with its 95% interval.
RATES = {
    "kept": "claims that are kept",
    "unsupported": "unsupported claims among those that are kept",
    "none_kept": "reports of which no claim is kept",
    "risk": "mean loss of a report",
}


class LabeledClaims(NamedTuple):
    """Claims with a label: confidence, float64 [n]; correct (supported), bool [n]; report and cluster, int64 [n] >= 0.

    The numbers of reports, and those of clusters, have no gaps; all claims of a report have one cluster.
    """

    confidence: np.ndarray
    correct: np.ndarray
    report: np.ndarray
    cluster: np.ndarray

    @property
    def n_reports(self) -> int:
        """The number of reports."""
        return int(self.report.max()) + 1

    def cluster_of_reports(self) -> np.ndarray:
        """Return the cluster of each report, int64 [reports]."""
        return self.cluster[np.unique(self.report, return_index=True)[1]]


def report_losses(claims: LabeledClaims, loss: str, *, threshold: float) -> np.ndarray:
    """Return the loss of each report, float64 [reports] in [0, 1], if claims with confidence >= threshold are kept."""
    kept = claims.confidence >= threshold
    counts = (np.bincount(claims.report[rows], minlength=claims.n_reports) for rows in (kept, kept & ~claims.correct))
    return LOSSES[loss](*counts)


def filter_p_values(
    claims: LabeledClaims, loss: str, *, target_risk: float, max_reports: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every threshold, the p-value of the hypothesis "the risk is at least the target".

    Cluster i has the balance Z_i = sum of its reports' losses - target_risk * number of its reports, which is at most
    (1 - target_risk) M, with M = `max_reports` (None for the largest number here). Under the hypothesis, its mean is at
    least 0; the p-value is that of the bets of `risk_control.risk_p_values`. With one report per cluster and the loss
    "any", the number of reports with a loss is binomial, and its p-value is exact.

    Returns:
        The distinct confidences, float64 [m], descending; and the p-value of keeping none, then of each as threshold,
        float64 [m + 1] in [0, 1].

    Raises:
        ValueError: An input is malformed, or a cluster has more than `max_reports` reports.
        UndefinedMetricError: There are no claims.
    """
    scores, labels = checked(claims.confidence, claims.correct)
    same_length(confidence=scores, report=claims.report, cluster=claims.cluster)
    if not 0.0 <= target_risk < 1.0:
        raise ValueError(f"target_risk: {target_risk}, expected a risk from 0 to less than 1.")
    n_reports = np.bincount(claims.cluster_of_reports())
    most = int(n_reports.max()) if max_reports is None else max_reports
    if n_reports.max() > most:
        raise ValueError(f"max_reports: {most}, but a cluster has {n_reports.max()} reports.")
    order = np.lexsort((labels, claims.report, -scores))  # so that sums do not depend on the order of the rows
    scores, report, cluster = scores[order], claims.report[order], claims.cluster[order]
    wrong = (~labels[order]).astype(np.int64)
    last = np.append(scores[1:] != scores[:-1], True)  # equal confidences are kept together
    n_kept, n_wrong = running_sums_by(report, np.stack([np.ones_like(wrong), wrong]))
    change = LOSSES[loss](n_kept, n_wrong) - LOSSES[loss](n_kept - 1, n_wrong - wrong)
    if most == 1 and loss == "any":
        n_lost = np.append(0, np.round(np.cumsum(change)[last]).astype(np.int64))
        return scores[last], scipy.special.bdtr(n_lost, len(n_reports), target_risk)
    clusters = np.arange(len(n_reports))  # before any claim is kept, the first time, no cluster has a loss
    changed = np.append(clusters, cluster)
    p = -log_largest_wealth_after(
        order_of_bets(len(clusters))[changed],
        np.append(np.zeros_like(clusters), 1 + np.cumsum(last) - last),
        n_reports[changed],
        np.append(np.zeros(len(clusters)), running_sums_by(cluster, change[np.newaxis])[0]),
        target_risk=target_risk,
        most=most,
    )
    return scores[last], np.exp(p)


def certified_filter(
    claims: LabeledClaims, loss: str, *, target_risk: float, delta: float = DELTA, max_reports: int | None = None
) -> float:
    """Return a confidence c such that the risk of keeping claims with confidence >= c is at most `target_risk`.

    The statement is wrong with a probability of at most `delta` over the draw of the calibration reports. Thresholds
    are tested from the highest to the lowest, as in `risk_control.certified_threshold`, whose proof holds for this
    risk, too. At the top hardly any claim is kept, and the risk is small: three of five shares of delta begin there;
    one at 1 - target_risk, for confidences that are too high at the top; and one at 0, which keeps every claim. The
    result is the smallest threshold that is certified: one of the confidences, 1 - target_risk, or 0.

    Raises:
        UndefinedMetricError: There are no claims, or no threshold is certified at which any of these claims is kept.
    """
    levels, p = filter_p_values(claims, loss, target_risk=target_risk, max_reports=max_reports)
    first = (1.0, 1.0, 1.0, 1.0 - target_risk, 0.0)
    how = {"target_risk": target_risk, "delta": delta, "first": first, "p_of_none": float(p[0])}
    smallest = smallest_certified(levels, p[1:], **how)
    if smallest is not None and smallest <= levels[0]:
        return smallest
    reason = f"no filter is certified for a risk of {target_risk:g} with delta {delta:g}: "
    at_top = delta * first.count(1.0) / len(first)
    if p[0] > at_top:
        n_clusters = len(np.unique(claims.cluster))
        raise UndefinedMetricError(
            f"{reason}too few images ({n_clusters}), even if no claim of {claims.n_reports} reports were unsupported"
        )
    raise UndefinedMetricError(
        f"{reason}the p-value of the most confident claims is {p[1]:.3g}, and {at_top:.3g} is needed"
    )


def filter_rates(claims: LabeledClaims, loss: str, *, threshold: float) -> dict[str, float | None]:
    """Return each of `RATES` for n >= 1 claims, with NAME_low and NAME_high; None where there is none.

    Intervals are over clusters, and for this threshold: other calibration reports would have chosen another one.
    """
    kept, cluster = claims.confidence >= threshold, claims.cluster_of_reports()
    n_kept = np.bincount(claims.report, kept)
    values = {
        "kept": (kept, claims.cluster),
        "unsupported": (~claims.correct[kept], claims.cluster[kept]),
        "none_kept": (n_kept == 0, cluster),
        "risk": (report_losses(claims, loss, threshold=threshold), cluster),
    }
    rates: dict[str, float | None] = {}
    for name, (numbers, of_cluster) in values.items():
        # Sums do not depend on the order of the rows.
        rates[name] = float(np.sort(numbers).mean()) if len(numbers) else None
        low, high = mean_interval(numbers, np.unique(of_cluster, return_inverse=True)[1]) or (None, None)
        rates |= {f"{name}_low": low, f"{name}_high": high}
    return rates


def mean_interval(values: np.ndarray, cluster: np.ndarray) -> Limits:
    """Return the 95% interval of the mean of values [n] in [0, 1], for new clusters; None where none holds.

    Of values 0 and 1 it is `proportion.share_interval`, and otherwise that on the logit, with the variance of leaving
    out each cluster in turn, and Student's t.
    """
    if len(values) == 0 or np.isin(values, (0.0, 1.0)).all():
        return share_interval(values == 1.0, cluster)
    clusters = Clusters(rows=np.bincount(cluster).astype(np.float64), right=np.bincount(cluster, values))
    if clusters.in_effect.reason:
        return None
    df = clusters.df(2.0 * max(clusters.n_rarer, 1))
    return logit_interval(float(values.mean()), Variance(value=clusters.variance_of_share(), df=df, n=clusters.worth))


# The threshold for each loss and target risk in percent, or the reason why there is none.
Filters = Mapping[tuple[str, int], float | str]
_KINDS = ("threshold", *RATES)


def filter_metric(loss: str, kind: str, percent: int) -> str:
    """Return the metric's name, such as filter_any_kept_at_risk_10."""
    return f"filter_{loss}_{kind}_at_risk_{percent:02d}"


def labeled_claims(answers: Columns) -> LabeledClaims:
    """Return the claims of the joined answers of one (data set, split)."""
    reports = [sample_id.rpartition("#")[0] for sample_id in answers["sample_id"]]
    report, cluster = (
        np.unique(of, return_inverse=True)[1] for of in (reports, answers.cluster_numbers("cluster_id")[0])
    )
    return LabeledClaims(answers["confidence"], answers["correct"], report, cluster)


def choose_filters(answers: Columns, target_risk_percent: Iterable[int], unit: str = "image") -> Filters:
    """Return the filter of each loss and target risk on validation claims, of which a cluster is a `unit`."""
    claims, chosen = labeled_claims(answers), dict[tuple[str, int], float | str]()
    for loss, percent in ((loss, percent) for percent in target_risk_percent for loss in LOSSES):
        try:
            chosen[loss, percent] = certified_filter(claims, loss, target_risk=percent / 100)
        except UndefinedMetricError as error:
            chosen[loss, percent] = f"validation: {in_unit(str(error), unit)}"
    return chosen


def filter_rows(answers: Columns, filters: Filters) -> Iterator[dict]:
    """Yield one `metric_row` per metric of the joined claims of one (data set, split)."""
    claims = labeled_claims(answers)
    sizes = {"n": len(claims.report), "n_clusters": len(np.unique(claims.cluster))}
    for loss in LOSSES:
        yield _row(f"reports_{loss}", filter_rates(claims, loss, threshold=0.0), "risk", sizes)
    for (loss, percent), cut in filters.items():
        if isinstance(cut, str):
            yield from (metric_row("all", filter_metric(loss, kind, percent), reason=cut) for kind in _KINDS)
            continue
        rates = {"threshold": cut} | filter_rates(claims, loss, threshold=cut)
        yield from (_row(filter_metric(loss, kind, percent), rates, kind, sizes) for kind in _KINDS)


def without_filters(target_risk_percent: Iterable[int], reason: str) -> Iterator[dict]:
    """Yield the rows of `filter_rows` of a method without confidences: null, with the reason."""
    names = [f"reports_{loss}" for loss in LOSSES]
    names += [filter_metric(loss, kind, n) for n in target_risk_percent for loss in LOSSES for kind in _KINDS]
    yield from (metric_row("all", name, reason=reason) for name in names)


def _row(name: str, rates: Mapping[str, float | None], kind: str, sizes: Mapping[str, int]) -> dict:
    value, low, high = (rates.get(kind + end) for end in ("", "_low", "_high"))
    reason = "no confidence reaches the threshold" if value is None else None
    return metric_row("all", name, value, low=low, high=high, **sizes, reason=reason)
