"""Metrics of a study's reports: what they are like with all claims, and with those that a certified filter keeps.

A filter is chosen on the validation reports for each loss of `claim_filter.LOSSES` and target risk, and judged on those
of every data set; it holds for new reports of the source of the validation reports alone. For the loss "share" and a
target of 10%, `filter_share_kept_at_risk_10` is the share of claims that it keeps, and so on for `RATES` and the
threshold. `reports_share` and `reports_any` are the mean losses with all claims: the mean share of unsupported claims
per report, and the share of reports with any.

The report of a claim is what stands before the last # of its id.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation.claim_filter import LOSSES, RATES, LabeledClaims, certified_filter, filter_rates
from dualread.evaluation.columns import Columns
from dualread.evaluation.metric import metric_row
from dualread.evaluation.statistics.clusters import in_unit

# The threshold for each loss and target risk in percent, or the reason why there is none.
Filters = Mapping[tuple[str, int], float | str]
_KINDS = ("threshold", *RATES)


def metric_name(loss: str, kind: str, percent: int) -> str:
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
            yield from (metric_row("all", metric_name(loss, kind, percent), reason=cut) for kind in _KINDS)
            continue
        rates = {"threshold": cut} | filter_rates(claims, loss, threshold=cut)
        yield from (_row(metric_name(loss, kind, percent), rates, kind, sizes) for kind in _KINDS)


def without_filters(target_risk_percent: Iterable[int], reason: str) -> Iterator[dict]:
    """Yield the rows of `filter_rows` of a method without confidences: null, with the reason."""
    names = [f"reports_{loss}" for loss in LOSSES]
    names += [metric_name(loss, kind, n) for n in target_risk_percent for loss in LOSSES for kind in _KINDS]
    yield from (metric_row("all", name, reason=reason) for name in names)


def _row(name: str, rates: Mapping[str, float | None], kind: str, sizes: Mapping[str, int]) -> dict:
    value, low, high = (rates.get(kind + end) for end in ("", "_low", "_high"))
    reason = "no confidence reaches the threshold" if value is None else None
    return metric_row("all", name, value, low=low, high=high, **sizes, reason=reason)
