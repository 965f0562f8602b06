"""Step 2, the scale of the confidences: probabilities, or other scores, of which only the order counts."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from dualread.own.given import UserTable

_ROUNDING = 1.01  # what exceeds 1 by less is hardly a score of another kind
_FEW = 20  # one in so many
_FAR = 5.0  # honest scores of which half are below 1 (margins, odds) rarely have half of the others above this
_AS_SCORES = (
    "If they are scores of one kind, of which only the order counts, subtract one number from all, in every table, so"
    " that all are negative; give uncertainties, where higher means less sure, the other sign: --columns"
    " confidence=-NAME."
)


@dataclass(frozen=True, kw_only=True)
class Outside:
    """The confidences of one method outside [0, 1], in one table: n of `of`, the first with its row and value.

    `percent` says whether all can be percentages: none is negative, and the largest is from 20 to 100.
    """

    n: int
    of: int
    row: int
    value: str
    percent: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.n} of {self.of} confidences are outside [0, 1]"


def outside(frame: pl.DataFrame) -> Outside | None:
    """Return what is outside [0, 1] in the columns `confidence` and `row`; None if all can be probabilities."""
    found = frame.filter(~pl.col("confidence").is_between(0.0, 1.0)).sort("row")
    if found.is_empty():
        return None
    row, value = found["row"][0], found["confidence"][0]
    smallest, largest = frame.select(pl.min("confidence"), max=pl.max("confidence")).row(0)
    percent = smallest >= 0 and 20 <= largest <= 100  # an entropy of answers rarely reaches 20
    return Outside(n=len(found), of=len(frame), row=row, value=_text(value), percent=percent)


def refuse_mixed(given: UserTable, column: str, method: str, frame: pl.DataFrame) -> None:
    """Refuse confidences of one method that can hardly be anything but probabilities with a slip or another unit.

    Args:
        given: The table, for messages.
        column: Its column of confidences.
        method: The method.
        frame: Its rows, with the columns `confidence` and `row`.

    Raises:
        DataError: `is_mixed` holds; the message counts the rows and names the first.
    """
    found = outside(frame)
    if found is not None and is_mixed(frame["confidence"].to_numpy()):
        raise given.error(
            f"{given.column(column)} of method {method!r} mixes probabilities and other numbers: {found}, the first in"
            f" row {found.row} ({found.value}), and none is negative. Divide percentages by 100; where rounding exceeds"
            f" 1, write 1. {_AS_SCORES}"
        )


def is_mixed(confidence: np.ndarray) -> bool:
    """Whether float64 [n] confidences are probabilities but for some above 1 that are a slip or in percent.

    So it is if none is negative and some are above 1, and either none is above 1.01; or at least as many lie strictly
    between 0 and 1 as above 1, and the latter are at most 1 in 20 of all, or have a median of 5 or more.
    """
    above, inside = confidence[confidence > 1], np.count_nonzero((confidence > 0) & (confidence < 1))
    if not len(above) or confidence.min() < 0:
        return False
    few_or_far = len(above) * _FEW <= len(confidence) or np.median(above) >= _FAR
    return bool(above.max() <= _ROUNDING or (inside >= len(above) and few_or_far))


def same_scale(
    method: str, given: UserTable, answers: pl.DataFrame, pairs: UserTable, donors: pl.DataFrame
) -> Outside | None:
    """Return which answers' confidences are outside [0, 1]; None if all of the two tables can be probabilities.

    Args:
        method: The method.
        given: The table of answers, for messages.
        answers: The method's rows in it, with the columns `confidence` and `row`.
        pairs: The table of donor pairs, for messages.
        donors: The method's rows in it, with the same columns.

    Raises:
        DataError: Only one of the tables leaves [0, 1], so that comparing the two means nothing.
    """
    mine, other = outside(answers), outside(donors)
    if (mine is None) != (other is None):
        names = (given.column("confidence"), pairs.column("donor_confidence"))
        said = [
            f"{name} of {table.path} {'is in' if found is None else 'leaves'} [0, 1], such as"
            f" {_text(frame.sort('row')['confidence'][0]) if found is None else found.value}"
            for name, table, frame, found in zip(names, (given, pairs), (answers, donors), (mine, other), strict=True)
        ]
        raise pairs.error(
            f"method {method!r}: {' but '.join(said)}; CCG-AUC compares the two, so give both on one scale: divide"
            f" percentages by 100. {_AS_SCORES}"
        )
    return mine


def ranks(answers: pl.DataFrame, donors: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Replace confidences by their ranks among all of them, divided by the largest; equal ones stay equal."""
    both = answers["confidence"] if donors is None else pl.concat([answers["confidence"], donors["confidence"]])
    _, found = np.unique(both.to_numpy(), return_inverse=True)
    found = pl.Series("confidence", (found + 1) / (found.max() + 1))
    n = len(answers)
    return answers.with_columns(found[:n]), None if donors is None else donors.with_columns(found[n:])


def _text(value: float) -> str:
    return repr(value).removesuffix(".0")  # with all digits: 1.0000001 is not 1
