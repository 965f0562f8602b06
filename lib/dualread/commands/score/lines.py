"""Questions in, results out, line by line: line k of the output is about line k of the input.

Each result has a `key`, the digest of its question and of the settings. An output file that exists is continued if the
keys of its lines are those of the first questions; a line that an interruption has cut off is written again.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.commands.score.questions import Line, read_lines
from dualread.errors import DataError
from dualread.progress import say, track
from dualread.scoring.results import Failed, Scored
from dualread.scoring.scorer import Scorer
from dualread.store.digest import digest_of


@dataclass(frozen=True, kw_only=True)
class Pending:
    """The questions of a file and what has been written about them.

    Attributes:
        lines: The lines of the input.
        keys: The key of each.
        n_done: How many of them the output has.
        out: The output file; None for standard output.
    """

    lines: list[Line]
    keys: list[str]
    n_done: int
    out: Path | None


def pending(questions: Path, out: Path | None, settings: Mapping[str, Any]) -> Pending:
    """Return the questions of a file, and how many of them `out` has already.

    Raises:
        DataError: The file cannot be read, or `out` holds something else than results of its first lines.
    """
    lines = read_lines(questions)
    keys = [digest_of([settings, str(questions.parent), line.text])[:16] for line in lines]
    return Pending(lines=lines, keys=keys, n_done=0 if out is None else _n_done(out, keys), out=out)


def score(scorer: Scorer, work: Pending) -> int:
    """Score the lines that are not done; return 0, since each failure is told in its own line."""
    todo = work.lines[work.n_done :]
    if work.n_done:
        say(f"{work.out}: has {work.n_done} of {len(work.lines)} results, goes on behind them")
    n_failed = 0
    stream = sys.stdout if work.out is None else work.out.open("a", encoding="utf-8")
    try:
        results = track(_results(scorer, todo), total=len(todo), label="scoring (questions)")
        for line, key, result in zip(todo, work.keys[work.n_done :], results, strict=True):
            n_failed += isinstance(result, Failed)
            row = {"line": line.number, "id": line.id, **result.to_json(), "key": key}
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            stream.flush()
    finally:
        if stream is not sys.stdout:
            stream.close()
    say(f"scored {len(todo)} questions, {n_failed} of which failed" + (f"; wrote {work.out}" if work.out else ""))
    return 0


def _results(scorer: Scorer, lines: list[Line]) -> Iterator[Scored | Failed]:
    """Yield one result per line, in order; lines without a question take no place in a batch."""
    scored = scorer.each(line.question for line in lines if line.question is not None)
    for line in lines:
        yield Failed(error=line.problem) if line.question is None else next(scored)


def _n_done(out: Path, keys: list[str]) -> int:
    """Return how many results the file has, and cut off an unfinished last line."""
    try:
        content = out.read_bytes() if out.exists() else b""
    except OSError as error:
        raise DataError(f"{out}: cannot be read ({error.strerror}). Give another --out.") from error
    whole = content[: content.rfind(b"\n") + 1]
    done = whole.splitlines()
    for k, line in enumerate(done):
        if k >= len(keys) or _key(line) != keys[k]:
            raise DataError(
                f"{out}: line {k + 1} is no result of line {k + 1} of the questions with this reader and these options."
                " Give another --out, or delete the file to score all questions again."
            )
    if len(whole) < len(content):
        with out.open("r+b") as file:
            file.truncate(len(whole))
    return len(done)


def _key(line: bytes) -> str | None:
    try:
        return json.loads(line)["key"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
