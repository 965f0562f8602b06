"""Whether the answers that choose a threshold, and those on which it is judged, are what they are said to be."""

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


def refuse_more(cells: Cells, max_per_image: int) -> None:
    """Refuse answers if an image has more of them than a user says that any image has.

    Raises:
        DataError: An image has more; the message names it.
    """
    image, n = _largest_image(cells)
    if n > max_per_image:
        raise DataError(
            f"{cells.source}: {cells.cluster} {image!r} has {n} answers, and --max-per-image says that none has more"
            f" than {max_per_image}. Give the largest number that an image of this source can have."
        )


def more_than_calibrated(cells: Cells, chooser: Cells) -> str | None:
    """Return a warning if an evaluated image has more answers than all that chose the threshold; None otherwise."""
    image, n = _largest_image(cells)
    if n <= (most := _largest_image(chooser)[1]):
        return None
    return (
        f"warning: {cells.cluster} {image!r} of {cells.source} has {n} answers, more than any of {chooser.source}"
        f" ({most}). Certified thresholds assume that no new one has more than these; state the largest number that is"
        " possible with --max-per-image."
    )


def _largest_image(cells: Cells) -> tuple[str, int]:
    """Return the image with the most answers of one method, and their number."""
    counts = [of.answers["image_id"].value_counts().sort("count", "image_id") for of in cells.methods.values()]
    return max(((str(image), n) for image, n in (count.row(-1) for count in counts)), key=lambda found: found[1])


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
