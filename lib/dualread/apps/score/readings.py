"""What readers say about an actor's answers, or about each claim of its reports, and before there is an answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from dualread.apps.score.answering import Answered
from dualread.apps.score.claims import NO_CONFIDENCE
from dualread.apps.score.distance import StateDistances
from dualread.apps.score.results import AnswerSet, Claim, Confidence, Reading, SetOption
from dualread.errors import DualReadError, ReaderError, UndefinedScoreError, in_a_line
from dualread.evaluation.answer_sets import SetThreshold, in_set
from dualread.evaluation.thresholds import Decision, Threshold, decide
from dualread.grading.answers import why_no_answer
from dualread.models.replay.forward import TENSORS, VECTORS
from dualread.readers.answers import COLUMNS, Answers
from dualread.readers.base import Scores, score
from dualread.readers.replies import choice_probabilities
from dualread.readers.requirements import ScoringReader
from dualread.schema.replay import OF_ONE_IMAGE

# The roles under which a reader of both branches holds its parts.
_PSR, _PER = "pre", "post"
_NONE = Confidence(confidence=None, score=None, imputed=False)
_NO_CHOICES = "the question has no choices. Give its options, or the answer type `closed` if they are yes and no"
_NOT_FINITE = "the model's log-probabilities of the choices are NaN"
Item = TypeVar("Item")
Judged = TypeVar("Judged")
Failure = TypeVar("Failure")


@dataclass(frozen=True, kw_only=True)
class LoadedReaders:
    """The readers of one actor's answers by method, and what travels with them.

    The reader of `method` gives the confidence; `threshold` decides, and `set_thresholds` do about answer sets.
    `distances` say what the states of validation questions were like. None stands for what does not travel with the
    readers.
    """

    by_method: Mapping[str, ScoringReader]
    method: str
    threshold: Threshold | None = None
    set_thresholds: Sequence[SetThreshold] = ()
    distances: StateDistances | None = None

    @property
    def confidence_reader(self) -> ScoringReader:
        """The reader that gives the confidence."""
        return self.by_method[self.method]

    @property
    def features(self) -> frozenset[str]:
        """The names of the states that any of the readers reads."""
        return frozenset().union(*(reader.features for reader in self.by_method.values()))

    def readings(self, answered: Answered) -> list[Reading]:
        """Return what the readers say about each answer, or about each claim of it, or why they say nothing.

        A ReaderError says that a reader does not fit the actor's states.
        """
        not_finite = _not_finite(self.features, answered)
        of_row = iter(_judged(self, answered, not_finite))
        percentiles: dict[int, float] = {}
        finite = [i for i, why in enumerate(not_finite) if why is None]
        if self.distances is not None and finite and answered.claims is None:
            states = answered.answers.features("h_pre")[finite]
            percentiles = dict(zip(finite, self.distances.percentiles(states).tolist(), strict=True))
        sets = _answer_sets(self.by_method, self.set_thresholds, answered)
        read = []
        for i, (completion, text) in enumerate(zip(answered.completions, answered.texts, strict=True)):
            if answered.claims is None:
                claims, of_answer = None, next(of_row)
            else:
                claims = []
                for start, end in answered.claims[i]:
                    judged = next(of_row)
                    keep = decide(judged["confidence"], self.threshold, judged["reason"]).keep
                    claims.append(Claim(start=start, end=end, text=completion.text[start:end], keep=keep, **judged))
                reason = NO_CONFIDENCE if claims else f"{NO_CONFIDENCE}; this one has no claim"
                of_answer = {"confidence": None, "psr": None, "per": None, "reason": reason}
                of_answer["methods"] = dict.fromkeys(self.by_method, _NONE)
            read.append(
                Reading(
                    answer=text,
                    completion=completion.text,
                    parse_status=answered.parse_status[i],
                    finish_reason=completion.finish_reason,
                    **of_answer,
                    distance_percentile=percentiles.get(i),
                    answer_sets=sets[i],
                    claims=claims,
                )
            )
        return read

    def before_answer(self, states: np.ndarray) -> list[float | None] | None:
        """Return what the method says before there is an answer, and None where a state is not finite.

        That is what its part before the answer says, or itself if it is PSR, of `states`, which are h_pre [n, D]. There
        is nothing for a method without such a part, or of claims, each of which has one.
        """
        reader = self.confidence_reader.parents.get(_PSR, self.confidence_reader)
        if reader.features != {"h_pre"} or reader.requirements.spans is not None:
            return None
        finite = np.flatnonzero(np.isfinite(states).all(axis=1))
        answers = replace(_unknown(len(finite), {"h_pre": states}), rows=finite)
        confidences = _scored(reader, answers).confidence.tolist() if len(finite) else []
        return [dict(zip(finite.tolist(), confidences, strict=True)).get(i) for i in range(len(states))]

    def known_early(self, width: int) -> bool:
        """Return whether all that the readers say of a claim is known while its report goes on.

        The states of the claim and its text are, but views are of whole reports, and so is a stated confidence: whether
        a reader reads that shows in its scores of two claims with states of `width` numbers that differ in nothing
        else.
        """
        readers = self.by_method.values()
        if not self.features or any(reader.views for reader in readers):
            return False
        claims = _made_up(width, 2)
        table = claims.table.with_columns(verbalized_confidence=pl.Series([0.2, 0.8]), parse_status=pl.lit("valid"))
        try:
            scores = [_scored(reader, replace(claims, table=table)).score for reader in readers]
        except DualReadError:
            return False
        return all(np.isclose(first, second) for first, second in scores)

    def check_widths(self, width: int) -> None:
        """Let each reader of states score one answer with states of `width` numbers, or raise a ReaderError."""
        for reader in self.by_method.values():
            if alone := sorted(feature for feature in reader.features if feature.startswith(OF_ONE_IMAGE)):
                raise ReaderError(
                    f"{reader.method}: reads {', '.join(alone)}, the states of single images, which a study alone"
                    " reads."
                )
            if reader.features and not reader.views:
                _scored(reader, _made_up(width, 1))


def in_halves(
    items: Sequence[Item], judge: Callable[[Sequence[Item]], list[Judged]], failed: Callable[[Exception], Failure]
) -> Sequence[Judged | Failure]:
    """Return what `judge` says of all items; if it fails, of their halves, until those that fail are alone."""
    try:
        return judge(items)
    except (DualReadError, RuntimeError) as error:  # RuntimeError: torch, for instance without enough memory
        if len(items) == 1:
            return [failed(error)]
    half = len(items) // 2
    return [*in_halves(items[:half], judge, failed), *in_halves(items[half:], judge, failed)]


def decision_of(reading: Reading, threshold: Threshold | None) -> Decision:
    """Return whether to keep an answer; nothing is decided about a report as a whole, whose claims have decisions."""
    decision = decide(reading.confidence, threshold, reading.reason)
    return decision if reading.claims is None else replace(decision, keep=None)


def _judged(readers: LoadedReaders, answered: Answered, not_finite: Sequence[str | None]) -> list[dict[str, Any]]:
    """Return what a `Reading` and a `Claim` have in common, of each row that readers see."""
    table, parents = answered.answers.table, readers.confidence_reader.parents
    if answered.claims is None:
        no_answer = list(map(why_no_answer, answered.texts, table["canonical_answer"], table["parse_status"]))
    else:
        no_answer = [None if form else "the claim is nothing but punctuation" for form in table["canonical_answer"]]
    finite = [i for i, why in enumerate(not_finite) if why is None]
    judged = [i for i in finite if no_answer[i] is None]
    by_method = {name: _confidences(reader, answered, judged) for name, reader in readers.by_method.items()}
    parts = {
        role: _confidences(parents[role], answered, finite if role == _PSR else judged)
        for role in (_PSR, _PER)
        if role in parents
    }
    rows = []
    for i in range(len(table)):
        methods = {name: outcomes.get(i, not_finite[i] or no_answer[i]) for name, outcomes in by_method.items()}
        outcome = methods[readers.method]
        rows.append(
            {
                "confidence": _number(outcome),
                "psr": _number(parts.get(_PSR, {}).get(i)),
                "per": _number(parts.get(_PER, {}).get(i)),
                "methods": {name: value if isinstance(value, Confidence) else _NONE for name, value in methods.items()},
                "reason": None if isinstance(outcome, Confidence) else outcome,
            }
        )
    return rows


def _answer_sets(
    readers: Mapping[str, ScoringReader], thresholds: Sequence[SetThreshold], answered: Answered
) -> list[list[AnswerSet]]:
    """Return the sets of each question, one per threshold, by the probabilities and the rule of a study's sets."""
    of_questions: list[list[AnswerSet]] = [[] for _ in answered.choices]
    for threshold in thresholds:
        view = readers[threshold.method].choices_view
        assert view is not None, "a reader whose sets have a threshold reads the probabilities of choices"
        log_probs = answered.views[view].choices()
        of_names = dict(zip(log_probs, choice_probabilities(log_probs, len(of_questions)).T, strict=False))
        for i, choices in enumerate(answered.choices):
            options = [(text, float(of_names[name][i])) for name, text in choices.items()]
            is_finite = not any(np.isnan(p) for _, p in options)
            of_questions[i].append(
                AnswerSet(
                    method=threshold.method,
                    miss_percent=threshold.miss_percent,
                    threshold=threshold.value,
                    n_clusters=threshold.n_clusters,
                    options=[_option(*option, threshold.value) for option in options if is_finite],
                    reason=(threshold.reason if is_finite else _NOT_FINITE) if choices else _NO_CHOICES,
                )
            )
    return of_questions


