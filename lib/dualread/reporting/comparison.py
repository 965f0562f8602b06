"""Every cell of the paper beside ours, with a verdict.

The distance between our number and the published one is measured in published standard deviations. Both the published
mean and its deviation are rounded: each is known to half a unit of its last decimal, h. A difference counts as beyond k
deviations only if rounding cannot explain it: |ours - published| > h + k (deviation + h). This also holds for a
deviation that is printed as .000.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from dualread.reporting.tables.published import OOD_MEMBERS, PaperPlace, Printed, place_of, published_cells
from dualread.schema.metrics import CompareWithPaperSpec

# Each cell of the paper gets exactly one verdict. Our deviation is shown, but has no influence.
VERDICTS = {
    "as printed": "our number, rounded as in the paper, equals the printed one",
    "within 1 SD": "our number differs by at most one published standard deviation",
    "within 2 SD": "our number differs by at most two published standard deviations",
    "beyond 2 SD": "our number differs by more than two, and rounding does not explain it; two laboratories with three "
    "seeds each, whose truth is the same, differ so in 13% of cells by chance",
    "no published SD": "our number differs, and the paper gives no deviation (one run): see the difference",
    "undefined here": "the study has this cell, but its value is undefined: see the reason",
    "not in this study": "the study has no such cell: see the reason",
}

_TOLERANCE = 1e-9  # half a unit is not exact in binary
_CSV = {
    **dict.fromkeys(PaperPlace._fields, pl.String),
    **dict.fromkeys(("published", "published_std", "ours", "ours_std"), pl.Float64),
    "n_seeds": pl.Int64,
    **dict.fromkeys(("difference", "difference_in_published_stds"), pl.Float64),
    **dict.fromkeys(("verdict", "reason"), pl.String),
}


class _OurCell(NamedTuple):
    """One of our cells in the paper's unit and sign; `name` distinguishes it from others at the same place."""

    name: str
    mean: float | None
    std: float | None
    n_seeds: int | None
    reason: str | None


def compare(tables: Mapping[str, pl.DataFrame], study: CompareWithPaperSpec) -> pl.DataFrame:
    """Return one row per cell of the paper, in the paper's order.

    Where several of our cells correspond to one cell of the paper, the one that differs most is compared, and `reason`
    lists all. A mean over other data sets than the paper's is another quantity and is not compared. The tables are the
    CSV of each of ours, all columns as text.
    """
    ours: dict[PaperPlace, list[_OurCell]] = defaultdict(list)
    for table, cells in tables.items():
        for cell in cells.iter_rows(named=True):
            place_and_factor = place_of(table, cell, study.actors)
            if place_and_factor and _is_same_mean(cell["dataset"] or "", study):
                place, factor = place_and_factor
                # In table data, the first line of a split is for all its roles together.
                if table != "data" or place not in ours:
                    ours[place].append(_as_ours(table, cell, factor))
    rows = [_row(place, printed, ours.get(place, []), study) for place, printed in published_cells().items()]
    return pl.DataFrame(rows, schema=_CSV, orient="row")


def verdict(printed: Printed, ours: float, digits: int) -> str:
    """Return the verdict on our number, compared with a published one that is printed with `digits` decimals."""
    half, away = 0.5 * 10**-digits, abs(ours - printed.mean) - _TOLERANCE
    if away <= half:
        return "as printed"
    if printed.std is None:
        return "no published SD"
    n = next((n for n in (1, 2) if away <= half + n * (printed.std + half)), None)
    return f"within {n} SD" if n else "beyond 2 SD"


def _is_same_mean(dataset: str, study: CompareWithPaperSpec) -> bool:
    return dataset not in OOD_MEMBERS or set(study.members[dataset]) == set(OOD_MEMBERS[dataset])


def _as_ours(table: str, cell: Mapping[str, str | None], factor: float) -> _OurCell:
    mean, std, seeds = (cell.get(name) for name in ("value" if table == "data" else "mean", "std", "n_seeds"))
    return _OurCell(
        name=f"{cell.get('method') or ''} on {cell['dataset']}",
        mean=None if mean is None else factor * float(mean),
        std=None if std is None else abs(factor) * float(std),
        n_seeds=None if seeds is None else int(seeds),
        reason=cell["reason"],
    )


def _row(place: PaperPlace, printed: Printed, candidates: Sequence[_OurCell], study: CompareWithPaperSpec) -> tuple:
    if not candidates:
        return (*place, *printed, *[None] * 5, "not in this study", _why_missing(place, study))
    ours = max(candidates, key=lambda cell: float("inf") if cell.mean is None else abs(cell.mean - printed.mean))
    notes = []
    if place.is_gain:
        notes.append("the paper prints a gain, so this is baseline minus method too")
    if len(candidates) > 1:
        means = [f"{c.name} {'undefined' if c.mean is None else f'{c.mean:.{place.digits}f}'}" for c in candidates]
        notes.append(f"one cell in the paper, several here: {', '.join(means)}")
    if ours.mean is None:
        told, difference, in_stds = "undefined here", None, None
        notes.insert(0, ours.reason or "no reason is given")
    else:
        told, difference = verdict(printed, ours.mean, place.digits), ours.mean - printed.mean
        in_stds = difference / printed.std if printed.std else None
        notes += ["the published deviation is printed as zero"] if printed.std == 0 else []
    reason = "; ".join(notes) or None
    return (*place, *printed, ours.mean, ours.std, ours.n_seeds, difference, in_stds, told, reason)


def _why_missing(place: PaperPlace, study: CompareWithPaperSpec) -> str:
    if place.backbone and place.backbone not in study.backbones:
        return f"no backbone {place.backbone}"
    mean = place.quantity.dataset
    if mean in OOD_MEMBERS and not _is_same_mean(mean, study):
        over = ", ".join(study.members[mean]) or "none"
        return f"the paper's mean is over {', '.join(OOD_MEMBERS[mean])}, the study's over {over}"
    return f"no {place.method or place.metric} on {place.dataset} in a table {place.table}"


_HEAD = ("data set", "subset", "method", "metric", "paper", "here", "difference", "in SD", "verdict", "reason")
_ERRATA = "Where the paper contradicts itself, in numbers that it prints twice and in words: docs/errata.md."


def page(cells: pl.DataFrame, study: str) -> str:
    """Return the page of a study's `cells` (see `dualread.reporting.comparison.compare`)."""
    lines = [*_summary(cells, study), "", "## Cell by cell"]
    for (table, backbone), group in cells.group_by("table", "backbone", maintain_order=True):
        lines += ["", f"### {table}" + (f", {backbone}" if backbone else ""), ""]
        lines += _table(_HEAD, (_line(row) for row in group.iter_rows(named=True)))
    return "\n".join([*lines, "", _ERRATA, ""])


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


def _line(row: dict) -> list[str]:
    place = PaperPlace(*(row[name] for name in PaperPlace._fields))
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
