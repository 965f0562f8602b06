"""Joined rows as arrays, metrics as functions of these arrays, and masks that choose the rows a metric uses."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import polars as pl

from dualread.evaluation.join import Joined, Rows
from dualread.evaluation.metrics import grounding
from dualread.evaluation.statistics.bootstrap import ClusterDraws

T = TypeVar("T")


class Columns:
    """Joined rows, column by column, for the many metrics that read the same few columns.

    Reading a column of a data frame can take longer than computing a metric from it. Therefore each column is turned
    into an array once, each mask is computed once, and a subset takes its rows from the arrays of the whole: `read`
    returns for a method, a column, and what else the method is given, an array whose last axis is the rows.
    """

    def __init__(self, n: int, read: Callable[..., np.ndarray]) -> None:
        self._n, self._read = n, read
        self._known: dict[object, Any] = {}

    @classmethod
    def of(cls, frame: pl.DataFrame) -> "Columns":
        """Return the columns of a data frame."""
        # Many rows have the same texts: of a million rows, names of images alone take 100 MB as texts.
        frame = frame.with_columns(pl.col(pl.String).exclude("sample_id").cast(pl.Categorical))
        # The function does not refer to the columns, which are therefore freed as soon as nobody needs them.
        return cls(len(frame), lambda method, *names: _READ[method](frame, *names))

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the values of a column, [n]."""
        return self._array("values", name)

    def mask(self, mask: "Mask") -> np.ndarray:
        """Return the rows that `mask` chooses, bool [n]."""
        return self.once(mask, lambda: mask(self))

    def codes(self, name: str) -> np.ndarray:
        """Return small integers >= 0 for the values of a column, int [n]; equal values have equal integers."""
        return self._array("codes", name)

    def n_distinct(self, name: str, chosen: np.ndarray) -> int:
        """Return the number of distinct values of a column in the rows `chosen` (bool [n])."""
        return int(np.count_nonzero(np.bincount(self.codes(name)[chosen])))

    def cluster(self, name: str, draws: ClusterDraws) -> np.ndarray:
        """Return the cluster indices in `draws` of the images in a column, int64 [n]."""
        return self._array("cluster", name, draws)

    def cluster_numbers(self, *names: str) -> np.ndarray:
        """Return numbers for the images in several columns, int64 [columns, n], in the order of the images' names.

        Equal images have equal numbers, whatever their column. A part of the rows has the numbers of the whole.
        """
        return self._array("cluster_numbers", *names)

    def where(self, chosen: np.ndarray) -> "Columns":
        """Return the rows `chosen`: a mask, bool [n], or the places of rows, int [m]."""
        n = int(np.count_nonzero(chosen)) if chosen.dtype == np.bool_ else len(chosen)
        return Columns(n, lambda *what: self._array(*what)[..., chosen])

    def in_order(self, order: np.ndarray) -> "Columns":
        """Return the rows at the places `order`, int [n]; unlike `where`, it does not keep the columns of self."""
        read = self._read
        return Columns(len(order), lambda *what: read(*what)[..., order])

    def once(self, key: object, find: Callable[[], T]) -> T:
        """Return what `find` returns, and compute it once."""
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]

    def _array(self, *what: Any) -> np.ndarray:
        return self.once(what, lambda: self._read(*what))


def _values(frame: pl.DataFrame, name: str) -> np.ndarray:
    """Return a column as an array, in which equal texts are one object: answer types are two texts, not a million."""
    values = frame[name]
    if values.dtype not in (pl.Categorical, pl.String):
        return values.to_numpy()
    texts = values.drop_nulls().unique().cast(pl.String)
    places = values.cast(pl.Enum(texts)).to_physical().cast(pl.Int64).fill_null(len(texts))
    return np.array([*texts, None], dtype=object)[places.to_numpy()]


def _codes(frame: pl.DataFrame, name: str) -> np.ndarray:
    return frame[name].to_physical().to_numpy().astype(np.int64)