def _option(text: str, probability: float, threshold: float | None) -> SetOption:
    is_in = None if threshold is None else bool(in_set(np.array(probability), threshold))
    return SetOption(text=text, probability=probability, in_set=is_in)


def _number(outcome: Confidence | str | None) -> float | None:
    return outcome.confidence if isinstance(outcome, Confidence) else None


def _not_finite(features: frozenset[str], answered: Answered) -> list[str | None]:
    """Return which numbers of the model are NaN or infinite for each row; None where all are finite."""
    completion_of_row: Sequence[int] = range(len(answered.completions))
    if answered.claims is not None:
        completion_of_row = [i for i, of_report in enumerate(answered.claims) for _ in of_report]
    reasons: list[str | None] = [
        None
        if np.isfinite(answered.completions[i].token_log_probs).all()
        else "the model's logits are NaN or infinite: its numbers overflow in this dtype or on this hardware"
        for i in completion_of_row
    ]
    for name in sorted(features & set(TENSORS)):
        for i in np.flatnonzero(~np.isfinite(answered.answers.features(name)).all(axis=1)):
            reasons[i] = reasons[i] or f"the model's state {name} is missing, NaN or infinite"
    return reasons


def _confidences(reader: ScoringReader, answered: Answered, rows: Sequence[int]) -> dict[int, Confidence | str]:
    """Return what a reader says about some of the answers, by row: a confidence, or why it has none."""
    if not rows:
        return {}
    index = np.array(rows)
    views = {view: view_answers.take(index) for view, view_answers in answered.views.items()}
    try:
        scores = scores_of(reader, replace(answered, answers=answered.answers.take(index), views=views))
    except UndefinedScoreError as error:
        if len(rows) == 1:
            return {rows[0]: str(error)}
        return {row: outcome for i in rows for row, outcome in _confidences(reader, answered, [i]).items()}
    return {
        row: Confidence(
            confidence=float(scores.confidence[k]), score=float(scores.score[k]), imputed=bool(scores.imputed[k])
        )
        for k, row in enumerate(rows)
    }


