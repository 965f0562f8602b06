"""The answers of a study as the plain tables that `dualread evaluate` reads: one of answers, one of donor pairs.

From these tables `dualread evaluate` computes the study's own estimates and intervals, because the columns study,
dataset and split name the resamples.
"""

from collections.abc import Mapping

import polars as pl

DONOR = "donor"


def answers_table(
    *, study: str, manifest: pl.DataFrame, predictions: pl.DataFrame, graded: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    """Return one row per method and question of one (data set, split), sorted by both.

    Args:
        study: The study's name.
        manifest: The manifest table of the (data set, split).
        predictions: Predictions of one run; methods may be several. Those of other data sets and splits are ignored.
        graded: The graded table of each condition; "original" is needed.

    Returns:
        The columns method, study, dataset, split, sample_id, image_id, question, answer_type, answer, reference_answer
        (several are separated by `#`), correct (0 or 1) and confidence.
    """
    questions = manifest.select(
        *("dataset", "split", "sample_id", "image_id", "question", "answer_type"),
        reference_answer=pl.col("reference_answers").list.join("#"),
    )
    grades = graded["original"].select("sample_id", "answer", correct=pl.col("correct").cast(pl.Int64))
    return (
        _of_condition(predictions, manifest, "original")
        .join(questions, on="sample_id", how="left", validate="m:1")
        .join(grades, on="sample_id", how="left", validate="m:1")
        .select(
            *("method", pl.lit(study).alias("study"), "dataset", "split", "sample_id", "image_id", "question"),
            *("answer_type", "answer", "reference_answer", "correct", "confidence"),
        )
        .sort("method", "sample_id")
    )


def pairs_table(
    *, manifest: pl.DataFrame, pairs: pl.DataFrame, predictions: pl.DataFrame, graded: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    """Return one row per method and donor pair of one (data set, split), sorted by method and question.

    Args:
        manifest: The manifest table of the (data set, split).
        pairs: Its pairs table.
        predictions: As in `answers_table`.
        graded: As in `answers_table`; "donor" is needed.

    Returns:
        The columns method, dataset, split, sample_id, donor_image_id, donor_answer, donor_correct (0 or 1) and
        donor_confidence.
    """
    grades = graded[DONOR].select("sample_id", donor_answer="answer", donor_correct=pl.col("correct").cast(pl.Int64))
    return (
        _of_condition(predictions, manifest, DONOR)
        .join(manifest.select("sample_id", "dataset", "split"), on="sample_id", how="left", validate="m:1")
        .join(pairs.select("sample_id", "donor_image_id"), on="sample_id", how="left", validate="m:1")
        .join(grades, on="sample_id", how="left", validate="m:1")
        .select(
            *("method", "dataset", "split", "sample_id", "donor_image_id", "donor_answer", "donor_correct"),
            donor_confidence="confidence",
        )
        .sort("method", "sample_id")
    )


def _of_condition(predictions: pl.DataFrame, manifest: pl.DataFrame, condition: str) -> pl.DataFrame:
    of_shard = predictions.filter(condition=condition).join(
        manifest.select("dataset", "split").unique(), on=["dataset", "split"], how="semi"
    )
    return of_shard.select("method", "sample_id", "confidence")
