"""Summarize the questions of a study: counts per role, and every step from the official files to these questions."""

import polars as pl

from dualread.artifacts.tables import from_rows
from dualread.data.questions.partition import ROLES
from dualread.schema.columns import DATA


def summarize(
    manifest: pl.DataFrame,
    audit: pl.DataFrame,
    pairs: pl.DataFrame | None,
    pair_audit: pl.DataFrame | None,
    *,
    manifest_sha256: str,
) -> pl.DataFrame:
    """Return a `data` table of one split, with one row per role, in the order of `ROLES`.

    Args:
        manifest: The table of questions of the split.
        audit: The audit that `dualread.data.questions.build.build` returned with it; its first step starts from the
            official file.
        pairs: The pairs of the split, each counted in the role of its source; None if the study asks for no pairs.
        pair_audit: The audit that `dualread.data.donors.pair` returned with them; None if there are no pairs.
        manifest_sha256: Digest of the table of questions.
    """
    rule = None if pair_audit is None else pair_audit["rule"][0]
    rows = []
    for role in ROLES:
        questions = manifest.filter(pl.col("role") == role)
        if questions.is_empty():
            continue
        n_pairs = None if pairs is None else questions["sample_id"].is_in(pairs["sample_id"].to_list()).sum()
        n_open = (questions["answer_type"] == "open").sum()
        rows.append(
            {
                "dataset": questions["dataset"][0],
                "split": questions["split"][0],
                "role": role,
                "source_rows": audit["kept"][0] + audit["dropped"][0],
                "questions": questions.height,
                "images": questions["image_id"].n_unique(),
                "open": n_open,
                "closed": questions.height - n_open,
                "pairs": n_pairs,
                "reason": None if n_pairs else _why_none(manifest, questions, rule),
                "manifest_sha256": manifest_sha256,
            }
        )
    return from_rows(rows, DATA)


def account(manifest: pl.DataFrame, audit: pl.DataFrame, pair_audit: pl.DataFrame | None) -> pl.DataFrame:
    """Return the steps of both audits as one table: dataset, split, step, kept, dropped, reason."""
    steps = audit.select("step", "kept", "dropped", "reason")
    if pair_audit is not None:
        candidates = pl.col("mean_candidates").round(1).cast(pl.String).fill_null("no")
        text = pl.format("{}; {} questions were eligible, {} candidates per pair", "rule", "n_eligible", candidates)
        kept, dropped = pl.col("n_pairs").alias("kept"), (pl.col("n_questions") - pl.col("n_pairs")).alias("dropped")
        steps = pl.concat(
            [steps, pair_audit.select(pl.lit("donors").alias("step"), kept, dropped, text.alias("reason"))]
        )
    where = [pl.lit(manifest[name][0]).alias(name) for name in ("dataset", "split")]
    return steps.select(*where, pl.all())


def _why_none(manifest: pl.DataFrame, asked: pl.DataFrame, rule: str | None) -> str:
    if rule is None:
        return "the study pairs no questions of this split"
    on_images = manifest.group_by("question_key").agg(pl.col("image_id").n_unique())
    recurring = on_images.filter(pl.col("image_id") > 1, pl.col("question_key").is_in(asked["question_key"].to_list()))
    if recurring.is_empty():
        return "no question is asked about two images"
    return f"{recurring.height} questions are asked about several images, none with another gold answer ({rule})"
