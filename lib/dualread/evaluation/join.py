"""Join the predictions of one method with the grades of the same answers, and refuse rows without a counterpart.

Only here do a confidence and a label come into one table. Results are sorted by sample_id, so that nothing depends on
the order of the rows in a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from dualread.errors import ArtifactError
from dualread.evaluation.side_by_side import (
    DONOR,
    FIXED_PREFIX,
    SHUFFLED,
    beside,
    beside_original,
    check_same_questions,
    clusters_for_images,
    conditions_of,
    refuse_rows,
    shown,
)

NO_DONORS = "no same-question donors"
NOT_FORCED = "no claim of these reports is forced on a donor's image"
FORCED_ALONE = "claims of a report are forced on the donor's image, which has no report with the same claims"
_OTHER_IMAGE = "answers were generated on another image than the pair's donor"

# Joined rows, or the reason why there are none.
Rows = pl.DataFrame | str


@dataclass(frozen=True, kw_only=True)
class Joined:
    """The confidences of one method on one (data set, split), joined with the labels.

    Attributes:
        answers: One row per question: sample_id, question_key, answer_type, cluster_id, correct, confidence, imputed.
        pairs: One row per donor pair: sample_id, answer_type, source_cluster_id, donor_cluster_id, and correct,
            canonical_answer and confidence, each with the suffixes _real and _donor.
        fixed: The columns of `pairs`, and correct and confidence with the suffix _fixed: the source's answer, forced on
            the donor's image and judged against the donor's gold answer. Of claims of reports, `pairs` is the reason
            `FORCED_ALONE`, and there is no column with the suffix _donor.
        shuffled: One row per question: sample_id, answer_type, source_cluster_id, shuffled_cluster_id, and correct and
            confidence, each with the suffixes _real and _shuffled, judged against the question's own gold answer.
        conditions: If there is a condition that is none of these, by name every condition, original first: one row per
            question that it asks: sample_id, answer_type, source_cluster_id, other_cluster_id, and correct and
            confidence, each with the suffixes _real, of the condition original, and _other.
    """

    answers: pl.DataFrame
    pairs: Rows
    fixed: Rows
    shuffled: Rows
    conditions: Mapping[str, Rows] = field(default_factory=dict)


def join(
    *,
    where: str,
    manifest: pl.DataFrame,
    pairs: pl.DataFrame | None,
    predictions: dict[str, pl.DataFrame],
    graded: dict[str, pl.DataFrame],
) -> Joined:
    """Join the tables of one (data set, split), which errors call `where`.

    `pairs` is None, or without rows, where there are no donors; `predictions`, of one method, and `graded` are by
    condition.

    Raises:
        ArtifactError: The predictions of a condition are not those of its graded rows; the original or shuffled answers
            are not exactly those to the manifest's questions; the donor or forced answers are not exactly those of the
            pairs; an answer is on an image that its condition does not show; or a condition is missing that is not
            optional, as controls are.
    """
    # Sorting all columns of a large manifest takes longer than all else here.
    questions = _sorted(manifest.select("sample_id", "question_key", "answer_type", "image_id"))
    predictions, graded = _all_sorted(predictions), _all_sorted(graded)
    if ungraded := sorted(predictions.keys() - graded.keys()):
        raise ArtifactError(
            f"{where}/{ungraded[0]}: there are predictions but no graded answers. Grade this shard first."
        )
    scored = {}
    for condition, frame in predictions.items():
        check_same_questions(f"{where}/{condition}", frame, "predictions", graded[condition], "graded answers")
        labels = graded[condition].select("sample_id", "image_id", "canonical_answer", "correct")
        scored[condition] = beside(labels, frame.select("confidence", "imputed"))
    original = _condition(where, scored, "original")
    check_same_questions(f"{where}/original", original, "answers", questions, "manifest")
    answers = beside(questions, original.drop("sample_id", "image_id"))
    paired, fixed = NO_DONORS, NO_DONORS
    if pairs is not None and not pairs.is_empty():
        is_forced_alone = DONOR not in graded and FIXED_PREFIX in graded
        paired = _paired(where, answers, None if is_forced_alone else _condition(where, scored, DONOR), _sorted(pairs))
        fixed = _fixed(where, paired, scored[FIXED_PREFIX]) if FIXED_PREFIX in scored else _why(FIXED_PREFIX, graded)
        paired = FORCED_ALONE if is_forced_alone else paired
    shuffled = _shuffled(where, answers, scored[SHUFFLED]) if SHUFFLED in scored else _why(SHUFFLED, graded)
    by_cluster = clusters_for_images(manifest)
    answers = by_cluster(answers)
    others = {
        name: beside_original(where, name, answers, by_cluster(scored[name])) if name in scored else _why(name, graded)
        for name in conditions_of(graded)
    }
    paired, fixed, shuffled = map(by_cluster, (paired, fixed, shuffled))
    return Joined(answers=answers, pairs=paired, fixed=fixed, shuffled=shuffled, conditions=others)


def _condition(where: str, scored: dict[str, pl.DataFrame], name: str) -> pl.DataFrame:
    if name not in scored:
        known = ", ".join(sorted(scored)) or "none"
        raise ArtifactError(f"{where}: no predictions under condition {name!r}, found: {known}. Score this shard too.")
    return scored[name]


def _paired(where: str, answers: pl.DataFrame, donor: pl.DataFrame | None, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs with the answers on both images; `donor` is None where nothing is generated on the donor's."""
    if donor is not None:
        check_same_questions(f"{where}/donor", donor, "answers", pairs, "pairs")
    real = answers.join(pairs.select("sample_id"), on="sample_id", how="semi", maintain_order="left")
    if len(real) < len(pairs):
        unknown = pairs.filter(~pairs["sample_id"].is_in(answers["sample_id"].implode()))["sample_id"].to_list()
        raise ArtifactError(f"{where}: pairs name questions that are not in the manifest: {shown(unknown)}.")
    values = ["correct", "canonical_answer", "confidence"]
    paired = beside(
        pairs.select("sample_id", "source_image_id", "donor_image_id"),
        real.select("answer_type", *(pl.col(name).alias(f"{name}_real") for name in values)),
    )
    if donor is None:
        return paired
    refuse_rows(f"{where}/donor", pairs["sample_id"], donor["image_id"] != pairs["donor_image_id"], _OTHER_IMAGE)
    return beside(paired, donor.select(pl.col(name).alias(f"{name}_donor") for name in values))


