"""Whether the answers that choose a threshold are among those on which it is judged."""

import polars as pl

from dualread.commands.evaluate.cells import Cells
from dualread.errors import DataError


def refuse_same(cells: Cells, chooser: Cells) -> None:
    """Refuse calibration answers that are the evaluated ones, whatever their file is called.

    Raises:
        DataError: The answers of every method are the same.
    """
    if len(cells.methods) == len(chooser.methods) and all(
        _rows(one, cells).equals(_rows(other, chooser))
        for one, other in zip(_by_name(cells), _by_name(chooser), strict=True)
    ):
        raise DataError(
            f"{chooser.source}: holds the answers of {cells.source}, on which the threshold is to be judged. Expected"
            " other answers, which no one has used yet: of a threshold that is chosen and judged on the same answers,"
            " the error rate is too low, and nothing is certified."
        )


def shared_questions(cells: Cells, chooser: Cells) -> str | None:
    """Return a warning if questions are in both tables; None if there are none, or if questions have no names."""
    columns = [name for name in _identity(cells) if name in _identity(chooser)]
    if "sample_id" not in columns and len(columns) < 2:
        return None
    own, chosen_on = (
        pl.concat(of.answers.select(columns) for of in one.methods.values()).unique() for one in (cells, chooser)
    )
    if (n := len(own.join(chosen_on, on=columns, how="semi"))) == 0:
        return None
    named = ", ".join("question" if name == "question_key" else name for name in columns)
    return (
        f"warning: {n} of {len(own)} questions of {cells.source} are in {chooser.source} too (equal {named}). If they"
        " are the same questions, the error rate of the kept answers is too low, and nothing is certified."
    )


def _by_name(cells: Cells) -> list[str]:
    return sorted(cells.methods)


def _rows(method: str, cells: Cells) -> pl.DataFrame:
    """Return what was said, in an order that does not depend on names or on the order of the file."""
    columns = ["confidence", "correct", *(["image_id"] if cells.cluster else [])]
    return cells.methods[method].answers.select(columns).sort(columns)


def _identity(cells: Cells) -> list[str]:
    """Return the columns of the table that say which question a row answers."""
    has_question = "within_question_auroc" not in cells.withheld
    return [
        *(["sample_id"] if cells.named else []),
        *(["image_id"] if cells.cluster else []),
        *(["question_key"] if has_question else []),
    ]
