"""Step 1, multiple choice: answers and gold answers that name options become the texts of these options."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from dualread.commands.evaluate.given import Given
from dualread.errors import ConfigError
from dualread.grading.options import WAYS, option_of, ways_of

_NUMBERS = ("number from 0", "number from 1")


def with_options(given: Given, columns: Sequence[str]) -> Given:
    """Return the table with the text of an option in place of its letter or number.

    An answer that names no option stays as it is, and is graded as it is.

    Args:
        given: The table.
        columns: The columns that hold the options A, B, ..., or one column that holds lists of them.

    Raises:
        ConfigError: A column is missing.
        DataError: Gold answers name options in no way, or in several; or answers do so by numbers from 0 or 1 alike.
    """
    for column in columns:
        if not given.has(column):
            raise ConfigError(
                f"--options {column}: {given.path} has no such column. Found: {', '.join(given.frame.columns)}."
            )
    options = _options(given, columns)
    notes = []
    for prefix in ("", "donor_"):
        answer, reference = f"{prefix}answer", f"{prefix}reference_answer"
        if given.has(reference):
            golds = given.alternatives(reference)
            way = _way(given, reference, golds, options)
            named = [
                [_text(WAYS[way](gold, own), gold, own) for gold in row]
                for row, own in zip(golds, options, strict=True)
            ]
            given = _with(given, pl.Series(reference, named, dtype=pl.List(pl.String)))
            notes.append(f"{given.column(reference)} names options by {way}")
        if given.has(answer):
            texts = given.wholes(answer).to_list()
            way = _way_of_answers(given, answer, texts, options)
            found = [
                None if text is None else _text(_place(text, own, way), text, own)
                for text, own in zip(texts, options, strict=True)
            ]
            given = _with(given, pl.Series(answer, found, dtype=pl.String))
    return replace(given, notes=(*given.notes, *notes))


def _options(given: Given, columns: Sequence[str]) -> list[list[str]]:
    """Return the options of every row, in their order; "" where there is none."""
    if len(columns) == 1:
        return given.alternatives(columns[0])
    texts = [[text or "" for text in given.wholes(column)] for column in columns]
    return [list(row) for row in zip(*texts, strict=True)]


def _way(given: Given, column: str, golds: Sequence[Sequence[str]], options: Sequence[Sequence[str]]) -> str:
    """Return the one way in which all gold answers name options; their texts come first."""
    flat = [(gold, own) for row, own in zip(golds, options, strict=True) for gold in row]
    ways = ways_of([gold for gold, _ in flat], [own for _, own in flat])
    if "text" in ways or len(ways) == 1:
        return ways[0]
    if ways:
        raise given.error(
            f"{given.column(column)} names options by {' or '.join(ways)}, and nothing tells which. Write their letters"
            " or texts."
        )
    wrong = next((gold for gold, own in flat if not any(way(gold, own) is not None for way in WAYS.values())), None)
    shown = "in several ways" if wrong is None else f"{wrong!r} names none"
    raise given.error(
        f"{given.column(column)} does not name an option in one way in all rows ({shown}). Expected the text, the"
        " letter or the number of an option."
    )


def _way_of_answers(
    given: Given, column: str, texts: Sequence[str | None], options: Sequence[Sequence[str]]
) -> str | None:
    """Return how answers name options by numbers; None if they name them by text or letter, if at all."""
    pairs = [(text, own) for text, own in zip(texts, options, strict=True) if text is not None]
    ways = ways_of([text for text, _ in pairs], [own for _, own in pairs])
    numbers = [way for way in _NUMBERS if way in ways]
    if not numbers or "text" in ways:
        return None
    if len(numbers) > 1:
        raise given.error(
            f"{given.column(column)} names options by {' or '.join(numbers)}, and nothing tells which. Write their"
            " letters or texts."
        )
    return numbers[0]


def _place(text: str, options: Sequence[str], way: str | None) -> int | None:
    return option_of(text, options) if way is None else WAYS[way](text, options)


def _text(place: int | None, otherwise: str, options: Sequence[str]) -> str:
    return otherwise if place is None else options[place]


def _with(given: Given, column: pl.Series) -> Given:
    return replace(given, frame=given.frame.with_columns(column))
