"""Answer sets of questions with choices, from the choices' probabilities, chosen on calibration answers."""

from collections.abc import Iterator, Sequence

import polars as pl

from dualread.apps.evaluate.evaluation_data import BY, EvaluationData
from dualread.apps.evaluate.graded import CHOICE, RIGHT
from dualread.apps.evaluate.thresholds import same_method, with_choosers
from dualread.errors import ConfigError, UndefinedMetricError
from dualread.evaluation.answer_sets import SetRates, conformal_threshold, set_rates
from dualread.evaluation.statistics.clusters import in_unit

SCHEMA = {
    **dict.fromkeys(("dataset", "method", "by", "group"), pl.String),
    **{"miss": pl.Float64, "threshold": pl.Float64},
    **dict.fromkeys(SetRates._fields, pl.Float64),
    **{"n": pl.Int64, "n_clusters": pl.Int64, "calibration_clusters": pl.Int64, "reason": pl.String},
}


def answer_sets(parts: Sequence[EvaluationData], by: Sequence[str], miss: float) -> pl.DataFrame:
    """Return threshold, coverage with its interval, size and counts of all sets, and of each group of `by`.

    A set may miss the right choice with the probability `miss`; the answers of each part's `chooser` choose its
    threshold.
    """
    if not 0.0 < miss < 1.0:
        raise ConfigError(f"--miss {miss:g}: expected a number between 0 and 1, such as .1.")
    rows = []
    for cells, chooser in with_choosers(parts):
        for method in cells.methods:
            chosen_on = _choices(chooser, same_method(chooser, method, cells))
            place = {"dataset": cells.dataset, "method": method, "miss": miss}
            place["calibration_clusters"] = chosen_on["cluster_id"].n_unique()
            try:
                cut = conformal_threshold(chosen_on[RIGHT], chosen_on["number"], miss=miss)
            except UndefinedMetricError as error:
                rows.append({**place, "reason": in_unit(str(error), chooser.unit)})
            else:
                rows += ({**place, **row} for row in _rates(_choices(cells, method), by, cut))
    return pl.DataFrame(rows, schema=SCHEMA)


def _choices(cells: EvaluationData, method: str) -> pl.DataFrame:
    answers = cells.methods[method].answers.select("sample_id", "cluster_id", number=pl.col("cluster_id").rank("dense"))
    return answers.join(cells.groups.filter(method=method), on="sample_id", maintain_order="left")


def _rates(rows: pl.DataFrame, by: Sequence[str], cut: float) -> Iterator[dict]:
    groups = [
        (name, group, part) for name in by for (group,), part in rows.group_by(f"{BY}{name}", maintain_order=True)
    ]
    for name, group, part in ((None, None, rows), *sorted(groups, key=lambda row: (by.index(row[0]), str(row[1])))):
        of_choices = part.select(pl.col(f"^{CHOICE}.*$")).to_numpy()
        rates = set_rates(of_choices, part[RIGHT].to_numpy(), part["number"].to_numpy(), threshold=cut)
        sizes = {"n": len(part), "n_clusters": part["cluster_id"].n_unique()}
        yield {"by": name, "group": group, "threshold": cut, **rates._asdict(), **sizes}
