"""Two controls on phantom images, in sentences: would the tests find what is there, and nothing where nothing is?

`dualread.evaluation.difficulty` computes them. A study of real images has none, because nobody knows how hard they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.tables import read_table
from dualread.declared.columns import DIFFICULTY
from dualread.evaluation.difficulty import EXCHANGED, OWN
from dualread.reporting.report._grid import Grid
from dualread.reporting.report._sentences import listed, p_words
from dualread.reporting.tables.format import number
from dualread.reporting.tables.significance import is_significant

Row = Mapping[str, Any]
Labels = Mapping[str, Mapping[str, str]]

_POSITIVE, _NEGATIVE = "Positive control", "Negative control"
_READINGS = {OWN: "Own image", EXCHANGED: "Another image"}


@dataclass(frozen=True, kw_only=True)
class Controls:
    """The controls of a study; empty where the true difficulty of its images is not known.

    Attributes:
        texts: (title, sentences).
        grids: The numbers of every method, one table per backbone.
    """

    texts: Sequence[tuple[str, Sequence[str]]] = ()
    grids: Sequence[Grid] = ()


def read(study: Path, labels: Labels) -> Controls:
    """Return the controls of the study in a folder; see `describe`."""
    folders = sorted(path.parent for path in study.glob("difficulty/*/MANIFEST.json"))
    tables = [read_table(folder / "difficulty.parquet", DIFFICULTY) for folder in folders]
    return describe(pl.concat(tables), labels) if tables else Controls()


def describe(difficulty: pl.DataFrame, labels: Labels) -> Controls:
    """Return the sentences and the numbers of a difficulty table.

    Args:
        difficulty: The table.
        labels: {name: label} of backbones, actors, methods and data sets, in the order in which they are shown.
    """
    parts = difficulty.partition_by("actor", "backbone", maintain_order=True)
    found = [_Cell(part.to_dicts(), labels) for part in parts]
    positive = [sentence for cell in found for sentence in cell.positive()]
    negative = [cell.negative() for cell in found]
    datasets = listed(list(dict.fromkeys(cell.dataset for cell in found)))
    opening = (
        "Whether an answer is right depends on the image here: on how hazy it is, which is known of every phantom of"
        f" {datasets}."
    )
    exchanged = (
        "Now each answer gets the confidence in the same answer to the same question about another image, which cannot "
        "tell more than question and answer do."
    )
    return Controls(
        texts=[(_POSITIVE, [opening, *positive]), (_NEGATIVE, [exchanged, *negative])],
        grids=[cell.grid() for cell in found],
    )


class _Cell:
    """The rows of one actor and backbone."""

    def __init__(self, rows: Sequence[Row], labels: Labels) -> None:
        self._rows, self._labels = rows, labels
        self.dataset = self._label("datasets", rows[0]["dataset"])
        self._backbone = self._label("backbones", rows[0]["backbone"])
        self._actor = self._label("actors", rows[0]["actor"])
        self._nulls = list(dict.fromkeys(row["baseline"] for row in rows if row["baseline"]))
        tested = dict.fromkeys(row["method"] for row in rows if row["baseline"])
        self._methods = [name for name in labels.get("methods", {}) if name in tested]
        self._methods += [name for name in tested if name not in self._methods]

    def positive(self) -> Iterator[str]:
        """Yield what is known, and what the methods know."""
        clear, hazy = (self._row(OWN, metric=f"accuracy_{kind}") for kind in ("clear", "hazy"))
        known = self._row(OWN)
        yield (
            f"{self._backbone}, {self._actor}: {_with_interval(clear)} of the answers about {clear['n_clusters']} clear"
            f" images are right, and {_with_interval(hazy)} about {hazy['n_clusters']} hazy ones. To know the haze and "
            f"nothing else gives an AUROC of {_with_interval(known)}; {self._of_nulls(OWN)}."
        )
        yield self._above(OWN)

    def negative(self) -> str:
        """Return what the methods seem to know where they can know nothing."""
        rows = {name: self._row(EXCHANGED, name) for name in self._methods}
        defined = {name: row for name, row in rows.items() if row["estimate"] is not None}
        highest = max(defined, key=lambda name: defined[name]["estimate"], default=None)
        text = f"{self._backbone}, {self._actor}: {self._of_nulls(EXCHANGED)}. {self._above(EXCHANGED)}"
        if highest is None:
            return text
        return f"{text} The highest AUROC is that of {self._method(highest)}, {_with_interval(rows[highest])}."

    def grid(self) -> Grid:
        """Return the AUROC of every method with both readings, and the p-values of the differences from the nulls."""
        against = [f"p, {self._method(null)}" for null in self._nulls]
        heads = [f"{name}: {what}" for name in _READINGS.values() for what in ("AUROC", *against)]
        rows = [(self._method(name), *self._cells(name)) for name in [*self._methods, *self._nulls]]
        return Grid(
            caption=f"{self._backbone}, {self._actor}: AUROC on {self.dataset} of the confidence in the answer itself,"
            " and in an equal answer about another image; p-values of the differences from the nulls, adjusted by"
            " Holm's method over all methods and nulls",
            columns=("Method", *heads),
            rows=[("True difficulty", _with_interval(self._row(OWN)), *[""] * (len(heads) - 1)), *rows],
            right=frozenset(range(1, len(heads) + 1)),
        )

    def _cells(self, method: str) -> Iterator[str]:
        for reading in _READINGS:
            yield _with_interval(self._row(reading, method))
            for null in self._nulls:
                yield "" if method in self._nulls else _p(self._row(reading, method, null))

    def _above(self, reading: str) -> str:
        """Say which methods are significantly above all nulls."""
        above = [name for name in self._methods if self._is_above(reading, name)]
        nulls = {1: "the null", 2: "both nulls"}.get(len(self._nulls), "all nulls")
        if not above:
            return f"No method is significantly above {nulls}."
        with_p = [
            f"{self._method(name)} {_with_interval(self._row(reading, name))} (p {self._largest_p(reading, name)})"
            for name in above
        ]
        return f"Significantly above {nulls}: {listed(with_p)}; {_others(len(self._methods) - len(above))}."

    def _is_above(self, reading: str, method: str) -> bool:
        rows = [self._row(reading, method, null) for null in self._nulls]
        return all(is_significant(row) and row["estimate"] > 0 for row in rows)

    def _largest_p(self, reading: str, method: str) -> str:
        return _p(max((self._row(reading, method, null) for null in self._nulls), key=_size_of_p))

    def _of_nulls(self, reading: str) -> str:
        nulls = [f"{self._method(null)} {_with_interval(self._row(reading, null))}" for null in self._nulls]
        return f"without the image, {listed(nulls)}"

    def _row(self, reading: str, method: str | None = None, null: str | None = None, metric: str = "auroc") -> Row:
        wanted = {"reading": reading, "metric": metric, "method": method, "baseline": null}
        return next(row for row in self._rows if all(row[key] == value for key, value in wanted.items()))

    def _method(self, name: str) -> str:
        return self._label("methods", name)

    def _label(self, kind: str, name: str) -> str:
        return self._labels.get(kind, {}).get(name, name)


def _others(n: int) -> str:
    return {0: "that is every method", 1: "the other method is not"}.get(n, f"the other {n} methods are not")


def _with_interval(row: Row) -> str:
    if row["estimate"] is None:
        return f"undefined ({row['reason']})"
    ends = "" if row["low"] is None else f" [{number(row['low'])}, {number(row['high'])}]"
    return f"{number(row['estimate'])}{ends}"


def _size_of_p(row: Row) -> float:
    """Return the larger of the p-values for these seeds and for retrained actors."""
    return max(p for p in (row["p_holm"], row["p_holm_retrained"], 0.0) if p is not None)


def _p(row: Row) -> str:
    """Return that p-value in words; a dash where there is none."""
    if row["p_holm"] is None:
        return "—"
    p = _size_of_p(row)
    return p_words(p, at_most=bool(row["p_holm_at_most"]) and p == row["p_holm"])