def _fixed(where: str, pairs: pl.DataFrame, fixed: pl.DataFrame) -> pl.DataFrame:
    shard = f"{where}/{FIXED_PREFIX}"
    check_same_questions(shard, fixed, "answers", pairs, "pairs")
    refuse_rows(shard, pairs["sample_id"], fixed["image_id"] != pairs["donor_image_id"], _OTHER_IMAGE)
    other = fixed["canonical_answer"].ne_missing(pairs["canonical_answer_real"])
    refuse_rows(shard, pairs["sample_id"], other, "the forced answer is not the one on the source's image")
    return beside(pairs, fixed.select(correct_fixed="correct", confidence_fixed="confidence"))


def _shuffled(where: str, answers: pl.DataFrame, shuffled: pl.DataFrame) -> pl.DataFrame:
    shard = f"{where}/{SHUFFLED}"
    check_same_questions(shard, shuffled, "answers", answers, "manifest")
    same_image = shuffled["image_id"] == answers["image_id"]
    refuse_rows(shard, answers["sample_id"], same_image, "answers were generated on the question's own image")
    real = answers.select(
        "sample_id", "answer_type", source_image_id="image_id", correct_real="correct", confidence_real="confidence"
    )
    values = shuffled.select(shuffled_image_id="image_id", correct_shuffled="correct", confidence_shuffled="confidence")
    return beside(real, values)


def _sorted(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows by sample_id. Tables of the same questions then have the same rows at the same places."""
    return frame if frame["sample_id"].is_sorted() else frame.sort("sample_id")


def _all_sorted(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    return {name: _sorted(frame) for name, frame in frames.items()}


def _why(condition: str, graded: dict[str, pl.DataFrame]) -> str:
    if condition in graded:
        return f"this method has no confidence under condition {condition}"
    return f"no answers under condition {condition}"