def _cluster(frame: pl.DataFrame, name: str, draws: ClusterDraws) -> np.ndarray:
    # Finding images by their name takes long, so that only one row of each image is looked up.
    of_rows = _codes(frame, name)
    row = np.zeros(of_rows.max(initial=-1) + 1, dtype=np.int64)
    row[of_rows] = np.arange(len(of_rows))
    return draws.cluster_of(frame[name][row].cast(pl.String))[of_rows] if len(of_rows) else of_rows


def _cluster_numbers(frame: pl.DataFrame, *names: str) -> np.ndarray:
    images = pl.concat(frame[name].unique().cast(pl.String).alias("image") for name in names)
    known = pl.Enum(images.unique().sort())
    return np.stack([frame[name].cast(known).to_physical().to_numpy().astype(np.int64) for name in names])


_READ = {"values": _values, "codes": _codes, "cluster": _cluster, "cluster_numbers": _cluster_numbers}
OfColumns = Callable[[Columns], float]
Mask = Callable[[Columns], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class CellColumns:
    """The tables of `Joined` as columns; a table that does not exist is the reason why, as text."""

    answers: Columns
    pairs: Columns | str
    fixed: Columns | str
    shuffled: Columns | str

    @classmethod
    def of(cls, evaluated: Joined) -> "CellColumns":
        """Return the columns of every table."""

        def columns(rows: Rows) -> Columns | str:
            return rows if isinstance(rows, str) else Columns.of(rows)

        # Many metrics sort by confidence, which takes a twentieth of the time where rows are sorted already.
        answers = Columns.of(evaluated.answers)
        answers = answers.in_order(np.lexsort((answers["correct"], answers["confidence"])))
        pairs, fixed, shuffled = map(columns, (evaluated.pairs, evaluated.fixed, evaluated.shuffled))
        return cls(answers=answers, pairs=pairs, fixed=fixed, shuffled=shuffled)

    def of_type(self, answer_type: str) -> "CellColumns":
        """Return the rows whose question has one answer type."""
        return self.where("answer_type", lambda types: types == answer_type)

    def where(self, column: str, chosen: Callable[[np.ndarray], np.ndarray]) -> "CellColumns":
        """Return the rows of every table that `chosen` chooses by the values of a column of theirs."""

        def part(rows: Columns) -> Columns:
            return rows.where(np.asarray(chosen(rows[column]), dtype=np.bool_))

        others = {"pairs": self.pairs, "fixed": self.fixed, "shuffled": self.shuffled}
        parts = {name: rows if isinstance(rows, str) else part(rows) for name, rows in others.items()}
        return CellColumns(answers=part(self.answers), **parts)


def on_columns(metric: Callable[..., float], *columns: str) -> OfColumns:
    """Return `metric` as a function of rows that reads these columns."""
    return lambda rows: metric(*(rows[column] for column in columns))


def all_rows(rows: Columns) -> np.ndarray:
    """Return the mask that chooses every row."""
    return np.ones(len(rows), dtype=np.bool_)


def numbered(names: pl.Series) -> np.ndarray:
    """Return the number of each value among all distinct ones, in their order, int64 [n]; numbers sort faster."""
    return names.rank("dense").to_numpy().astype(np.int64) - 1


@cache
def decisive(other: str) -> Mask:
    """Return the mask that chooses rows correct on their own image and wrong under `other` (donor, fixed, shuffled)."""
    return lambda rows: grounding.decisive(rows["correct_real"], rows[f"correct_{other}"])


def strict_decisive(rows: Columns) -> np.ndarray:
    """Return the mask that chooses decisive donor pairs with the same canonical answer on both images."""
    names = ("correct_real", "correct_donor", "canonical_answer_real", "canonical_answer_donor")
    mask = rows.mask(decisive("donor")).copy()
    # Comparing texts is slow, so only decisive pairs are compared.
    mask[mask] = grounding.strict_decisive(*(rows[name][mask] for name in names))
    return mask