def _unknown(n: int, states: Mapping[str, np.ndarray]) -> Answers:
    """Return n answers of which nothing is known but their states."""
    table = pl.DataFrame([dict.fromkeys(COLUMNS, "")] * n, schema=dict.fromkeys(COLUMNS, pl.String))
    return Answers(table=table, source=states.__getitem__, rows=np.arange(n))


def _made_up(width: int, n: int) -> Answers:
    """Return n equal answers with made-up states of `width` numbers."""
    states = {name: np.full((n, width), 0.5, np.float32) for name in (*VECTORS, "h_think")}
    return _unknown(n, {**states, "answer_log_prob": np.full((n, 1), -0.5, np.float32)})


def scores_of(reader: ScoringReader, answered: Answered) -> Scores:
    """Return what a reader says about all answers, also about those that do not exist; errors as in `base.score`."""
    views = tuple(answered.views[view.name] for view in reader.views)
    return _scored(reader, replace(answered.answers, views=views))


def _scored(reader: ScoringReader, answers: Answers) -> Scores:
    try:
        return score(reader, answers)
    except DualReadError:
        raise
    except Exception as error:  # whatever the numbers and texts of a file from elsewhere make of it
        raise ReaderError(
            f"{reader.method}: the reader's weights do not fit the states of this actor ({in_a_line(error)}). Expected"
            " the actor on whose answers it was fitted."
        ) from error
