"""Step 3, before a comparison: the questions that all of the compared methods answer."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from dualread.commands.evaluate.given import some
from dualread.commands.evaluate.metrics import Measured, measure
from dualread.errors import DataError
from dualread.evaluation.join import Joined, Rows


def on_common_questions(
    measured: Measured, compared: Sequence[str], *, replicates: int, seed: int
) -> tuple[Measured, str | None]:
    """Return the metrics on the questions that all compared methods answer, and a sentence about the others.

    Args:
        measured: The metrics of one data set, on all answers of each method.
        compared: A method and its baselines, or a method alone, which is compared with all others.
        replicates: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        `measured` itself and None where the methods answer the same questions.

    Raises:
        DataError: There is no question that all of them answer.
    """
    cells = measured.cells
    names = list(compared) if len(compared) > 1 else list(cells.methods)
    if not cells.named or not set(names) <= set(cells.methods):
        return measured, None  # which the comparison refuses
    asked = {name: set(cells.methods[name].answers["sample_id"]) for name in names}
    every, common = set().union(*asked.values()), set.intersection(*asked.values())
    if every == common:
        return measured, None
    lacks = ", ".join(f"{name}: {len(every - mine)}" for name, mine in asked.items() if mine != every)
    if not common:
        raise DataError(
            f"{cells.source}: --compare needs questions that all methods answer, and there are none (of {len(every)},"
            f" without an answer: {lacks}). Give one question the same sample_id with every method."
        )
    methods = {name: _only(cells.methods[name], sorted(common)) for name in names}
    again = measure(replace(cells, methods=methods), replicates=replicates, seed=seed)
    return again, (
        f"warning: {cells.source}: the differences are those on the {len(common)} of {len(every)} questions that all of"
        f" these methods answer; without an answer: {lacks}; left out: {some(sorted(every - common))}"
    )


def _only(joined: Joined, sample_ids: Sequence[str]) -> Joined:
    """Return the rows of these questions."""

    def chosen(rows: Rows) -> Rows:
        return rows if isinstance(rows, str) else rows.filter(pl.col("sample_id").is_in(sample_ids))

    return replace(
        joined, answers=joined.answers.filter(pl.col("sample_id").is_in(sample_ids)), pairs=chosen(joined.pairs)
    )
