"""What a reader of another harness's logs has to provide, what it returns, and what such readers share.

A reader is a module with `read_log(path) -> Log` and these literals, which are read without importing it:

    SUFFIXES    of its files, such as [".eval"]
    FIELDS      keys by which a .jsonl file, read as a table, is recognized as such a log; empty if there are none
    CONFIDENCE  a sentence for people: what to switch on in the harness so that its logs hold a confidence

A reader translates and judges nothing: scores stay as the harness wrote them, and the first completion is the answer
that they judge. What cannot be an answer, such as a sample that failed, is counted in `Log.left_out`.
"""

import ast
import base64
import binascii
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dualread.errors import DataError

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>$")  # how Python writes an object that has no text
_RIGHT, _WRONG = ("1", "1.0", "true", "yes", "c"), ("0", "0.0", "false", "no", "i", "n")
_REMOVED = "<base64-data-removed>"
_LONGEST_LIST = 100_000  # characters of a text that is looked at as a Python list


@dataclass(frozen=True, kw_only=True)
class Score:
    """What one scorer, metric or column of the harness says of an answer.

    Attributes:
        value: As the harness wrote it: 1, 0, "C", "I", a fraction, a mapping.
        answer: What the scorer took for the answer; None if the log does not say.
        draws: What it took for the answers of the further completions; None if the log does not say.
        of_first: Whether it judges the first completion; false after a majority vote, for instance.
        choice: Of a multiple-choice question, the place in `LoggedSample.choices` that the score judges; None if there
            are no choices, or if it cannot be told.
    """

    value: Any
    answer: str | None = None
    draws: tuple[str, ...] | None = None
    of_first: bool = True
    choice: int | None = None


@dataclass(frozen=True, kw_only=True)
class LoggedSample:
    """One question and what a model answered.

    Attributes:
        sample_id: The question's name, unique in the log.
        question: Its text; None if the log does not hold it.
        references: Accepted gold answers; empty if the log holds none.
        completions: What the model wrote. The scores judge the first; the others are further draws. Empty if the model
            wrote nothing, as with choices.
        scores: By the scorer's name.
        tokens: Of the first completion: each token's bytes in UTF-8, and its log-probability in nats; None if the log
            holds none.
        choices: Log-likelihoods in nats of the choices; empty if there are none.
        options: The texts of the options A, B, ... among which the model was to choose; empty if there are none.
        image: The identity of the image: a digest of its content, or its path or address; None if it is not in the log.
        others: Whatever else the log says of the question, by the name under which a user may refer to it.

    Raises:
        TypeError: Something is not text that should be.
        UnicodeEncodeError: A text could not be written again.
    """

    sample_id: str
    question: str | None = None
    references: tuple[str, ...] = ()
    completions: tuple[str, ...] = ()
    scores: Mapping[str, Score] = field(default_factory=dict)
    tokens: tuple[tuple[bytes, float], ...] | None = None
    choices: tuple[float, ...] = ()
    options: tuple[str, ...] = ()
    image: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        answers = [text for score in self.scores.values() for text in (score.answer, *(score.draws or ()))]
        own = (self.sample_id, self.question, self.image)
        texts = (*own, *self.references, *self.completions, *self.options, *answers)
        for text in (one for one in (*texts, *self.others, *self.others.values()) if one is not None):
            if not isinstance(text, str):
                raise TypeError(f"question {self.sample_id!r} holds {text!r} in place of a text")
            text.encode()  # half of a surrogate pair, which JSON may hold, is no text
        json.dumps({name: score.value for name, score in self.scores.items()}, ensure_ascii=False, default=str).encode()


@dataclass(frozen=True, kw_only=True)
class Log:
    """The answers of one log.

    Attributes:
        samples: One per question.
        left_out: {why: number of questions of the log that have no answer to evaluate}.
        notes: Sentences about the log as a whole.
    """

    samples: Sequence[LoggedSample]
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


