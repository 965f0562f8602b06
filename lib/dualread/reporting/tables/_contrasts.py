"""What the tables of intervals and differences share: the rows of a contrasts table by key, and their printed form."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from dualread.declared.tables import LabeledDataset, Layout
from dualread.reporting.tables._captions import few_images
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Entry, Row
from dualread.reporting.tables.format import DASH, number, signed

# The metrics that have a column, each with the name of its mean over OOD data sets.
OOD_MEAN = {
    **dict.fromkeys(("auroc", "brier", "squared_calibration_error"), "ood6"),
    **dict.fromkeys(("natural_ccg_auc", "strict_ccg_auc"), "ood_ccg"),
}

_CSV = {
    "table": pl.String,
    **dict.fromkeys(("backbone", "contrast", "dataset", "split", "metric", "method", "baseline"), pl.String),
    **dict.fromkeys(("mean", "std"), pl.Float64),
    "n_seeds": pl.Int64,
    **dict.fromkeys(("low", "high", "low_retrained", "high_retrained"), pl.Float64),
    "p": pl.Float64,
    "p_at_most": pl.Boolean,
    "p_holm": pl.Float64,
    "p_holm_at_most": pl.Boolean,
    **dict.fromkeys(("p_retrained", "p_holm_retrained"), pl.Float64),
    **dict.fromkeys(("n", "n_clusters", "n_undefined"), pl.Int64),
    "short": pl.String,
    "printed": pl.String,
    "reason": pl.String,
}

ContrastRow = Mapping[str, Any]


class Key(NamedTuple):
    """The key of a row of a contrasts table; `contrast` and `baseline` are None for a method's own value."""

    backbone: str
    contrast: str | None
    dataset: str
    metric: str
    method: str
    baseline: str | None


class Difference(NamedTuple):
    """A printed cell: the row behind it, and what the table and its CSV file print."""

    row: ContrastRow
    entry: Entry
    printed: str


def by_key(contrasts: pl.DataFrame) -> dict[Key, ContrastRow]:
    """Return, by key, the differences of a contrasts table and the methods' own values on test sets."""
    rows = contrasts.filter(pl.col("contrast").is_not_null() | (pl.col("split") == "test"))
    return {Key(*(row[name] for name in Key._fields)): row for row in rows.iter_rows(named=True)}


def places(layout: Layout) -> list[LabeledDataset | None]:
    """Return the data sets of the layout, the in-distribution one first, and None for the means over OOD data sets."""
    return [layout.id_dataset, *(dataset for dataset in layout.datasets if not dataset.id), None]


def dataset_of(place: LabeledDataset | None, metric: str) -> str:
    """Return the name of the data set, or of the mean over OOD data sets where `place` is None, for a metric."""
    return place.name if place else OOD_MEAN[metric]


def limits(row: ContrastRow, ends: str = "") -> str:
    """Return an interval, [.941, .962], with signs where it is a difference's; a dash where there is none.

    Args:
        row: The row of a contrasts table.
        ends: "" for that of these seeds, "_retrained" for that of retrained actors.
    """
    low, high = row[f"low{ends}"], row[f"high{ends}"]
    if low is None:
        return DASH
    show = number if row["baseline"] is None else signed
    return f"[{show(low)}, {show(high)}]"


def interval_cell(row: ContrastRow) -> Difference:
    """Return the cell that prints the interval of these seeds alone."""
    return _alone(row, limits(row))


def retrained_cell(row: ContrastRow) -> Difference:
    """Return the cell that prints the interval of retrained actors alone."""
    return _alone(row, limits(row, "_retrained"))


def _alone(row: ContrastRow, text: str) -> Difference:
    return Difference(row, text if text == DASH else f"${text}$", text)


def short_sides(row: ContrastRow) -> list[str]:
    """Return the sides, source and donor, of which a CCG value has few images."""
    return row["short"].split(" and ") if row["short"] else []


def line(label: Entry, cells: Iterable[Difference | None]) -> Row:
    """Return a row after its label. A cell that the study does not compute is blank."""
    return Row([label, *(cell.entry if cell else "" for cell in cells)])


def csv_rows(table: str, cells: Iterable[Difference]) -> pl.DataFrame:
    """Return one row per printed cell: the values with full precision, and the printed text."""
    rows = [
        {
            **{name: cell.row[name] for name in _CSV if name in cell.row},
            **{"table": table, "mean": cell.row["estimate"], "std": cell.row["seed_std"], "printed": cell.printed},
        }
        for cell in cells
    ]
    return pl.DataFrame(rows, schema=_CSV)


def notes(cells: Iterable[Difference], name: str) -> list[str]:
    """Return the sentences that explain the marks in the table, and what the CSV file adds."""
    cells = list(cells)
    sentences = few_images(side for cell in cells if "†" in cell.printed for side in short_sides(cell.row))
    if any(cell.printed == DASH for cell in cells):
        sentences.append(f"---: undefined or not measured; {escape(name)}.csv has the reason.")
    if any(cell.row["n_undefined"] for cell in cells):
        sentences.append(f"Resamples in which a value is undefined are left out; {escape(name)}.csv counts them.")
    return sentences
