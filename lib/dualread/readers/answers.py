"""What readers see: an actor's answers, the views of them, and, for fitting alone, their labels.

`join_answers` makes them of the manifest, the graded completions, and the index of the replay.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dualread.errors import ArtifactError, ConfigError, UnfittedError

# The columns of `Answers.table`. The label is left out on purpose.
COLUMNS = (
    "sample_id",
    "dataset",
    "split",
    "role",
    "condition",
    "question_key",
    "canonical_answer",
    "verbalized_confidence",
    "parse_status",
)
# The columns of `Answers.tokens`: what the replay's index says about each answer's tokens.
TOKENS = ("token_log_probs", "answer_positions")
KEY = ("sample_id", "condition")
# The columns that are read of each table.
OF_MANIFEST = ("sample_id", "dataset", "split", "role", "question_key")
OF_GRADED = (*KEY, "sample_index", "canonical_answer", "verbalized_confidence", "parse_status")
OF_FEATURES = (*KEY, "sample_index", "row", *TOKENS)
# Of two answers in the order of code points: their similarity, at most 1, and whether they mean the same; None without
# a verdict.
Pairs = Mapping[tuple[str, str], tuple[float | None, bool | None]]


@dataclass(frozen=True, kw_only=True)
class ViewAnswers:
    """What an actor was asked or shown in addition, about the same answers and in their order.

    A view holds texts, log-probabilities of choices, hidden states, or pairs; the fields of the other kinds are None.

    Attributes:
        name: The entry of `views` in the config.
        texts: Per answer, further completions (samples, or replies to a prompt) in the order of sample_index. Empty for
            an invalid answer, about which the actor is not asked.
        token_log_probs: Per answer, the log-probabilities in nats of the tokens of each of its `texts`, stop token
            included: a series of lists of lists [n]. They are raw: before a temperature and before ids are forbidden.
        log_probs: Per choice, the log-probabilities in nats, float64 [n]. The probabilities of all choices need not add
            up to 1. NaN for an invalid answer.
        source: Returns a named tensor of a replay of the same completions with another image.
        rows: int [n], the row of that replay that belongs to each answer.
        pairs: Per answer, what a model says of each two different canonical answers to its question.
    """

    name: str
    texts: tuple[tuple[str, ...], ...] | None = None
    token_log_probs: pl.Series | None = None
    log_probs: Mapping[str, np.ndarray] | None = None
    source: Callable[[str], np.ndarray] | None = None
    rows: np.ndarray | None = None
    pairs: tuple[Pairs, ...] | None = None

    def completions(self) -> tuple[tuple[str, ...], ...]:
        """Return `texts`; a ConfigError if the view holds something else."""
        return self._kind(self.texts, "completions")

    def completion_log_probs(self) -> list[list[np.ndarray]]:
        """Return `token_log_probs`, float64 [tokens] of each completion of each answer; a ConfigError without any."""
        series = self._kind(self.token_log_probs, "log-probabilities of completions")
        return [[np.asarray(tokens, dtype=np.float64) for tokens in row or ()] for row in series.to_list()]

    def choices(self) -> Mapping[str, np.ndarray]:
        """Return `log_probs`; a ConfigError if the view holds something else."""
        return self._kind(self.log_probs, "choices")

    def features(self, name: str) -> np.ndarray:
        """Return the tensor `name` of the view's replay, float32 [n, D]; a ConfigError if the view has no states."""
        return self._kind(self.source, "states")(name)[self._kind(self.rows, "states")]

    def take(self, index: np.ndarray) -> "ViewAnswers":
        """Return the view of the answers at the integer positions `index`."""
        return replace(
            self,
            texts=None if self.texts is None else tuple(self.texts[i] for i in index),
            token_log_probs=None if self.token_log_probs is None else self.token_log_probs[index],
            log_probs=None if self.log_probs is None else {name: p[index] for name, p in self.log_probs.items()},
            rows=None if self.rows is None else self.rows[index],
            pairs=None if self.pairs is None else tuple(self.pairs[i] for i in index),
        )

    def _kind(self, value: Any, what: str) -> Any:
        if value is None:
            raise ConfigError(f"views.{self.name}: gives no {what}, which this reader needs. List another view.")
        return value


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Answers of one actor, without labels.

    Attributes:
        table: One row per answer, with the columns `COLUMNS`.
        source: Returns a named tensor of the replay, float32 [rows of the replay, D]; called when a tensor is used.
        rows: int [n], the row of the replay that belongs to each answer.
        views: The views that the method's config entry lists, in that order.
        others: Views that readers on which this one builds read; `base.score` gives each reader its own.
        tokens: Where a replay is read, one row per answer with the columns `TOKENS`: the log-probabilities in nats of
            the completion's tokens in the replay, stop token included, and the positions of the answer's own tokens.
    """

    table: pl.DataFrame
    source: Callable[[str], np.ndarray]
    rows: np.ndarray
    views: tuple[ViewAnswers, ...] = ()
    others: tuple[ViewAnswers, ...] = ()
    tokens: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        if tuple(self.table.columns) != COLUMNS:
            raise ValueError(f"Answers: columns {self.table.columns}, expected {list(COLUMNS)}.")
        if self.rows.shape != (len(self.table),):
            raise ValueError(f"Answers: rows has shape {self.rows.shape}, expected ({len(self.table)},).")
        if self.tokens is not None and (self.tokens.columns, len(self.tokens)) != (list(TOKENS), len(self.table)):
            raise ValueError(
                f"Answers: tokens has {len(self.tokens)} rows and the columns {self.tokens.columns}, expected"
                f" {len(self.table)} rows and {list(TOKENS)}."
            )

    def __len__(self) -> int:
        return len(self.table)

    def features(self, name: str) -> np.ndarray:
        """Return the tensor `name` for these answers, float32 [n, D]."""
        return self.source(name)[self.rows]

    def of_tokens(self, name: str) -> list[np.ndarray]:
        """Return the column `name` of `tokens`, one array [tokens] per answer; a ConfigError if no replay is read."""
        if self.tokens is None:
            raise ConfigError(
                f"tokens: there is no {name} of these answers, which this reader needs. Expected the replayed answers"
                " of a study; `dualread score` keeps no tokens."
            )
        return [row.to_numpy() for row in self.tokens[name]]

    def without_verdict(self) -> np.ndarray:
        """Return whether a view of groups has no verdict of a pair of the answer's samples, bool [n]."""
        pairs = [view.pairs for view in self.views if view.pairs is not None]
        unclear = [(None, None) in answer.values() for of_view in pairs for answer in of_view]
        return np.array(unclear, dtype=np.bool_).reshape(len(pairs), len(self)).max(axis=0, initial=False)

    def take(self, index: np.ndarray) -> "Answers":
        """Return the answers at the integer positions `index`."""
        views, others = (tuple(view.take(index) for view in group) for group in (self.views, self.others))
        tokens = None if self.tokens is None else self.tokens[index]
        rows = self.rows[index]
        return replace(self, table=self.table[index], rows=rows, views=views, others=others, tokens=tokens)

    def only_view(self) -> ViewAnswers:
        """Return the view, for a reader that reads exactly one; a ConfigError if there are none or several."""
        if len(self.views) != 1:
            names = ", ".join(view.name for view in self.views) or "none"
            raise ConfigError(f"views: {names}; this reader needs exactly one. Correct the method's config entry.")
        return self.views[0]


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Answers with their labels, on which readers are fitted: `correct`, bool [n]."""

    answers: Answers
    correct: np.ndarray

    def __len__(self) -> int:
        return len(self.answers)

    @classmethod
    def none(cls) -> "Examples":
        """Return an empty set of examples, for readers that are fitted on no labels."""
        table = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))
        answers = Answers(table=table, source=dict[str, np.ndarray]().__getitem__, rows=np.zeros(0, dtype=np.int64))
        return cls(answers=answers, correct=np.zeros(0, dtype=bool))

    def partition(self, role: str) -> "Examples":
        """Return the examples of one role: fit, stop, calibration or validation."""
        index = np.flatnonzero((self.answers.table["role"] == role).to_numpy())
        return Examples(answers=self.answers.take(index), correct=self.correct[index])

    def require(self, role: str, *, both_classes: bool) -> "Examples":
        """Return `partition(role)`, and refuse one on which a reader cannot be fitted.

        Raises:
            UnfittedError: The partition is empty, or it has no correct or no wrong answers, and needs `both_classes`.
        """
        part = self.partition(role)
        n_correct = int(part.correct.sum())
        if len(part) == 0 or (both_classes and n_correct in (0, len(part))):
            needed = "correct and wrong answers" if both_classes else "at least one answer"
            first = "Compare answers with gold answers in graded.parquet: is their wording the same? Otherwise give"
            raise UnfittedError(
                f"partition {role!r}: {n_correct} correct of {len(part)} answers; a reader needs {needed} there. "
                f"{'Give' if n_correct or not len(part) else first} the data set more images, change the shares of its"
                " roles, or train the actor differently."
            )
        return part


def committed(graded: pl.DataFrame) -> pl.DataFrame:
    """Return the committed answers (sample_index 0), one per row, sorted by sample_id and condition."""
    return graded.filter(pl.col("sample_index") == 0).sort(KEY)


def join_answers(
    manifest: pl.DataFrame,
    graded: pl.DataFrame,
    index: pl.DataFrame | None,
    source: Callable[[str], np.ndarray],
    *,
    where: str,
) -> Answers:
    """Return the answers in the order of `graded`, the `committed` rows of a graded table without `correct`.

    Each answer gets the manifest's row with its sample_id. Under a donor condition this is the question about the
    source image, which is the one that was asked. `index` is the features table of the replay, None where none is read,
    and `source` returns a named tensor of it.

    Raises:
        ArtifactError: An answer of the shard `where` occurs twice, or the manifest or the replay lacks it.
    """
    assert "correct" not in graded.columns, "labels must not reach a reader that scores"
    if n_twice := len(graded) - graded.select(KEY).n_unique():
        raise ArtifactError(f"{where}: {n_twice} answers occur twice in graded.parquet. Grade the shard again.")
    table = _joined(graded, manifest.select(OF_MANIFEST), ["sample_id"], f"{where}: manifest.parquet lacks")
    if index is None:
        return Answers(table=table.select(COLUMNS), source=source, rows=np.zeros(len(table), dtype=np.int64))
    places = index.filter(pl.col("sample_index") == 0).select(*KEY, "row", *TOKENS)
    read = _joined(table, places, list(KEY), f"{where}: features.parquet lacks")
    return Answers(table=table.select(COLUMNS), source=source, rows=read["row"].to_numpy(), tokens=read.select(TOKENS))


def _joined(rows: pl.DataFrame, others: pl.DataFrame, on: list[str], complaint: str) -> pl.DataFrame:
    missing = rows.join(others, on=on, how="anti")["sample_id"].to_list()
    if missing:
        shown = ", ".join(sorted(missing)[:5])
        raise ArtifactError(f"{complaint} {len(missing)} graded answers, such as {shown}. Make the shard again.")
    return rows.join(others, on=on, how="left", validate="m:1", maintain_order="left")
