"""Two controls on phantom images: would the tests find what is there, and nothing where nothing is?

`dualread.evaluation.difficulty` computes them. A study of real images has none, because nobody knows how hard they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.tables import read_table
from dualread.evaluation.difficulty import EXCHANGED, OWN
from dualread.reporting.report.findings import interval
from dualread.reporting.report.provenance import Grid, Labels
from dualread.reporting.tables.significance import is_significant
from dualread.reporting.tables.values import number, p_text
from dualread.schema.columns import DIFFICULTY

Row = Mapping[str, Any]

_READINGS = {OWN: "Own image", EXCHANGED: "Another image"}


def read(study: Path, labels: Labels) -> list[Grid]:
    """Return the controls of the study in a folder; see `describe`."""
    folders = sorted(path.parent for path in study.glob("difficulty/*/MANIFEST.json"))
    tables = [read_table(folder / "difficulty.parquet", DIFFICULTY) for folder in folders]
    return describe(pl.concat(tables), labels) if tables else []


def describe(difficulty: pl.DataFrame, labels: Labels) -> list[Grid]:
    """Return the numbers of every method, one table per actor and backbone.

    Args:
        difficulty: A difficulty table.
        labels: {name: label} of backbones, actors, methods and data sets, in the order in which they are shown.
    """
    parts = difficulty.partition_by("actor", "backbone", maintain_order=True)
    return [_grid(part.to_dicts(), labels) for part in parts]


def _grid(rows: Sequence[Row], labels: Labels) -> Grid:
    """Return the AUROC of every method with both readings, the p-values of the differences, and the verdicts."""
    row_of = {(row["reading"], row["metric"], row["method"], row["baseline"]): row for row in rows}
    of_methods = labels.get("methods", {})
    names = {
        kind: labels.get(f"{kind}s", {}).get(rows[0][kind], rows[0][kind]) for kind in ("backbone", "actor", "dataset")
    }
    nulls = list(dict.fromkeys(row["baseline"] for row in rows if row["baseline"]))
    tested = dict.fromkeys(row["method"] for row in rows if row["baseline"])
    methods = [*(name for name in of_methods if name in tested), *(name for name in tested if name not in of_methods)]
    clear, hazy = (row_of[OWN, f"accuracy_{kind}", None, None] for kind in ("clear", "hazy"))
    against = [f"p, {of_methods.get(null, null)}" for null in nulls]
    heads = [f"{name}: {what}" for name in _READINGS.values() for what in ("AUROC", *against, "verdict")]

    def cells(method: str) -> Iterator[str]:
        for reading in _READINGS:
            yield _with_interval(row_of[reading, "auroc", method, None])
            tests = [] if method in nulls else [row_of[reading, "auroc", method, null] for null in nulls]
            yield from map(_p, tests) if tests else [""] * len(nulls)
            is_above = all(is_significant(row) and row["estimate"] > 0 for row in tests)
            yield "" if not tests else "above every null" if is_above else "not above every null"

    difficulty = ("True difficulty", _with_interval(row_of[OWN, "auroc", None, None]), *[""] * (len(heads) - 1))
    return Grid(
        caption=f"{names['backbone']}, {names['actor']}: {_with_interval(clear)} of the answers about"
        f" {clear['n_clusters']} clear images of {names['dataset']} are right, and {_with_interval(hazy)} about"
        f" {hazy['n_clusters']} hazy ones. AUROC of the confidence in the answer itself, and in an equal answer"
        " about another image; True difficulty: of the haze and nothing else. p-values of the differences from the"
        " nulls are adjusted by Holm's method over all methods and nulls",
        columns=("Method", *heads),
        rows=[difficulty, *((of_methods.get(name, name), *cells(name)) for name in [*methods, *nulls])],
        right=range(1, len(heads) + 1),
    )


def _with_interval(row: Row) -> str:
    if row["estimate"] is None:
        return f"undefined ({row['reason']})"
    return f"{number(row['estimate'])}{interval(row)}"


def _p(row: Row) -> str:
    """Return the larger of the p-values for these seeds and for retrained actors; a dash where there is none."""
    if row["p_holm"] is None:
        return "—"
    p = max(row["p_holm"], row["p_holm_retrained"] or 0.0)
    return p_text(p, at_most=bool(row["p_holm_at_most"]) and p == row["p_holm"])
