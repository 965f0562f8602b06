"""A donor's image is a counterfactual only if the question has another gold answer there."""

import polars as pl

from dualread.commands.evaluate.given import Given

_KEY = ["method", "sample_id"]
_PLACE = ["question_key", "image_id"]


def refuse_same_gold(given: Given, donors: pl.DataFrame, answers: pl.DataFrame) -> None:
    """Refuse pairs whose two gold answers are equal, or have to be because one answer is right on both images.

    The donor's gold answer is that of the table of pairs, or else that of the same question about the donor's image in
    the table of answers. Gold answers are equal if they have a canonical form in common, as for the workflow's own
    donors. Where neither is known, nothing is refused.

    Args:
        given: The table of pairs, for messages.
        donors: Its rows, with the columns of `grades.graded` and donor_image_id.
        answers: All answers, with the columns of `grades.graded`.

    Raises:
        DataError: There is such a pair; the message names the first.
    """
    own = [name for name in ("golds", "question_key", "canonical_answer", "correct") if name in answers.columns]
    pairs = donors.join(answers.select(*_KEY, *own), on=_KEY, how="left", suffix="_source", maintain_order="left")
    if "golds" in own:
        if "golds" not in donors.columns:
            pairs = _with_golds(pairs.rename({"golds": "golds_source"}), answers)
        same = pl.col("golds").list.set_intersection("golds_source").list.len() > 0
        _refuse(given, pairs.filter(same), "the gold answer on the donor's image is that of the question", "golds")
    if "canonical_answer" in own and "canonical_answer" in donors.columns:
        same = pl.col("correct") & pl.col("correct_source")
        same &= pl.col("canonical_answer") == pl.col("canonical_answer_source")
        _refuse(given, pairs.filter(same), "one answer is marked as right on both images", "canonical_answer")


def _with_golds(pairs: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Add the gold answers of the same question about the donor's image; null where the answers do not tell them."""
    known = pl.DataFrame(schema={**dict.fromkeys(_PLACE, pl.String), "golds": pl.List(pl.String)})
    if "question_key" in pairs.columns:
        known = answers.select(*_PLACE, "golds").unique().unique(_PLACE, keep="none")
    else:
        pairs = pairs.with_columns(question_key=pl.lit(None, dtype=pl.String))
    return pairs.join(known, left_on=["question_key", "donor_image_id"], right_on=_PLACE, how="left")


def _refuse(given: Given, wrong: pl.DataFrame, problem: str, shown: str) -> None:
    if wrong.is_empty():
        return
    row = wrong.sort("row").row(0, named=True)
    value = row[shown] if isinstance(row[shown], str) else " | ".join(row[shown])
    raise given.error(
        f"{len(wrong)} of {len(given.rows)} pairs are no counterfactual, the first in row {row['row']}, sample_id"
        f" {row['sample_id']!r}: {problem} ({value!r}). CCG-AUC needs an image on which the same question has another"
        " gold answer. Drop these pairs."
    )
