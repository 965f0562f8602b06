"""Compute the metrics of every method, and show them as a table on the terminal and in files."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from dualread.artifacts.schemas.metrics import METRICS
from dualread.commands.evaluate.answers import NO_PAIRS, Cells
from dualread.commands.text import aligned
from dualread.errors import ConfigError, DataError
from dualread.evaluation import controls
from dualread.evaluation.channel import CHANNEL_METRICS
from dualread.evaluation.estimates import estimate
from dualread.evaluation.join import Evaluated
from dualread.evaluation.metrics.grounding import MINIMUM_IMAGES
from dualread.evaluation.statistics.bootstrap import ImageDraws

_COLUMNS = ("method", "subset", "metric", "estimate", "low", "high", "n", "n_clusters", "reason")
_UNDEFINED = "_undefined_replicates"
_SHOWN = 5  # number of donors that a message lists
# These metrics need conditions, or results of the answer parser, that a plain table does not hold.
_LEFT_OUT = {*CHANNEL_METRICS, *controls.FIXED_METRICS, *controls.SHUFFLED_METRICS}


def metrics_of(cells: Cells, *, replicates: int, seed: int) -> pl.DataFrame:
    """Return one row per (method, subset, metric), computed as the workflow's stage `compute_metrics` does.

    Methods with the same clusters are evaluated on the same resamples, whether in one file or in several. A method with
    a single cluster has no intervals.

    Args:
        cells: From `read_cells`.
        replicates: Number of resamples.
        seed: Seed of the resampling.

    Raises:
        ConfigError: `replicates` is negative.
    """
    if replicates < 0:
        raise ConfigError(f"--replicates: {replicates}, expected 0 (no intervals) or a positive number.")
    rows = []
    for method, evaluated in cells.methods.items():
        clusters = tuple(sorted(set(evaluated.answers["image_id"])))
        times = replicates if len(clusters) > 1 else 0  # all resamples of a single cluster are the same
        others = tuple(sorted(_donors_only(evaluated)))
        draws = ImageDraws(names=("evaluate", str(seed)), image_ids=clusters, replicates=times, donors_only=others)
        rows += [
            {"method": method, **_withheld(row, cells)}
            for row in estimate(evaluated, draws)[0]
            if row["subset"] in cells.subsets and row["metric"].removesuffix(_UNDEFINED) not in _LEFT_OUT
        ]
    return pl.DataFrame(rows, schema={name: METRICS.columns[name].dtype for name in _COLUMNS})


def _donors_only(evaluated: Evaluated) -> set[str]:
    """Return the clusters of donor images that have no answer of their own."""
    if isinstance(evaluated.pairs, str):
        return set()
    return set(evaluated.pairs["donor_image_id"]) - set(evaluated.answers["image_id"])


def _withheld(row: dict, cells: Cells) -> dict:
    for beginning, reason in cells.withheld.items():
        if row["metric"].startswith(beginning) and row["reason"] != NO_PAIRS:
            return {**row, "estimate": None, "low": None, "high": None, "reason": reason}
    return row


def lines(cells: Cells, metrics: pl.DataFrame, *, replicates: int, seed: int) -> Iterator[str]:
    """Yield the lines to print; `metrics` is from `metrics_of`, with the same `replicates` and `seed`."""
    counts = {name: len(evaluated.answers) for name, evaluated in cells.methods.items()}
    yield f"{cells.source}: {sum(counts.values())} answers, {len(counts)} method{'s' if len(counts) > 1 else ''}"
    yield _about_intervals(cells, replicates, seed)
    if len({frozenset(evaluated.answers["sample_id"]) for evaluated in cells.methods.values()}) > 1:
        found = ", ".join(f"{name}: {n}" for name, n in counts.items())
        yield f"the methods answer different questions ({found} answers): compare them with care"
    if others := frozenset().union(*map(_donors_only, cells.methods.values())):
        shown = ", ".join(sorted(others)[:_SHOWN]) + (f", ... ({len(others)} in all)" if len(others) > _SHOWN else "")
        yield f"donors whose {cells.cluster} has no answer in {cells.source}, each a cluster by itself: {shown}"
    if metrics["reason"].eq_missing(NO_PAIRS).any():
        yield "CCG-AUC needs a table of donor pairs (--pairs)"
    for subset in cells.subsets:
        yield ""
        if len(cells.subsets) > 1:
            yield f"answer_type: {subset}"
        yield from _table(cells, metrics.filter(pl.col("subset") == subset))


def _about_intervals(cells: Cells, replicates: int, seed: int) -> str:
    if replicates == 0:
        return "no intervals (--replicates 0)"
    if all(evaluated.answers["image_id"].n_unique() == 1 for evaluated in cells.methods.values()):
        return f"no intervals: there is only one {cells.cluster or 'row'}, so nothing to resample"
    drawn = f"95% intervals: {replicates} resamples of {cells.cluster or 'rows'}, seed {seed}"
    if cells.cluster is None:
        drawn += ". Without a column image_id, the intervals are too narrow if several answers share an image"
    return drawn


def _table(cells: Cells, metrics: pl.DataFrame) -> Iterator[str]:
    """Yield one line per (metric, method); the column of methods is left out if there is only one."""
    cell = {(row["method"], row["metric"]): row for row in metrics.iter_rows(named=True)}
    table = [("metric", "method", "estimate", "95% interval", "n", cells.cluster or "rows", "")]
    for metric in (name for name in dict.fromkeys(metrics["metric"]) if not name.endswith(_UNDEFINED)):
        for method in cells.methods:
            row = cell[method, metric]
            if row["reason"] != NO_PAIRS:
                interval = "" if row["low"] is None else f"{_number(row['low'])} to {_number(row['high'])}"
                counts = (str(row["n"]), str(row["n_clusters"]))
                remark = row["reason"] or _remark(row, cell)
                table.append((metric, method, _number(row["estimate"]), interval, *counts, remark))
    if len(cells.methods) == 1:
        yield from aligned([(row[0], *row[2:]) for row in table], numbers=(1, 2, 3, 4))
    else:
        yield from aligned(table, numbers=(2, 3, 4, 5))


def _number(value: float | None) -> str:
    """Return a whole number without decimals, so that "1" means exactly 1, and other numbers with four."""
    return "-" if value is None else str(int(value)) if value.is_integer() else f"{value:.4f}"


def _remark(row: dict, cell: dict[tuple[str, str], dict]) -> str:
    """Return the remark on a metric: how often it was undefined, and whether it has too few images."""
    undefined = cell.get((row["method"], f"{row['metric']}{_UNDEFINED}"), {}).get("estimate")
    underpowered = cell.get((row["method"], f"{row['metric'].removesuffix('_ccg_auc')}_underpowered"), {})
    remarks = [f"{undefined:.0f} resamples undefined"] if undefined else []
    if underpowered.get("estimate"):
        remarks.append(f"underpowered: fewer than {MINIMUM_IMAGES} images")
    return ", ".join(remarks)


def write(cells: Cells, metrics: pl.DataFrame, folder: Path) -> None:
    """Write metrics.csv and reliability.pdf, .png, .csv, and replace existing files of these names.

    Raises:
        DataError: The folder cannot be written.
    """
    from dualread.reporting.figures.drawing import house_style, save  # here, because a table does not need matplotlib
    from dualread.reporting.figures.reliability_diagram import diagram

    try:
        folder.mkdir(parents=True, exist_ok=True)
        metrics.write_csv(folder / "metrics.csv")
        with house_style():
            answers = {name: evaluated.answers for name, evaluated in cells.methods.items()}
            drawing = diagram(answers, unit=f"value of {cells.cluster}" if cells.cluster else "answer")
            save(drawing, folder, "reliability", title=f"Reliability of {cells.source.name}")
    except OSError as error:
        raise DataError(f"--out {folder}: cannot be written ({error.strerror}). Choose another folder.") from error
