"""An evaluation on one screen: a row per method, a column per metric, with its interval."""

from collections.abc import Mapping, Sequence

import polars as pl

_COLUMNS = {  # the metrics, and their heads
    "accuracy": "accuracy",
    "auroc": "AUROC",
    "brier": "Brier",
    "ece15": "ECE-15",
    "natural_ccg_auc": "CCG-AUC",
}
_MOST_METHODS = 16  # which leave room on a screen of 24 lines
_LONGEST_NAME = 22


def summary(metrics: pl.DataFrame, warnings: Sequence[str], *, more: Sequence[str]) -> str:
    """Return the table as text, at most 100 columns wide.

    Args:
        metrics: As in `Evaluation`.
        warnings: As in `Evaluation`; they are counted.
        more: Names of further tables that there are.
    """
    lines = []
    of_all = metrics.filter(subset="all")
    for dataset in of_all["dataset"].unique(maintain_order=True):
        rows = of_all.filter(pl.col("dataset").eq_missing(pl.lit(dataset)))
        lines += [*([] if dataset is None else [f"{dataset}:"]), *_table(rows)]
    lines.append("95% intervals over images; a dash is undefined, .metrics has the reasons and all other metrics")
    if more:
        lines.append(f"there are also {', '.join(f'.{name}' for name in more)}")
    if warnings:
        lines.append(f"{len(warnings)} warnings in .warnings, the first: {warnings[0]:.80}")
    return "\n".join(lines)


def _table(rows: pl.DataFrame) -> list[str]:
    cell = {(row["method"], row["metric"]): row for row in rows.iter_rows(named=True)}
    shown = [name for name in _COLUMNS if rows.filter(metric=name)["estimate"].count()]
    methods = rows["method"].unique(maintain_order=True).to_list()
    table = [["", "n", *(_COLUMNS[name] for name in shown)]]
    for method in methods[:_MOST_METHODS]:
        n = cell.get((method, "accuracy"), {}).get("n")
        cells = [_text(cell.get((method, name))) for name in shown]
        table.append([str(method)[:_LONGEST_NAME], "-" if n is None else str(n), *cells])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in table
    ]
    left = len(methods) - _MOST_METHODS
    return [*lines, f"... and {left} more methods"] if left > 0 else lines


def _text(row: Mapping | None) -> str:
    if row is None or row["estimate"] is None:
        return "-"
    interval = "" if row["low"] is None else f" {_short(row['low'])}-{_short(row['high'])}"
    return f"{_short(row['estimate'])}{interval}"


def _short(value: float) -> str:
    """Return a share with three decimals and without its zero: .907; numbers that are none as they are."""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 and text.lstrip("-").startswith("0.") else text
