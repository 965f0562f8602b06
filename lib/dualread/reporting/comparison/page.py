"""The comparison as a page of Markdown: counts, and every cell."""

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from dualread.reporting.comparison.cells import VERDICTS
from dualread.reporting.tables.published import Place, Printed

_HEAD = ("data set", "subset", "method", "metric", "paper", "here", "difference", "in SD", "verdict", "reason")
_ERRATA = "Where the paper contradicts itself, in numbers that it prints twice and in words: docs/errata.md."


def page(cells: pl.DataFrame, study: str) -> str:
    """Return the page of a study's `cells` (see `dualread.reporting.comparison.cells.compare`)."""
    return "\n".join([*_summary(cells, study), *_all_cells(cells), "", _ERRATA, ""])


def _summary(cells: pl.DataFrame, study: str) -> Iterator[str]:
    yield f"# Study {study} compared with the paper"
    yield ""
    yield (
        f"Each of the {len(cells):,} cells that the paper prints, with the number of this study. Differences are ours "
        "minus published, also in published standard deviations (SD). Published numbers are rounded to their last "
        "decimal: ours counts as beyond k SD only if rounding cannot explain it. Full precision: paper_comparison.csv."
    )
    yield ""
    yield from (f"- **{name}**: {meaning}" for name, meaning in VERDICTS.items())
    yield from ["", "## Summary", ""]
    tables = cells["table"].unique(maintain_order=True)
    lines = [_counts(name, cells.filter(table=name)) for name in tables]
    yield from _table(("table", "cells", *VERDICTS), [*lines, _counts("all", cells)])


def _counts(name: str, cells: pl.DataFrame) -> list[str]:
    return [name, str(len(cells)), *(str(len(cells.filter(verdict=verdict))) for verdict in VERDICTS)]


def _all_cells(cells: pl.DataFrame) -> Iterator[str]:
    yield from ["", "## Cell by cell"]
    for (table, backbone), group in cells.group_by("table", "backbone", maintain_order=True):
        yield from ["", f"### {table}" + (f", {backbone}" if backbone else ""), ""]
        yield from _table(_HEAD, (_line(row) for row in group.iter_rows(named=True)))


def _line(row: dict) -> list[str]:
    place = Place(*(row[name] for name in Place._fields))
    in_stds = row["difference_in_published_stds"]
    return [
        *(place.dataset, place.subset, place.method, place.metric),
        _number(Printed(row["published"], row["published_std"]), place.digits),
        "" if row["ours"] is None else _number(Printed(row["ours"], row["ours_std"]), place.digits),
        "" if row["difference"] is None else f"{row['difference']:+.{place.digits}f}",
        "" if in_stds is None else f"{in_stds:+.1f}",
        row["verdict"],
        row["reason"] or "",
    ]


def _number(number: Printed, digits: int) -> str:
    return f"{number.mean:.{digits}f}" + ("" if number.std is None else f" ± {number.std:.{digits}f}")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(text.replace('|', '/') for text in row)} |"
