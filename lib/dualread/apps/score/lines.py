"""The questions of a table, what `score` writes about each of them, line by line, and what it prints about one.

Line k of the output is about row k of the input. Each result has a `key`, the digest of its question, the readers, the
actor, the prompt and the threshold. An output file that exists is continued if the keys of its lines are those of the
first questions; a line that an interruption has cut off is written again.
"""

import hashlib
import json
import reprlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dualread.apps.score.results import AnswerSet, Claim, Failed, Question, Reading, Scored
from dualread.apps.score.scorer import Scorer
from dualread.apps.text import aligned
from dualread.data.datasets.source_rows import SourceRow, image_in, in_form, unfolded, with_images
from dualread.data.tables.files import BrokenLine, read_records
from dualread.digests import digest_of
from dualread.errors import DataError
from dualread.progress import say, track
from dualread.schema.columns import FEWEST_OPTIONS, MOST_OPTIONS


@dataclass(frozen=True, kw_only=True)
class QuestionRow:
    """One row of a table of questions.

    `number` is that of its line from 1, or of its row in a file without lines; `text` is what it says, as one text, and
    `id` what its `id` says. Where it holds no question, `problem` says why.
    """

    number: int
    text: str
    id: Any = None
    question: Question | None = None
    problem: str = ""


def read_rows(file: Path) -> list[QuestionRow]:
    """Return the rows of a table of questions, as the data sets' loader `table` reads them; images are beside the file.

    Raises:
        DataError: The file cannot be read, has no rows, or can be read in two ways; ids have lost digits; or a
            conversation is not one question and one answer.
    """
    read = read_records(file, every=True)
    rows = list(read.rows)
    if not rows:
        raise DataError(f'{file}: is empty. Expected a row such as {{"image": "x.png", "question": "..."}}.')
    lines = [
        SourceRow(file=file, unit=read.unit, number=number - 1, record=record)
        for number, record in rows
        if not isinstance(record, BrokenLine)
    ]
    formed = iter(in_form(with_images(unfolded(lines))))
    return [
        QuestionRow(number=number, text=record.why, problem=f"{read.unit} {number}: {record.why}")
        if isinstance(record, BrokenLine)
        else _row(read.unit, number, record, next(formed).record, file.parent)
        for number, record in rows
    ]


_PICTURE = "a path, or the bytes of an image, or a list of them"
_KINDS = (
    *(("image", Path | bytes, _PICTURE), ("question", str, "a text"), ("donor", Path | bytes, _PICTURE)),
    ("answer_type", str, "open or closed"),
)


def _row(unit: str, number: int, record: Mapping[str, Any], formed: Mapping[str, Any], folder: Path) -> QuestionRow:
    def picture(value: Any) -> Any:
        """Return the path or the bytes of a picture, which datasets writes as {bytes, path}, or of several."""
        if isinstance(value, list):
            return [picture(item) for item in value]
        if isinstance(value, Mapping):
            value = value.get("path") if value.get("bytes") is None else value["bytes"]
        return folder / value if isinstance(value, str) else value

    def plain(value: Any) -> str:
        return hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else str(value)

    name = record.get("id") if type(record.get("id")) is int else formed.get("id")
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, default=plain)
    row = QuestionRow(number=number, text=text, id=name)
    asked: dict[str, Any] = {name: formed.get(name) for name in ("question", "answer_type")}
    asked |= {name: picture(image_in(formed.get(name))) for name in ("image", "donor")}
    options = formed.get("options") or []
    is_list = isinstance(options, Sequence) and FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS
    are_texts = is_list and not isinstance(options, str) and all(isinstance(option, str) for option in options)
    problems = [
        *(f"no {name}" for name in ("image", "question") if asked[name] is None),
        *(
            f"{name} is {reprlib.repr(record.get(name))}, expected {expected}"
            for name, kinds, expected in _KINDS
            if (value := asked[name]) is not None
            and not all(isinstance(item, kinds) for item in (value if value and isinstance(value, list) else [value]))
        ),
    ]
    if options and not are_texts:
        problems.append(f"options: expected none, or a list of {FEWEST_OPTIONS} to {MOST_OPTIONS} texts")
    if problems:
        return replace(row, problem=f"{unit} {number}: {'; '.join(problems)}.")
    return replace(row, question=Question(**asked, options=tuple(options)))


