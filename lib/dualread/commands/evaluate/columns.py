"""The columns that a user's tables may have, and what is said about all others."""

from collections.abc import Collection
from difflib import get_close_matches

from dualread.commands.evaluate.given import Given

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
                " something less similar."
            )
    if not others:
        return None
    named = ", ".join(others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
    return f"{given.path}: {len(others)} column{'s' if len(others) > 1 else ''} not used: {named}"


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
