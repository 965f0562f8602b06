"""A log of another harness as a table of answers: one row per question and kind of confidence.

Nothing is guessed: the score that says what is correct is chosen by name where there are several, and what the log
lacks is said. A question that cannot be evaluated is counted, with the reason.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.data.logs.base import Log, LoggedSample, Score, flat, is_unscored, verdict
from dualread.errors import ConfigError, DataError, did_you_mean, in_a_line
from dualread.grading.options import option_of
from dualread.own.given import ANSWERS, UserTable, mapped, some
from dualread.own.log_confidences import Stated, answer_to, kinds_of, stated_of, stated_text

GRADED = "graded"  # the name by which --score has answers graded instead
_LONGEST = 60  # characters of an answer that a sentence shows
_MOST_COLUMNS = 2_000
_NAMED = 20  # columns that an error names
_Judged = tuple[LoggedSample, Score | None]


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A log, with the score that judges its answers.

    Attributes:
        whole: One row per question that can be evaluated, with every column that a user may name.
        judged: The samples of these rows, and the score that judges each; None where the answers are graded.
        chosen: The name of that score; None where the answers are graded, or a column says what is correct.
        left_out: {why: number of answers that cannot be evaluated}.
        notes: Sentences of the reader.
        advice: How to have the harness log a confidence.
        stated: Finds how the stated confidences of the log are read.
    """

    whole: UserTable
    judged: Sequence[_Judged]
    chosen: str | None
    left_out: Mapping[str, int]
    notes: Sequence[str]
    advice: str
    stated: Callable[[], Stated]

    def answers(self, columns: Mapping[str, str], *, keep: Collection[str] = ()) -> UserTable:
        """Return a table of answers: one row per question and kind of confidence.

        Args:
            columns: {column of a table of answers: column of `whole` that takes its place}.
            keep: Columns of `whole` to keep besides those.

        Raises:
            DataError: The log has no confidence, and `columns` names none.
        """
        left_out, notes = Counter(self.left_out), []
        given = mapped(self.whole, columns, ANSWERS, keep=keep)
        given = _without_nulls(given, columns, left_out)
        if "confidence" not in columns:
            frame = self._by_kind(given, left_out, notes)
        elif given.has("method"):
            frame = given.frame
        else:
            frame = given.frame.with_columns(method=pl.lit(columns["confidence"]))
        notes = [*self.notes, *_notes(self.judged, self.chosen, columns), *notes, *given.notes]
        if left_out:
            notes.append(f"left out: {_listed(left_out)}")
        others = [name for name in self.whole.frame.columns if name not in (*ANSWERS, *columns.values(), *keep)]
        if others:
            notes.append(f"columns that --columns and --cluster can name besides: {some(others)}")
        return UserTable(
            path=given.path,
            frame=frame.select(name for name in frame.columns if name in ANSWERS or name in keep),
            rows=pl.int_range(1, len(frame) + 1, eager=True),
            notes=tuple(notes),
            left_out=dict(left_out),
        )

    def _by_kind(self, given: UserTable, left_out: Counter[str], notes: list[str]) -> pl.DataFrame:
        of_kind, said = [], []
        judged = [self.judged[row - 1] for row in given.rows]
        stated = self.stated()
        notes += [stated.note] if stated.note else []
        for name, kind in kinds_of(stated).items():
            if not any(kind.held(sample) for sample, _ in judged):
                continue
            values = pl.Series("confidence", [kind.of(*one) for one in judged], dtype=pl.Float64)
            if (missing := values.is_null()).any():
                left_out[f"{name}: {kind.why_none}"] += int(missing.sum())
                said.append(f"{name}: {kind.why_none}; ")
            if not missing.all():
                of_kind.append(given.frame.with_columns(values, method=pl.lit(name)).filter(~missing))
        if not of_kind:
            if stated.note:
                said.append(f"{stated.note}; ")
            raise given.error(
                f"holds no confidence. {''.join(said)}{self.advice}; or name a column that is one: --columns"
                f" confidence=NAME. Found: {_named(self.whole.frame.columns)}."
            )
        return pl.concat(of_kind)