def score(scorer: Scorer, lines: list[QuestionRow], out: Path | None) -> int:
    """Score the lines that are not done; return 0, since each failure is told in its own line.

    The output file `out` is continued if it exists; None is standard output. A DataError says that it cannot be read,
    or holds something else than results of the first lines by this scorer.
    """
    keys = [digest_of([scorer.digest, line.text])[:16] for line in lines]
    n_done, n_failed = 0 if out is None else _n_done(out, keys), 0
    if n_done:
        say(f"{out}: has {n_done} of {len(lines)} results, goes on behind them")
    todo = lines[n_done:]
    stream = sys.stdout if out is None else out.open("a", encoding="utf-8")
    try:
        scored = scorer.each(line.question for line in todo if line.question is not None)
        # Lines without a question take no place in a batch.
        each = (Failed(error=line.problem) if line.question is None else next(scored) for line in todo)
        results = track(each, total=len(todo), label="scoring (questions)")
        for line, key, result in zip(todo, keys[n_done:], results, strict=True):
            n_failed += isinstance(result, Failed)
            row = {"line": line.number, "id": line.id, **result.to_json(), "key": key}
            stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            stream.flush()
    finally:
        if stream is not sys.stdout:
            stream.close()
    say(f"scored {len(todo)} questions, {n_failed} of which failed" + (f"; wrote {out}" if out else ""))
    return 0


def _n_done(out: Path, keys: list[str]) -> int:
    """Return how many results the file has, and cut off an unfinished last line."""
    try:
        content = out.read_bytes() if out.exists() else b""
    except OSError as error:
        raise DataError(f"{out}: cannot be read ({error.strerror}). Give another --out.") from error
    complete = content[: content.rfind(b"\n") + 1]
    done = complete.splitlines()
    for k, line in enumerate(done):
        try:
            key = json.loads(line)["key"]
        except (ValueError, KeyError, TypeError, RecursionError):
            key = None
        if k >= len(keys) or key != keys[k]:
            raise DataError(
                f"{out}: line {k + 1} is no result of line {k + 1} of the questions with this reader, actor and"
                " threshold. Give another --out, or delete the file to score all questions again."
            )
    if len(complete) < len(content):
        with out.open("r+b") as file:
            file.truncate(len(complete))
    return len(done)


_IMPUTED = "  imputed: the method has no value here"
_KEPT = {True: "  keep", False: "  do not keep", None: ""}
_DECISIONS = {True: "keep", False: "do not keep", None: "undecided"}


def text(scored: Scored, method: str) -> str:
    """Return a few aligned lines: answer, confidences, decision, and what differs on the donor's image."""
    rows = [
        ["answer", scored.answer or "none"],
        ["confidence", _confidence(scored)],
        *([f"  {claim.text}", _confidence(claim) + _KEPT[claim.keep]] for claim in scored.claims or ()),
        *(
            [name, "none" if value.confidence is None else f"{value.confidence:.4f}{_IMPUTED * value.imputed}"]
            for name, value in scored.methods.items()
            if name != method
        ),
        ["decision", f"{_DECISIONS[scored.decision.keep]}: {scored.decision.reason}"],
        *([f"answer set, miss {answer_set.miss_percent}%", _options(answer_set)] for answer_set in scored.answer_sets),
    ]
    if scored.donor is not None:
        rows += [
            ["on the donor's image", scored.donor.answer or "none"],
            ["  confidence", f"{_confidence(scored.donor)}"],
            ["  drop", "none" if scored.drop is None else f"{scored.drop:+.4f}"],
        ]
    rows += [["note", note] for note in scored.notes]
    return "\n".join(aligned(rows, numbers=()))


def _options(answer_set: AnswerSet) -> str:
    """Return the choices in a set, and then the others, with their probabilities."""
    if answer_set.reason is not None:
        return f"none: {answer_set.reason}"
    inside, outside = (
        ", ".join(f"{option.text} {option.probability:.4f}" for option in answer_set.options if option.in_set == is_in)
        for is_in in (True, False)
    )
    return f"{{{inside}}}" + (f"  not {outside}" if outside else "")


def _confidence(reading: Reading | Claim) -> str:
    parts = {"PSR {:.4f} before the answer": reading.psr, "PER {:.4f} after it": reading.per}
    shown = ", ".join(text.format(value) for text, value in parts.items() if value is not None)
    confidence = f"none: {reading.reason}" if reading.confidence is None else f"{reading.confidence:.4f}"
    return confidence + (f"  {shown}" if shown else "")
