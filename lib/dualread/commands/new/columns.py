"""Which columns of a user's table are which; a guess is said, and has to be confirmed by an option."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from dualread.data.datasets.own_tables import Line
from dualread.data.datasets.table import COLUMNS
from dualread.errors import ConfigError

_NEEDED = ("question", "reference_answers", "image")
# What columns are often called.
_OFTEN = {
    "question": ("query", "prompt", "frage", "question_text", "text"),
    "reference_answers": ("answer", "answers", "reference", "reference_answer", "gold", "label", "target", "antwort"),
    "image": (
        "images",
        "image_path",
        "image_file",
        "img",
        "img_name",
        "filename",
        "file_name",
        "file",
        "picture",
        "path",
        "bild",
    ),
}
_OFTEN_IDS = ("question_id", "qid", "index", "uid", "sample_id", "questionid")


def chosen(lines: Sequence[Line], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the setting `columns` of the loader `table`.

    Args:
        lines: The rows of all tables.
        columns: {name of a column that the loader reads: its name in the table}, as the user says.

    Raises:
        ConfigError: A needed column is missing; the message says which one it could be.
    """
    found = list(dict.fromkeys(name for line in lines for name in line.record))
    missing = [name for name in _NEEDED if name not in columns and name not in found]
    if not missing:
        others = [name for name in found if name not in COLUMNS]
        return {"columns": dict(columns)} if columns or others else {}  # which also ignores the others
    guesses = {name: guess for name in missing if (guess := _guess(name, found, columns.values())) is not None}
    meant = " ".join(f"{name}={guesses.get(name, 'YOURS')}" for name in missing)
    advice = "If this is meant, add" if len(guesses) == len(missing) else "Add"
    given = "".join(f" {name}={own}" for name, own in columns.items())
    raise ConfigError(
        f"{lines[0].file if lines else 'the table'}: no column {', '.join(missing)}. Found: {', '.join(found)}."
        f" {advice}: --columns{given} {meant}"
    )


def about(lines: Sequence[Line], columns: Mapping[str, str]) -> list[str]:
    """Return sentences that name the columns that are read, and those that are not."""
    found = dict.fromkeys(name for line in lines for name in line.record)
    named = [f"{name} is {own!r}" for name, own in columns.items()]
    used = [name for name in found if name in COLUMNS and name not in columns and name not in columns.values()]
    unused = [name for name in found if name not in used and name not in columns.values()]
    said = [f"columns: {', '.join([*used, *named])}"]
    if unused:
        said.append(f"columns that are not read: {', '.join(unused)}")
    if "id" not in (*used, *columns) and (ids := [name for name in unused if name.lower() in _OFTEN_IDS]):
        said.append(f"ids are digests of the rows; --columns id={ids[0]} takes those of the table")
    return said


def _guess(name: str, found: Sequence[str], taken: Any) -> str | None:
    spelled = {one.lower(): one for one in found if one not in taken}
    named = [spelled[one] for one in _OFTEN[name] if one in spelled]
    close = get_close_matches(name, spelled, n=1, cutoff=0.7)
    return named[0] if named else spelled[close[0]] if close else None
