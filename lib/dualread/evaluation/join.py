"""Join one method's predictions with the grades of the answers they belong to, refusing anything left over.

This is the only place where a confidence and a label are in one table. Results are sorted by sample_id, so nothing
downstream depends on the order of rows in a file.
"""

from dataclasses import dataclass

import polars as pl

from dualread.errors import ArtifactError


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """Everything that one method said about one (data set, split), beside what was true.

    Attributes:
        answers: One row a question: sample_id, question_key, answer_type, image_id, correct, confidence, imputed.
        pairs: One row a donor pair: sample_id, answer_type, source_image_id, donor_image_id, and correct, canonical
            and confidence with the suffixes _real and _donor. None where the data set admits no donors.
    """

    answers: pl.DataFrame
    pairs: pl.DataFrame | None


def evaluate(
    *,
    where: str,
    manifest: pl.DataFrame,
    pairs: pl.DataFrame | None,
    predictions: dict[str, pl.DataFrame],
    graded: dict[str, pl.DataFrame],
) -> Evaluated:
    """Join the tables of one (data set, split).

    Args:
        where: "dataset/split", for messages.
        manifest: The manifest table.
        pairs: The pairs table, or None (or no rows) where there are no donors.
        predictions: One method's predictions by condition.
        graded: Graded completions by condition.

    Raises:
        ArtifactError: Predictions and graded rows of a condition differ, the original answers are not exactly the
            manifest's questions, the donor answers not exactly the pairs, or a needed condition is missing.
    """
    if ungraded := sorted(predictions.keys() - graded.keys()):
        raise ArtifactError(f"{where}/{ungraded[0]}: predictions without graded answers; grade this shard first.")
    scored = {
        condition: _scored(where, condition, frame, graded[condition]) for condition, frame in predictions.items()
    }
    original = _condition(where, scored, "original")
    _same_ids(f"{where}/original", original, "answers", manifest, "manifest")
    questions = manifest.select("sample_id", "question_key", "answer_type", "image_id")
    answers = questions.join(original.drop("image_id"), on="sample_id", how="left", validate="1:1").sort("sample_id")
    if pairs is None or pairs.is_empty():
        return Evaluated(answers=answers, pairs=None)
    return Evaluated(answers=answers, pairs=_paired(where, answers, _condition(where, scored, "donor"), pairs))


def _scored(where: str, condition: str, predictions: pl.DataFrame, graded: pl.DataFrame) -> pl.DataFrame:
    shard = f"{where}/{condition}"
    _same_ids(shard, predictions, "predictions", graded, "graded answers")
    return graded.select("sample_id", "image_id", "canonical_answer", "correct").join(
        predictions.select("sample_id", "confidence", "imputed"), on="sample_id", how="left", validate="1:1"
    )


def _condition(where: str, scored: dict[str, pl.DataFrame], name: str) -> pl.DataFrame:
    if name not in scored:
        found = ", ".join(sorted(scored)) or "none"
        raise ArtifactError(f"{where}: no predictions under condition {name!r}, found: {found}. Score this shard too.")
    return scored[name]


def _paired(where: str, answers: pl.DataFrame, donor: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    _same_ids(f"{where}/donor", donor, "answers", pairs, "pairs")
    values = ["correct", "canonical_answer", "confidence"]
    joined = (
        pairs.select("sample_id", "source_image_id", "donor_image_id")
        .join(answers.select("sample_id", "answer_type", *values), on="sample_id", how="left", validate="1:1")
        .join(
            donor.select("sample_id", "image_id", *values), on="sample_id", how="left", validate="1:1", suffix="_donor"
        )
        .rename({name: f"{name}_real" for name in values})
        .sort("sample_id")
    )
    if unknown := joined.filter(pl.col("correct_real").is_null())["sample_id"].to_list():
        raise ArtifactError(f"{where}: pairs name questions that are not in the manifest: {_some(unknown)}.")
    if other := joined.filter(pl.col("image_id") != pl.col("donor_image_id"))["sample_id"].to_list():
        raise ArtifactError(
            f"{where}/donor: answers were generated on another image than the pair's donor: {_some(other)}. "
            "Generate this shard again from these pairs."
        )
    return joined.drop("image_id")


def _same_ids(where: str, left: pl.DataFrame, left_name: str, right: pl.DataFrame, right_name: str) -> None:
    for frame, name in ((left, left_name), (right, right_name)):
        if twice := frame.filter(pl.col("sample_id").is_duplicated())["sample_id"].unique().to_list():
            raise ArtifactError(f"{where}: {name} hold more than one row of: {_some(twice)}; expected one a question.")
    ids, others = set(left["sample_id"]), set(right["sample_id"])
    if ids != others:
        raise ArtifactError(
            f"{where}: {left_name} and {right_name} must hold the same questions. Only in {left_name}: "
            f"{_some(ids - others)}; only in {right_name}: {_some(others - ids)}. Run the stage that lacks them again."
        )


def _some(ids: list[str] | set[str]) -> str:
    ordered = sorted(ids)
    return (
        ", ".join(ordered[:5]) + (f", ... ({len(ordered)} in all)" if len(ordered) > 5 else "") if ordered else "none"
    )
