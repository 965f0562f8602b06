"""Tables of claims: what is known per report, with all claims, and with those that a certified filter keeps."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from dualread.apps.evaluate.evaluation_data import EvaluationData
from dualread.apps.evaluate.thresholds import ThresholdOptions, chosen, same_method
from dualread.data.tables.contract import REPORT
from dualread.errors import ConfigError, DataError
from dualread.evaluation.claim_filter import LOSSES, RATES, LabeledClaims, certified_filter, filter_rates
from dualread.evaluation.columns import numbered

SCHEMA = {
    **dict.fromkeys(("dataset", "method", "loss"), pl.String),
    **dict.fromkeys(("target_risk", "threshold"), pl.Float64),
    **dict.fromkeys((name + end for name in RATES for end in ("", "_low", "_high")), pl.Float64),
    **dict.fromkeys(("n", "n_reports", "n_clusters"), pl.Int64),
    **{"reason": pl.String, "delta": pl.Float64},
    **dict.fromkeys(("share_delta", "max_reports", "calibration_max_reports"), pl.Int64),
    **dict.fromkeys(("calibration_reports", "calibration_clusters"), pl.Int64),
}


def claim_filters(parts: Sequence[EvaluationData], options: ThresholdOptions) -> pl.DataFrame | None:
    """Return a row for each method and loss with all claims, and with those of each target's certified filter.

    The columns are those of `SCHEMA`: `claim_filter.RATES` with their intervals. None if the rows are no claims. The
    claims that choose a filter are those of each part's `chooser`.
    """
    for cells in parts if options.target_risks else ():
        if cells.chooser and cells.has_claims != cells.chooser.has_claims:
            lacks, has = sorted((cells, cells.chooser), key=lambda data: data.has_claims)
            raise DataError(
                f"{lacks.source}: no column 'claim', which {has.source} has. Give it in both, or in neither."
            )
    if not parts[0].has_claims:
        if options.max_reports is not None:
            raise ConfigError("--max-reports: needs a table of claims, which has a column 'claim'.")
        return None
    rows = []
    for cells in parts:
        for method in cells.methods:
            claims = claims_of(cells, method)
            place = {"dataset": cells.dataset, "method": method, "n": len(claims.report)}
            place |= {"n_reports": claims.n_reports, "n_clusters": int(claims.cluster.max()) + 1}
            for loss in LOSSES:
                rates = filter_rates(claims, loss, threshold=0.0)
                # All claims are kept, of these reports and of others, so that this has no interval.
                rates |= dict.fromkeys(f"{name}_{end}" for name in ("kept", "none_kept") for end in ("low", "high"))
                rows.append({**place, "loss": loss, "threshold": 0.0, **rates})
            if cells.chooser and options.target_risks:
                rows += _certified(cells, cells.chooser, claims, options, place)
    return pl.DataFrame(rows, schema=SCHEMA)


def _certified(
    cells: EvaluationData,
    chooser: EvaluationData,
    claims: LabeledClaims,
    options: ThresholdOptions,
    place: dict,
) -> Iterator[dict]:
    method = place["method"]
    chosen_on = claims_of(chooser, same_method(chooser, method, cells))
    for data, labeled in ((chooser, chosen_on), (cells, claims)):
        if options.max_reports is not None and (n := _most_reports(labeled)) > options.max_reports:
            raise DataError(
                f"{data.source}: a {data.unit} has {n} reports, and --max-reports says that none has more than"
                f" {options.max_reports}. Give the largest number that one {data.unit} of this source can have."
            )
    limits = {name: getattr(options, name) for name in ("delta", "share_delta", "max_reports")}
    like = {"calibration_reports": chosen_on.n_reports, "calibration_clusters": int(chosen_on.cluster.max()) + 1}
    like["calibration_max_reports"] = _most_reports(chosen_on)
    for risk, loss in product(options.target_risks, LOSSES):
        how = {"target_risk": risk, "delta": options.level, "max_reports": options.max_reports}
        cut = chosen(cells, chooser, method, partial(certified_filter, chosen_on, loss, **how))
        rates = {"reason": cut} if isinstance(cut, str) else filter_rates(claims, loss, threshold=cut)
        threshold = None if isinstance(cut, str) else cut
        yield {**place, "target_risk": risk, "loss": loss, "threshold": threshold, **rates, **limits, **like}


def claims_of(cells: EvaluationData, method: str) -> LabeledClaims:
    """Return the claims of a method; reports and clusters are numbered in the order of their names."""
    rows = cells.methods[method].answers.join(
        cells.groups.filter(method=method).select("sample_id", REPORT), on="sample_id", maintain_order="left"
    )
    confidence, correct = (rows[name].to_numpy() for name in ("confidence", "correct"))
    return LabeledClaims(confidence, correct, numbered(rows[REPORT]), numbered(rows["cluster_id"]))


def _most_reports(claims: LabeledClaims) -> int:
    return int(np.bincount(claims.cluster_of_reports()).max())


def doubts(cells: EvaluationData, options: ThresholdOptions) -> Iterator[str]:
    """Yield a warning if an evaluated cluster has more reports than those that chose the filter."""
    chooser = cells.chooser
    if chooser is None or not (cells.has_claims and chooser.has_claims):
        return
    most, n = (max(_most_reports(claims_of(data, method)) for method in data.methods) for data in (chooser, cells))
    if options.max_reports is None and n > most:
        yield (
            f"warning: a {cells.unit} of {cells.source} has {n} reports, more than any of {chooser.source} ({most})."
            " Certified filters assume that no new one has more than these; state the largest number that is possible"
            " with --max-reports."
        )
