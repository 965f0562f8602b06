"""A log of another harness as a table of answers: one row per question and kind of confidence.

Confidences are raw: nothing is fitted, unlike those of the methods of the same names in a study. What is stated has one
rule: the number in the only `<confidence>` block of a reply, from 0 to 100, or to what --stated-scale says.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import polars as pl

from dualread import limits, plugins
from dualread.data.logs.base import Log, LoggedSample, flat
from dualread.data.tables.files import RawTable
from dualread.errors import ConfigError, DataError, did_you_mean, in_a_line
from dualread.grading.answers import tokens_within
from dualread.grading.canonical import canonical
from dualread.grading.contracts.single import parse
from dualread.grading.options import name_of, option_of
from dualread.grading.parse import answer_span, parse_blocks

GRADED = "graded"  # the name by which --score has answers graded instead
_TRUTHS = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "c"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "i", "n"), False),
}
_UNSCORED = ("", "nan", "none", "null", "inf", "-inf")
_THOUGHT = re.compile(r"</think(?:ing)?>")
_TAG = re.compile(r"</?(?:answer|confidence)>")
_NUMBER = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})\s*(%?)")
_COLUMNS = ("sample_id", "question", "image_id", "answer", "reference_answer", "correct")
_TYPES = {"correct": pl.Boolean, "reference_answer": pl.List(pl.String)}
_ROUNDING = 1e-6  # by which a log-probability may exceed 0
_SHOWN = 20  # names that a sentence lists


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """What a user says about a log."""

    log_format: str | None = None  # a plugin of the family `logs`, the harness; "-" stands for "_". None for a table
    # The score that says whether an answer is correct; "graded" to grade the answers by their references; None if the
    # log has at most one.
    score: str | None = None
    stated_scale: int | None = None  # what stands for certainty in stated confidences, 1, 10 or 100; None for 100

    def __post_init__(self) -> None:
        """Refuse what is said about a log where there is none."""
        if self.score is not None and self.log_format is None:
            raise ConfigError("--score: needs a log (--from); in a table, the column 'correct' says what is correct.")
        if self.stated_scale is not None and self.log_format is None:
            raise ConfigError("--stated-scale: needs a log (--from); a table has its confidences in a column.")


def read_logged(
    path: Path, options: LogOptions, *, columns: Mapping[str, str], cluster: str | None, by: Sequence[str] = ()
) -> RawTable:
    """Read a log as a table of answers: one row per answer and kind of confidence.

    `columns` maps columns of a table of answers to those of the log that take their place; of `cluster` and `by`, the
    log's own columns are kept, and the latter may be empty. Raises ConfigError if a format, score or column is unknown,
    or no score was chosen of several; DataError if the log is damaged, a score is neither right nor wrong, or nothing
    is left.
    """
    log, advice = _read(path, str(options.log_format))
    chosen = None if "correct" in columns else _chosen(path, log, options.score)
    left_out, notes, samples = Counter(log.left_out), list(log.notes), list[LoggedSample]()
    for sample in log.samples:
        if chosen is not None and str(sample.scores.get(chosen)).strip().lower() in _UNSCORED:
            left_out[f"no score {chosen!r}"] += 1
        elif chosen is None and "correct" not in columns and not (sample.references and sample.completions):
            left_out["no reference answer" if sample.completions else "no answer to grade"] += 1
        else:
            samples.append(sample)
    if not samples:
        raise DataError(f"{path}: no answer can be evaluated: {_counts(left_out) or 'it has none'}.")
    rows = [_row(path, sample, chosen) for sample in samples]
    known = dict.fromkeys(name for row in rows for name in row)
    named = {name.removeprefix("-") for name in (*columns.values(), *([cluster] if cluster else []))}
    if unknown := sorted({*named, *by} - {*known}):
        meant = did_you_mean(unknown[0], known)
        raise ConfigError(f"{path}: the log has no column {unknown[0]!r}. Known: {_listed([*known])}.{meant}")
    frame = _frame(rows, [name for name in known if name in _COLUMNS or name in {*named, *by}])
    if "image_id" not in {*frame.columns, *columns}:
        notes.append("the log does not identify images; name a column that does: --columns image_id=NAME")
    if "correct" not in columns:
        notes.append(
            f"the score {chosen!r} says what is correct" if chosen else "the answers are graded by their references"
        )
    if "confidence" not in columns:
        parts = []
        for method, values in _confidences(path, samples, chosen, options.stated_scale, notes).items():
            confidence = pl.Series("confidence", values, pl.Float64)
            left_out.update({f"no {method}": confidence.null_count()} if confidence.null_count() else {})
            parts.append(frame.with_columns(confidence, method=pl.lit(method)).drop_nulls("confidence"))
        if not parts:
            raise DataError(
                f"{path}: holds no confidence. {advice}; or name a column that is one: --columns confidence=NAME."
                f" Found: {'; '.join([_listed([*known]), *notes])}."
            )
        frame = pl.concat(parts)
    for name in sorted(named):
        if missing := frame[name].null_count():
            left_out[f"no value for {name!r}"] += missing
            frame = frame.drop_nulls(name)
    notes += [f"left out: {_counts(left_out)}"] if left_out else []
    if others := [name for name in known if name not in {*_COLUMNS, *named, *by}]:
        notes.append(f"columns that --columns, --cluster and --by can name besides: {_listed(others)}")
    return RawTable(
        source=path,
        frame=frame,
        rows=pl.int_range(1, len(frame) + 1, eager=True),
        columns=tuple(name for name in frame.columns if "confidence" in columns or name != "confidence"),
        notes=tuple(notes),
        left_out=left_out,
    )


def _frame(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pl.DataFrame:
    """Return these columns; of documented ones, those that are filled: a question in all rows, others in any."""
    series = [pl.Series(name, [row.get(name) for row in rows], _TYPES.get(name, pl.String)) for name in names]
    most = {name: 0 if name == "question" else len(rows) - 1 for name in _COLUMNS}  # rows without a value
    frame = pl.DataFrame([column for column in series if column.null_count() <= most.get(column.name, len(rows))])
    if "image_id" in frame.columns:
        frame = frame.with_columns(pl.col("image_id").fill_null("question " + pl.col("sample_id")))
    return frame


def _read(path: Path, log_format: str) -> tuple[Log, str]:
    """Return the log, and how to have the harness log a confidence."""
    name, known = log_format.replace("-", "_"), [harness.replace("_", "-") for harness in plugins.known("logs")]
    if log_format.replace("_", "-") not in known:
        meant = did_you_mean(log_format, known)
        raise ConfigError(f"--from {log_format}: there is no such harness. Known: {', '.join(known)}.{meant}")
    if not path.is_file() or path.stat().st_size > limits.LOG_BYTES:
        what = "a folder" if path.is_dir() else "too large" if path.is_file() else "not there"
        raise DataError(f"{path}: is {what}. Expected one log of at most {limits.LOG_BYTES:,} bytes.")
    try:
        return plugins.load("logs", name).read_log(path), plugins.declared("logs", name, "CONFIDENCE")
    except (
        AttributeError,
        IndexError,
        KeyError,
        RecursionError,
        SyntaxError,
        TypeError,
        ValueError,
        pl.exceptions.PolarsError,
    ) as error:
        problem = in_a_line(error)[:200]
    raise DataError(f"{path}: is not as {log_format} writes it ({problem}). Is it complete, and of this harness?")


def _chosen(path: Path, log: Log, score: str | None) -> str | None:
    """Return the name of the score that judges; None if answers are graded by their references."""
    names = list(dict.fromkeys(name for sample in log.samples for name in sample.scores))
    if score is None and len(names) > 1:
        raise ConfigError(
            f"{path}: has {len(names)} scores: {_listed(names)}. Choose the one that says what is correct, such as"
            f" --score {_listed(names[:1])}; or --score {GRADED}, to grade answers by their references as in the paper."
        )
    if score is not None and score not in (*names, GRADED):
        meant = did_you_mean(score, [*names, GRADED])
        raise ConfigError(f"--score {score}: {path} has no such score. Known: {_listed([*names, GRADED])}.{meant}")
    return None if score == GRADED or not names else score or names[0]


def _row(path: Path, sample: LoggedSample, chosen: str | None) -> dict[str, Any]:
    """Return every column that a user may name; those of `_COLUMNS` first."""
    value = None if chosen is None else sample.scores.get(chosen)
    correct = _TRUTHS.get(str(value).strip().lower())
    if chosen is not None and correct is None:
        raise DataError(
            f"{path}: score {chosen!r} is {value!r} for question {sample.sample_id!r}, neither right nor wrong."
            f" Expected 1 or 0, true or false, C or I. Choose another, or --score {GRADED}, or --columns correct=NAME."
        )
    read = [*sample.scored_answers.get(chosen or "", ())[:1], *sample.completions[:1], None]
    return {
        **dict.fromkeys(_COLUMNS),
        **dict(sample.others),
        **{full: text for name, entry in sample.scores.items() for full, text in flat(f"score.{name}", entry).items()},
        **{"sample_id": sample.sample_id, "question": sample.question, "image_id": sample.image},
        **{"answer": answer_to(sample, read[0]), "correct": correct},
        "reference_answer": [_option(sample, reference) for reference in sample.references] or None,
    }


def answer_to(sample: LoggedSample, completion: str | None) -> str | None:
    """Return the answer in a completion: its `<answer>` block, or all of it if it has no tag of the paper's contract.

    Reasoning that `</think>` ends does not count. Where the answer names one of the question's options, it is this
    option. None if there is a tag and no valid answer.
    """
    reply = _reply(completion or "")
    answer = parse(reply).answer if _TAG.search(reply) else reply
    return _option(sample, answer) if answer else None


def _reply(completion: str) -> str:
    return _THOUGHT.split(completion)[-1].strip()


def _option(sample: LoggedSample, text: str) -> str:
    place = option_of(text, sample.options, letters_first=True)
    return text if place is None else name_of(sample.options, place)


def _confidences(
    path: Path, samples: Sequence[LoggedSample], chosen: str | None, scale: int | None, notes: list[str]
) -> dict[str, list[float | None]]:
    """Return the confidences by each kind of which the log holds any, and say how stated ones are read."""
    texts = [stated_text(sample) for sample in samples]
    stated = read_stated(path, texts, scale)
    if any(text is not None for text in texts):
        unread = dict.fromkeys(text for text, value in zip(texts, stated, strict=True) if text and value is None)
        more = f"; not read: {_listed([*unread])}" if unread else ""
        notes.append(f"stated confidences reach from 0 to {scale or 100}{more}")
    kinds = {
        "sequence_likelihood": [sequence_likelihood(sample) for sample in samples],
        "self_consistency": [self_consistency(sample, chosen) for sample in samples],
        "choice_likelihood": [sample.choice_likelihoods.get(chosen or "") for sample in samples],
        "stated": stated,
    }
    return {name: values for name, values in kinds.items() if any(value is not None for value in values)}


def stated_text(sample: LoggedSample) -> str | None:
    """Return what the only `<confidence>` block of the reply holds, outside its answer; None if there is none."""
    inside: list[str] = []
    parse_blocks(_reply(*sample.completions[:1] or [""]), lambda text: (inside.append(text.strip()), None))
    return inside[0] if inside else None


def read_stated(path: Path, texts: Sequence[str | None], scale: int | None) -> list[float | None]:
    """Return the confidence in [0, 1] that each text states: a number from 0 to the scale, or to 100%; None for others.

    Raises ConfigError if `scale` is none of 1, 10 and 100; or if it is None, and no number is above 10, or one is
    between 0 and 1, so that 100 may not be meant.
    """
    if scale not in (None, 1, 10, 100):
        raise ConfigError(f"--stated-scale {scale}: expected 1, 10 or 100.")
    read = [None if text is None else _NUMBER.fullmatch(text) for text in texts]
    plain = [float(match[1]) for match in read if match and not match[2] and float(match[1]) > 0]
    if scale is None and plain and (max(plain) <= 10 or min(plain) < 1):
        raise ConfigError(
            f"{path}: its stated confidences, such as {min(plain):g} and {max(plain):g}, may reach to 1, 10 or 100. Say"
            " which: --stated-scale 1, 10 or 100. What is above is left out."
        )
    values = [float(match[1]) / (100 if match[2] else scale or 100) if match else None for match in read]
    return [None if value is None or value > 1 else value for value in values]


def sequence_likelihood(sample: LoggedSample) -> float | None:
    """Return the geometric mean of the token probabilities of the answer (DualRead, app:baseline_protocols).

    The tokens are those of the answer's characters within the reply. None if the tokens do not spell the reply, if
    there is no valid answer, or if a log-probability is no number of at most 0.
    """
    reply = _reply(*sample.completions[:1] or [""])
    span = answer_span(reply) if _TAG.search(reply) else (0, len(reply))
    start = b"".join(token for token, _ in sample.tokens).rfind(reply.encode())
    if span is None or start < 0:
        return None
    first, last = (start + len(reply[:place].encode()) for place in span[:2])
    ends = list(accumulate((len(token) for token, _ in sample.tokens), initial=0))
    log_probs = [sample.tokens[k][1] for k in tokens_within(list(pairwise(ends)), first, last)]
    if not log_probs or not all(math.isfinite(log_prob) and log_prob <= _ROUNDING for log_prob in log_probs):
        return None
    return math.exp(min(math.fsum(log_probs) / len(log_probs), 0.0))


def self_consistency(sample: LoggedSample, chosen: str | None) -> float | None:
    """Return the share of the further draws whose answer is that of the first (DualRead, app:baseline_protocols).

    Answers are compared in canonical form, and an invalid one agrees with none. They are those in the completions'
    `<answer>` blocks, or else those that the score read, or else whole completions. None if there are no further draws,
    or if the score read another answer in the first draw and the log does not say which it reads in the others.
    """
    if len(sample.completions) < 2:
        return None
    drawn = [canonical(answer_to(sample, text) or "") for text in sample.completions]
    read = [canonical(answer_to(sample, text) or "") for text in sample.scored_answers.get(chosen or "", ())]
    if read and not _TAG.search(_reply(sample.completions[0])):
        if len(read) < len(drawn) and read[0] != drawn[0]:
            return None
        drawn = read if len(read) == len(drawn) else drawn
    return 0.0 if drawn[0] == "" else drawn[1:].count(drawn[0]) / (len(drawn) - 1)


def _counts(left_out: Mapping[str, int]) -> str:
    return "; ".join(f"{count} ({why})" for why, count in left_out.items())


def _listed(names: Sequence[str]) -> str:
    shown = [name if name.isprintable() else repr(name) for name in names[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(names) > _SHOWN else "")
