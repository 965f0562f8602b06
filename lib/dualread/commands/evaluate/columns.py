"""The columns that a user's tables may have, and what is said about all others."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

import polars as pl

from dualread.commands.evaluate.given import Given
from dualread.errors import ConfigError, did_you_mean

ANSWERS = (
    *("confidence", "correct", "answer", "reference_answer", "image_id", "question", "answer_type", "method"),
    *("sample_id", "dataset", "split", "study"),
)
PAIRS = (
    *("sample_id", "donor_image_id", "donor_confidence", "donor_correct", "donor_answer", "donor_reference_answer"),
    *("method", "dataset", "split"),
)
_SIMILAR = 0.8
_SHOWN = 8  # columns that a sentence names


def mapped(given: Given, columns: Mapping[str, str], known: Collection[str], *, keep: Collection[str] = ()) -> Given:
    """Return the table with the user's own columns under the names by which they are read.

    Names may be exchanged, as in {"answer": "prediction", "reference_answer": "answer"}. A column whose name is needed
    for another one is left out, which `notes` says.

    Args:
        given: The table.
        columns: {name by which it is read: name in the table}; what does not concern this table is ignored.
        known: The names by which columns of this table are read.
        keep: Columns that also keep their own name.
    """
    chosen = {name: own for name, own in columns.items() if name in known and given.has(own)}
    used = set(chosen.values()) - set(keep)
    rest = [name for name in given.frame.columns if name not in chosen and name not in used]
    lost = [name for name in chosen if given.has(name) and name not in chosen.values()]
    notes = [f"column {name!r} is not used; --columns puts {chosen[name]!r} in its place" for name in lost]
    frame = given.frame.select(*rest, *(pl.col(own).alias(name) for name, own in chosen.items()))
    return replace(given, frame=frame, notes=(*given.notes, *notes))


def check_mapping(columns: Mapping[str, str], tables: Sequence[tuple[Given, Collection[str]]]) -> None:
    """Refuse a mapping that names a column that is not read, or one that no table has.

    Args:
        columns: As in `mapped`.
        tables: The tables as they were given, and the names by which columns of each are read.

    Raises:
        ConfigError: The message lists what there is, and the nearest name.
    """
    for name, own in columns.items():
        concerned = [given for given, known in tables if name in known]
        if not concerned:
            known = sorted({one for _, names in tables for one in names})
            raise ConfigError(
                f"--columns {name}={own}: no column {name!r} is read. Known: {', '.join(known)}."
                f"{did_you_mean(name, known)} Write NAME=YOURS, such as confidence={own}."
            )
        if not any(given.has(own) for given in concerned):
            found = concerned[0].frame.columns
            raise ConfigError(
                f"--columns {name}={own}: {concerned[0].path} has no column {own!r}. Found: {', '.join(found)}."
                f"{did_you_mean(own, found)}"
            )


def other_columns(given: Given, known: Collection[str]) -> str | None:
    """Return a sentence about the columns that are not used, or None if there are none.

    Raises:
        DataError: A column has nearly the name of a known one that the table lacks: it would be ignored because of a
            misspelling.
    """
    others = [name for name in given.frame.columns if name not in known]
    missing = {_plain(name): name for name in known if not given.has(name)}
    for name in others:
        if nearest := get_close_matches(_plain(name), missing, n=1, cutoff=_SIMILAR):
            raise given.error(
                f"column {name!r} would be ignored. Did you mean {missing[nearest[0]]!r}? Rename it, to that or to"
                f" something less similar, or say so: --columns {missing[nearest[0]]}={name}."
            )
    if not others:
        return None
    named = ", ".join(others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
    return f"{given.path}: {len(others)} column{'s' if len(others) > 1 else ''} not used: {named}"


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
