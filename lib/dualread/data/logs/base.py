"""What a reader of another harness's logs has to provide, what it returns, and what such readers share.

A reader is a module with `read_log(path) -> Log` and these literals, which are read without importing it:

    SUFFIXES    of its files, such as [".eval"]
    CONFIDENCE  a sentence for people: what to switch on in the harness so that its logs hold a confidence

A reader takes the fields that docs/harnesses.md lists and judges nothing: scores stay as the harness wrote them.
"""

import base64
import binascii
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dualread.errors import DataError


@dataclass(frozen=True, kw_only=True)
class LoggedSample:
    """One question and what a model answered.

    Attributes:
        sample_id: The question's name, unique in the log.
        question: Its text; None if the log does not hold it.
        references: Accepted gold answers; empty if the log holds none.
        completions: What the model wrote. The scores judge the first; the others are further draws.
        scores: {score: its value as the harness wrote it}; None where it judges something else than the first.
        scored_answers: {score: what it took for the answer of each completion}; of the first alone, or of none, where
            the log does not say more.
        choice_likelihoods: {score: probability of the choice that it judges, among all choices of the question}.
        tokens: Of the first completion: each token's bytes in UTF-8, and its log-probability in nats.
        options: The texts of the options A, B, ... among which the model was to choose.
        image: A digest of the image's content, or its path or address; None if it is not in the log.
        others: Whatever else the log says of the question, by the name under which a user may refer to it.

    Raises:
        TypeError: Something is not text that should be.
        UnicodeEncodeError: A text could not be written again.
    """

    sample_id: str
    question: str | None = None
    references: Sequence[str] = ()
    completions: Sequence[str] = ()
    scores: Mapping[str, Any] = field(default_factory=dict)
    scored_answers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    choice_likelihoods: Mapping[str, float] = field(default_factory=dict)
    tokens: Sequence[tuple[bytes, float]] = ()
    options: Sequence[str] = ()
    image: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        answers = [text for texts in self.scored_answers.values() for text in texts]
        names = [text for text in (self.sample_id, self.question, self.image) if text is not None]
        "".join([*names, *self.references, *self.completions, *self.options, *answers, *self.others.values()]).encode()


@dataclass(frozen=True, kw_only=True)
class Log:
    """The answers of one log: its samples, {why: number of questions without an answer}, and sentences about it."""

    samples: Sequence[LoggedSample]
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


def read_objects(path: Path, keys: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines, or of one JSON list; see `checked_rows`."""
    text = path.read_text(encoding="utf-8-sig")
    is_list = text.lstrip().startswith("[")
    rows = json.loads(text) if is_list else [json.loads(line) for line in text.split("\n") if line.strip()]
    return checked_rows(path, rows, keys, names)


def checked_rows(path: Path, rows: Iterable[Any], keys: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a log, which have all `keys` and of which no two are equal in all `names`; DataError
    otherwise.
    """
    rows = list(rows)
    for number, row in enumerate(rows, start=1):
        lacking = [key for key in keys if key not in row] if isinstance(row, dict) else [type(row).__name__]
        if lacking:
            raise DataError(f"{path}: row {number} is no object with {', '.join(keys)} ({lacking[0]}).")
    counts = Counter(" ".join(str(row[key]) for key in names) for row in rows)
    if len(counts) < max(len(rows), 1):
        what = f"{counts.most_common(1)[0][0]!r} occurs more than once" if rows else "has no rows"
        raise DataError(f"{path}: {what}. Expected the log of one run, with one row per {' and '.join(names)}.")
    return rows


def image_identity(image: Any) -> str | None:
    """Return the digest of an image that a log holds as a data URI, or its path or address; None if there is none.

    Several images of one question, a list, are one identity.
    """
    if isinstance(image, list):
        names = [name for name in map(image_identity, image) if name is not None]
        return names[0] if len(names) == 1 else hashlib.sha256("\n".join(names).encode()).hexdigest() if names else None
    if not isinstance(image, str) or not image.strip() or image == "<base64-data-removed>" or " at 0x" in image:
        return None  # the last is how Python writes an object: its address names nothing
    if not image.startswith("data:"):
        return image
    try:
        return hashlib.sha256(base64.b64decode(image.partition(",")[2], validate=True)).hexdigest()
    except binascii.Error:
        return None


def flat(name: str, value: Any) -> dict[str, str]:
    """Return {name: text} of a value: one entry per key of a mapping at any depth; lists are JSON, nulls nothing."""
    if isinstance(value, Mapping):
        return {full: text for key, item in value.items() for full, text in flat(f"{name}.{key}", item).items()}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return {} if value is None or text in ("NaN", "Infinity", "-Infinity") or " at 0x" in text else {name: text}
