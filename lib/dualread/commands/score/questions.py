"""Read a .jsonl file of questions; a line that holds none keeps its place and says what is wrong."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.errors import DataError
from dualread.scoring.questions import Question


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the file.

    Attributes:
        number: Its number, from 1.
        text: The line.
        id: What its `id` says; None without one.
        question: The question; None if the line holds none.
        problem: Why it holds none; "" if it holds one.
    """

    number: int
    text: str
    id: Any = None
    question: Question | None = None
    problem: str = ""


def read_lines(file: Path) -> list[Line]:
    """Return the lines of a .jsonl file; images are looked for beside the file.

    Raises:
        DataError: The file cannot be read, is not UTF-8, or has no line.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}). Expected a .jsonl file of questions.") from error
    except ValueError as error:
        raise DataError(f"{file}: is not UTF-8 text ({error}). Expected a .jsonl file of questions.") from error
    while lines and not lines[-1].strip():  # many programs end a file with blank lines
        lines.pop()
    if not lines:
        raise DataError(f'{file}: is empty. Expected a line such as {{"image": "x.png", "question": "..."}}.')
    return [_line(number, text, file.parent) for number, text in enumerate(lines, start=1)]


def _line(number: int, text: str, folder: Path) -> Line:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Line(number=number, text=text, problem=f"line {number}: not JSON ({error}). Expected one object.")
    if _has_half_characters(text, found):
        return Line(number=number, text=text, problem=f"line {number}: an escape is half of a character. Correct it.")
    if not isinstance(found, dict):
        return Line(number=number, text=text, problem=f"line {number}: not an object. Expected image and question.")
    own = Line(number=number, text=text, id=found.get("id"))
    problems = [
        *(f"no {name}" for name in ("image", "question") if found.get(name) is None),
        *(
            f"{name} is {found[name]!r}, expected a text"
            for name in ("image", "question", "donor")
            if not isinstance(found.get(name), str | None)
        ),
        *(["options: expected a list of texts"] if not isinstance(found.get("options"), list | None) else []),
    ]
    if problems:
        return Line(**{**vars(own), "problem": f"line {number}: {'; '.join(problems)}."})
    donor = found.get("donor")
    question = Question(
        image=folder / found["image"],
        question=found["question"],
        options=found.get("options") or (),
        donor=None if donor is None else folder / donor,
    )
    return Line(**{**vars(own), "question": question})


def _has_half_characters(text: str, found: Any) -> bool:
    """Return whether an escape of JSON is half of a surrogate pair, which no text file can hold."""
    try:
        if "\\ud" in text.lower():
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