def need(path: Path, records: Sequence[Mapping[str, Any]], keys: Sequence[str], written_by: str) -> None:
    """Refuse records that lack one of `keys`.

    Raises:
        DataError: The message says how many lack it, and which version writes it.
    """
    for key in keys:
        lacking = sum(key not in record for record in records)
        if lacking:
            found = ", ".join(sorted(set().union(*records)))
            raise DataError(
                f"{path}: {lacking} of {len(records)} rows have no {key!r}, which {written_by} writes. Found: {found}."
                " Is this a log of another harness, or of another version?"
            )


def refuse_repeated(path: Path, names: Iterable[str]) -> None:
    """Refuse names that occur more than once.

    Raises:
        DataError: The message says how many do, and names the first.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{path}: {len(twice)} {'ids occur' if len(twice) > 1 else 'id occurs'} more than once, the first is"
            f" {twice[0]!r}. Expected one answer per question; do two runs write to this file? Give the log of one."
        )


def image_identity(value: Any) -> str | None:
    """Return the digest of an image that a log holds as a data URI, or its path or address; None if there is no image.

    Several images of one question are one identity.
    """
    if isinstance(value, list | tuple):
        one = [identity for item in value if (identity := image_identity(item)) is not None]
        return one[0] if len(one) == 1 else hashlib.sha256("\n".join(one).encode()).hexdigest() if one else None
    if not isinstance(value, str) or not value.strip() or value == _REMOVED or _ADDRESS.search(value):
        return None
    if not value.startswith("data:"):
        return value
    try:
        content = base64.b64decode(value.partition(",")[2], validate=True)
    except binascii.Error:
        return None
    return hashlib.sha256(content).hexdigest()


def is_unscored(value: Any) -> bool:
    """Return whether a score says that it was not computed: by null, by an empty text, or by a number that is none."""
    if isinstance(value, str):
        return value.strip().lower() in ("", "nan", "none", "null")
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def is_likelihood(answer: Any) -> bool:
    """Return whether this is what a harness logs for a choice: its log-likelihood, and whether it is the likeliest."""
    if not (isinstance(answer, list) and len(answer) == 2 and str(answer[1]) in ("True", "False")):
        return False
    try:
        float(answer[0])
    except (TypeError, ValueError):
        return False
    return not isinstance(answer[0], bool)


def verdict(value: Any) -> bool | None:
    """Return whether a score says right or wrong; None if it says neither, such as a fraction.

    Right are 1, true, yes, and Inspect's C; wrong are 0, false, no, and Inspect's I and N (no answer).
    """
    if isinstance(value, bool | int | float):
        return bool(value) if value in (0, 1) else None
    text = value.strip().lower() if isinstance(value, str) else None
    return text in _RIGHT if text in (*_RIGHT, *_WRONG) else None


def flat(name: str, value: Any) -> dict[str, str]:
    """Return {name: text} of a value, with one entry per key of a mapping, at any depth; lists are JSON.

    What Python wrote as the address of an object identifies nothing and is left out, as are nulls, NaN and infinite
    numbers. Data URIs are replaced by the digest of their content.
    """
    if isinstance(value, Mapping):
        return {full: text for key, item in value.items() for full, text in flat(f"{name}.{key}", item).items()}
    if isinstance(value, bool):
        return {name: "true" if value else "false"}
    if isinstance(value, float) and not math.isfinite(value):
        return {}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if value is None or _ADDRESS.search(text):
        return {}
    if text.startswith("data:"):
        digest = image_identity(text)
        return {} if digest is None else {name: digest}
    return {name: text}


def texts(value: Any) -> tuple[str, ...]:
    """Return the gold answers that a log holds as a text, a number, a list, or the text of a Python list."""
    if isinstance(value, str) and value.startswith("[") and value.endswith("]") and len(value) <= _LONGEST_LIST:
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return (value,)
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in value if item is not None)
    return () if value is None else (str(value),)
