"""Two controls on phantom images: would the tests find what is there, and nothing where nothing is?

`dualread.evaluation.difficulty` computes them. A study of real images has none, because nobody knows how hard they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.tables import read_table
from dualread.evaluation.difficulty import EXCHANGED, OWN
from dualread.reporting.report._grid import Grid
from dualread.reporting.report.findings import interval
from dualread.reporting.tables.format import number, p_text
from dualread.reporting.tables.significance import is_significant
from dualread.schema.columns import DIFFICULTY

Row = Mapping[str, Any]
Labels = Mapping[str, Mapping[str, str]]

_READINGS = {OWN: "Own image", EXCHANGED: "Another image"}
TEXTS = {
    "Positive control": "Whether an answer is right depends on the image here: on how hazy it is, which is known of "
    "every phantom. A confidence that follows the image is significantly above every null: see Own image.",
    "Negative control": "With Another image, each answer gets the confidence in the same answer to the same question "
    "about another image, which cannot tell more than question and answer do. A method that is significantly above "
    "every null there seems to know what it cannot know.",
}


@dataclass(frozen=True, kw_only=True)
class Controls:
    """The controls of a study; empty where the true difficulty of its images is not known.

    Attributes:
        texts: {title: sentences}.
        grids: The numbers of every method, one table per actor and backbone.
    """

    texts: Mapping[str, str]
    grids: Sequence[Grid] = ()


def read(study: Path, labels: Labels) -> Controls:
    """Return the controls of the study in a folder; see `describe`."""
    folders = sorted(path.parent for path in study.glob("difficulty/*/MANIFEST.json"))
    tables = [read_table(folder / "difficulty.parquet", DIFFICULTY) for folder in folders]
    return describe(pl.concat(tables), labels) if tables else Controls(texts={})


def describe(difficulty: pl.DataFrame, labels: Labels) -> Controls:
    """Return the sentences and the numbers of a difficulty table.

    Args:
        difficulty: The table.
        labels: {name: label} of backbones, actors, methods and data sets, in the order in which they are shown.
    """
    parts = difficulty.partition_by("actor", "backbone", maintain_order=True)
    return Controls(texts=TEXTS, grids=[_Cell(part.to_dicts(), labels).grid() for part in parts])


class _Cell:
    """The rows of one actor and backbone."""

    def __init__(self, rows: Sequence[Row], labels: Labels) -> None:
        self._rows, self._labels = rows, labels
        self._nulls = list(dict.fromkeys(row["baseline"] for row in rows if row["baseline"]))
        tested = dict.fromkeys(row["method"] for row in rows if row["baseline"])
        self._methods = [name for name in labels.get("methods", {}) if name in tested]
        self._methods += [name for name in tested if name not in self._methods]

    def grid(self) -> Grid:
        """Return the AUROC of every method with both readings, the p-values of the differences, and the verdicts."""
        clear, hazy = (self._row(OWN, metric=f"accuracy_{kind}") for kind in ("clear", "hazy"))
        names = {kind: self._label(f"{kind}s", self._rows[0][kind]) for kind in ("backbone", "actor", "dataset")}
        against = [f"p, {self._label('methods', null)}" for null in self._nulls]
        heads = [f"{name}: {what}" for name in _READINGS.values() for what in ("AUROC", *against, "verdict")]
        rows = [(self._label("methods", name), *self._cells(name)) for name in [*self._methods, *self._nulls]]
        return Grid(
            caption=f"{names['backbone']}, {names['actor']}: {_with_interval(clear)} of the answers about"
            f" {clear['n_clusters']} clear images of {names['dataset']} are right, and {_with_interval(hazy)} about"
            f" {hazy['n_clusters']} hazy ones. AUROC of the confidence in the answer itself, and in an equal answer"
            " about another image; True difficulty: of the haze and nothing else. p-values of the differences from the"
            " nulls are adjusted by Holm's method over all methods and nulls",
            columns=("Method", *heads),
            rows=[("True difficulty", _with_interval(self._row(OWN)), *[""] * (len(heads) - 1)), *rows],
            right=frozenset(range(1, len(heads) + 1)),
        )

    def _cells(self, method: str) -> Iterator[str]:
        for reading in _READINGS:
            yield _with_interval(self._row(reading, method))
            against = [] if method in self._nulls else [self._row(reading, method, null) for null in self._nulls]
            yield from map(_p, against) if against else [""] * len(self._nulls)
            is_above = all(is_significant(row) and row["estimate"] > 0 for row in against)
            yield "" if not against else "above every null" if is_above else "not above every null"

    def _row(self, reading: str, method: str | None = None, null: str | None = None, metric: str = "auroc") -> Row:
        wanted = {"reading": reading, "metric": metric, "method": method, "baseline": null}
        return next(row for row in self._rows if all(row[key] == value for key, value in wanted.items()))

    def _label(self, kind: str, name: str) -> str:
        return self._labels.get(kind, {}).get(name, name)


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