def read_logged(
    path: Path, log_format: str, *, score: str | None, graded: bool, stated_scale: int | None = None
) -> Logged:
    """Read a log.

    Args:
        path: The file.
        log_format: A plugin of the family `logs`; "-" stands for "_".
        score: The score that says whether an answer is correct; "graded" to grade the answers by their references; None
            if the log has at most one.
        graded: Whether a score or the references judge the answers; if not, a column of the user says what is correct.
        stated_scale: What stands for certainty in stated confidences, 1, 10 or 100; None to find it.

    Raises:
        ConfigError: The format or the score is unknown, or there are several scores and none was chosen.
        DataError: The log is damaged, a score is neither right nor wrong, or there is nothing to evaluate.
    """
    name = log_format.replace("-", "_")
    if name not in (known := plugins.known("logs")):
        names = [one.replace("_", "-") for one in known]
        raise ConfigError(
            f"--from {log_format}: no such harness. Known: {', '.join(names)}.{did_you_mean(log_format, names)}"
        )
    reader = plugins.load("logs", name)
    if not path.is_file():
        raise DataError(f"{path}: {'is a folder; give one log' if path.is_dir() else 'there is no such file'}.")
    try:
        log = reader.read_log(path)
    except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: is not as {log_format} writes it ({in_a_line(error)}). Is it a log of"
            " another harness, or of another version?"
        ) from error
    chosen = _chosen(path, log, score) if graded else None
    left_out = Counter(log.left_out)
    judged = _judged(path, log, chosen, left_out, graded=graded)
    if not judged:
        raise DataError(f"{path}: no answer can be evaluated: {_listed(left_out)}.")
    notes = [*log.notes, *_notes_on_options(path, judged, graded=graded and chosen is None)]
    frame, too_many = _frame(judged, chosen)
    if too_many:
        notes.append(
            f"only the first {_MOST_COLUMNS:,} other columns of the log can be named; {too_many:,} more cannot"
        )
    return Logged(
        whole=UserTable(path=path, frame=frame, rows=pl.int_range(1, len(judged) + 1, eager=True)),
        judged=judged,
        chosen=chosen,
        left_out=left_out,
        notes=notes,
        advice=plugins.declared("logs", name, "CONFIDENCE"),
        stated=lambda: stated_of(path, (stated_text(sample, None) for sample in log.samples), stated_scale),
    )


def _chosen(path: Path, log: Log, score: str | None) -> str | None:
    """Return the name of the score that judges; None if answers are graded by their references."""
    names = list(dict.fromkeys(name for sample in log.samples for name in sample.scores))
    if score == GRADED or (score is None and not names):
        return None
    if score is None and len(names) > 1:
        known = ", ".join(map(shown, names))
        raise ConfigError(
            f"{path}: has {len(names)} scores: {known}. Choose the one that says what is correct, such as --score"
            f" {shown(names[0])}; or --score {GRADED}, to grade answers by their references as in the paper."
        )
    if score is not None and score not in names:
        raise ConfigError(
            f"--score {score}: {path} has no such score. Known: {', '.join(map(shown, [*names, GRADED]))}."
            f"{did_you_mean(score, [*names, GRADED])}"
        )
    return score or names[0]


def shown(name: str) -> str:
    """Return the name of a score as one word of a message: quoted where it holds anything that is not printed."""
    return name if name.isprintable() else repr(name)


def _judged(path: Path, log: Log, chosen: str | None, left_out: Counter[str], *, graded: bool) -> list[_Judged]:
    """Return the samples that can be evaluated with the score that judges them; count the others."""
    found, neither = [], []
    for sample in log.samples:
        if chosen is not None:
            if (score := sample.scores.get(chosen)) is None or is_unscored(score.value):
                left_out[f"no score {chosen!r}"] += 1
                continue
            if verdict(score.value) is None:
                neither.append((sample.sample_id, score.value))
            found.append((sample, score))
        elif graded and not sample.references:
            left_out["no reference answer"] += 1
        elif graded and not sample.completions:
            left_out["no answer to grade"] += 1
        else:
            found.append((sample, None))
    if neither:
        name, value = neither[0]
        others = [one for one in dict.fromkeys(one for sample in log.samples for one in sample.scores) if one != chosen]
        raise DataError(
            f"{path}: score {chosen!r} is {value!r} for question {name!r}, and neither right nor wrong for"
            f" {len(neither)} of {len(found)} questions. Expected 1 or 0, true or false, C or I. Choose another with"
            f" --score ({', '.join([*others, GRADED])}), or name a column of 1 and 0: --columns correct=NAME."
        )
    return found


