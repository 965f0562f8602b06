"""Every cell of the paper beside ours, with a verdict.

How far ours is from the published number is measured in the published standard deviation. Both are known as printed
only: a mean to half a unit of its last decimal, h, and a deviation likewise. A difference is beyond k deviations where
it is so whatever was rounded, |ours - published| > h + k (deviation + h); a deviation that is printed as .000 is no
exception.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from dualread.reporting.tables.published import OOD_MEMBERS, Place, Printed, place_of, published_cells

# Each cell of the paper gets exactly one; the deviation of ours is shown and not judged.
VERDICTS = {
    "as printed": "ours, rounded as the paper rounds, is what it prints",
    "within 1 SD": "no farther away than one published standard deviation",
    "within 2 SD": "... than two",
    "beyond 2 SD": "farther away than two, whatever the paper rounded",
    "no published SD": "not as printed, and the paper gives no deviation (one run): see the difference",
    "undefined here": "the study has this cell and no number in it: see the reason",
    "not in this study": "the study has no such cell: see the reason",
}

_TOLERANCE = 1e-9  # half a unit is not exact in binary
_CSV = {
    **dict.fromkeys(Place._fields, pl.String),
    **dict.fromkeys(("published", "published_std", "ours", "ours_std"), pl.Float64),
    "n_seeds": pl.Int64,
    **dict.fromkeys(("difference", "difference_in_published_stds"), pl.Float64),
    **dict.fromkeys(("verdict", "reason"), pl.String),
}


@dataclass(frozen=True, kw_only=True)
class Study:
    """What a comparison has to know of a study besides its tables.

    Attributes:
        name: Its name.
        backbones: Their config names.
        actors: Whose answers each method judges.
        members: The data sets that ood6 and ood_ccg are means over.
    """

    name: str
    backbones: Sequence[str]
    actors: Mapping[str, str]
    members: Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class _Ours:
    """One of our cells in the paper's unit and direction; `name` tells it from others at the same place."""

    name: str
    mean: float | None
    std: float | None
    n_seeds: int | None
    reason: str | None


def compare(tables: Mapping[str, pl.DataFrame], study: Study) -> pl.DataFrame:
    """Return one row a cell of the paper, in the paper's order.

    Where several of ours are one cell of the paper, the one that fits worst is compared and `reason` has all. A mean
    over other data sets than the paper's is another quantity and is not compared.

    Args:
        tables: The CSV of each of our tables, all columns as text.
        study: The study that they are of.
    """
    ours: dict[Place, list[_Ours]] = defaultdict(list)
    for table, cells in tables.items():
        for cell in cells.iter_rows(named=True):
            found = place_of(table, cell, study.actors)
            if found and _is_same_mean(cell["dataset"] or "", study):
                place, factor = found
                # Of the lines of a split in table data, the first is of all its roles.
                if table != "data" or place not in ours:
                    ours[place].append(_as_ours(table, cell, factor))
    rows = [_row(place, printed, ours.get(place, []), study) for place, printed in published_cells().items()]
    return pl.DataFrame(rows, schema=_CSV, orient="row")


def verdict(printed: Printed, ours: float, digits: int) -> str:
    """Return the verdict on a number beside a published one with `digits` decimals."""
    half, away = 0.5 * 10**-digits, abs(ours - printed.mean) - _TOLERANCE
    if away <= half:
        return "as printed"
    if printed.std is None:
        return "no published SD"
    n = next((n for n in (1, 2) if away <= half + n * (printed.std + half)), None)
    return f"within {n} SD" if n else "beyond 2 SD"


def _is_same_mean(dataset: str, study: Study) -> bool:
    return dataset not in OOD_MEMBERS or set(study.members[dataset]) == set(OOD_MEMBERS[dataset])


def _as_ours(table: str, cell: Mapping[str, str | None], factor: float) -> _Ours:
    mean, std, seeds = (cell.get(name) for name in ("value" if table == "data" else "mean", "std", "n_seeds"))
    return _Ours(
        name=f"{cell.get('method') or ''} on {cell['dataset']}",
        mean=None if mean is None else factor * float(mean),
        std=None if std is None else abs(factor) * float(std),
        n_seeds=None if seeds is None else int(seeds),
        reason=cell["reason"],
    )


def _row(place: Place, printed: Printed, candidates: Sequence[_Ours], study: Study) -> tuple:
    if not candidates:
        return (*place, *printed, *[None] * 5, "not in this study", _why_missing(place, study))
    ours = max(candidates, key=lambda found: float("inf") if found.mean is None else abs(found.mean - printed.mean))
    notes = []
    if place.is_gain:
        notes.append("the paper prints a gain: here baseline minus method, as there")
    if len(candidates) > 1:
        notes.append(
            "one cell there, several here: " + ", ".join(f"{c.name} {_text(c.mean, place)}" for c in candidates)
        )
    if ours.mean is None:
        told, difference, in_stds = "undefined here", None, None
        notes.insert(0, ours.reason or "no reason is given")
    else:
        told, difference = verdict(printed, ours.mean, place.digits), ours.mean - printed.mean
        in_stds = difference / printed.std if printed.std else None
        notes += ["the published deviation is printed as zero"] if printed.std == 0 else []
    reason = "; ".join(notes) or None
    return (*place, *printed, ours.mean, ours.std, ours.n_seeds, difference, in_stds, told, reason)


def _text(mean: float | None, place: Place) -> str:
    return "undefined" if mean is None else f"{mean:.{place.digits}f}"


def _why_missing(place: Place, study: Study) -> str:
    if place.backbone and place.backbone not in study.backbones:
        return f"no backbone {place.backbone}"
    mean = place.quantity.dataset
    if mean in OOD_MEMBERS and not _is_same_mean(mean, study):
        over = ", ".join(study.members[mean]) or "none"
        return f"the paper's mean is over {', '.join(OOD_MEMBERS[mean])}, the study's over {over}"
    return f"no {place.method or place.metric} on {place.dataset} in a table {place.table}"