def _frame(judged: Sequence[_Judged], chosen: str | None) -> tuple[pl.DataFrame, int]:
    """Return one row per sample with every column that a user may name, and how many columns are too many."""
    samples = [sample for sample, _ in judged]
    columns: dict[str, Any] = {"sample_id": [sample.sample_id for sample in samples]}
    if all(sample.question for sample in samples):
        columns["question"] = [sample.question for sample in samples]
    if any(sample.image for sample in samples):
        columns["image_id"] = [sample.image or f"question {sample.sample_id}" for sample in samples]
    answers = [_answer(sample, score) for sample, score in judged]
    if any(answer is not None for answer in answers) or chosen is None:
        columns["answer"] = pl.Series(answers, dtype=pl.String)
    if chosen is None or any(sample.references for sample in samples):
        columns["reference_answer"] = pl.Series(
            [list(sample.references) for sample in samples], dtype=pl.List(pl.String)
        )
    if chosen is not None:
        columns["correct"] = [score is not None and verdict(score.value) for _, score in judged]
    of_scores = [{f"score.{name}": score.value for name, score in sample.scores.items()} for sample in samples]
    others = [
        {**sample.others, **{full: text for name, value in scores.items() for full, text in flat(name, value).items()}}
        for sample, scores in zip(samples, of_scores, strict=True)
    ]
    names = [name for name in dict.fromkeys(name for one in others for name in one) if name not in columns]
    for name in names[:_MOST_COLUMNS]:
        columns[name] = pl.Series([one.get(name) for one in others], dtype=pl.String)
    return pl.DataFrame(columns), len(names[_MOST_COLUMNS:])


def _answer(sample: LoggedSample, score: Score | None) -> str | None:
    if score is not None and score.answer is not None:
        return answer_to(sample, score.answer)
    return answer_to(sample, sample.completions[0]) if sample.completions else None


def _option(sample: LoggedSample, text: str) -> int | None:
    return option_of(text, sample.options, letters_first=True)


def _without_nulls(given: UserTable, names: Iterable[str], left_out: Counter[str]) -> UserTable:
    """Leave out the rows in which a column that the user named has no value."""
    for name in filter(given.has, names):
        missing = given.frame[name].is_null()
        if missing.any():
            left_out[f"no value for {name!r}"] += int(missing.sum())
            given = given.where(~missing)
    return given


def _notes(judged: Sequence[_Judged], chosen: str | None, columns: Mapping[str, str]) -> list[str]:
    samples = [sample for sample, _ in judged]
    notes = []
    if "confidence" not in columns and (unlikely := sum(_is_unlikely(*one) for one in judged)):
        notes.append(
            f"in {unlikely} of {len(judged)} questions, the choice that {chosen!r} judges is not the likeliest one:"
            " choice_likelihood is the share of its likelihood, not divided by its length, and may be below that of"
            " another choice"
        )
    if "correct" not in columns:
        how = "the answers are graded by their references, as in the paper"
        notes.append(how if chosen is None else f"the score {chosen!r} says what is correct")
    if (without := sum(not sample.image for sample in samples)) and "image_id" not in columns:
        notes.append(
            "the log does not identify images, so rows count as independent; name a column that does: --columns"
            " image_id=NAME"
            if without == len(samples)
            else f"{without} of {len(samples)} questions have no image in the log; each is a cluster by itself"
        )
    return notes


def _is_unlikely(sample: LoggedSample, score: Score | None) -> bool:
    choice = None if score is None else score.choice
    return choice is not None and sample.choices[choice] < max(sample.choices)


def _notes_on_options(path: Path, judged: Sequence[_Judged], *, graded: bool) -> list[str]:
    """Return sentences about answers and gold answers that name none of the options of their question.

    Raises:
        DataError: Answers are graded, and no gold answer names an option.
    """
    with_options = [(sample, _answer(sample, score)) for sample, score in judged if sample.options]
    golds = [sample for sample, _ in with_options if sample.references]
    lost = [sample for sample in golds if all(_option(sample, gold) is None for gold in sample.references)]
    others = [answer for sample, answer in with_options if answer is not None and _option(sample, answer) is None]
    notes = []
    if lost:
        said = (
            f"the gold answers to {len(lost)} of {len(golds)} questions with options name none of them, neither by"
            f" letter nor by text: {lost[0].references[0]!r} of {some(list(map(repr, lost[0].options)))}"
        )
        if graded and len(lost) == len(golds):
            raise DataError(
                f"{path}: {said}. Give letters, or name a column that says what is correct: --columns correct=NAME."
            )
        notes.append(said)
    if others:
        counted = "what the score says counts" if not graded else "they are graded as they are"
        notes.append(
            f"the answers to {len(others)} of {len(with_options)} questions with options name none of them, neither by"
            f" letter nor by text, such as {others[0][:_LONGEST]!r}; {counted}"
        )
    return notes


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def _listed(left_out: Mapping[str, int]) -> str:
    return "; ".join(f"{count} ({why})" for why, count in left_out.items()) or "it has none"
