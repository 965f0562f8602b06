"""One row per completion: parsed answer, stated confidence, correctness."""

import polars as pl

from dualread.artifacts.schemas import COMPLETION, Schema, column, nullable

GRADED = Schema(
    name="graded",
    columns={
        **COMPLETION,
        "image_id": column(pl.String, "the image that was shown"),
        "answer": nullable(pl.String, "text of the valid answer block; null if there is none"),
        "canonical_answer": nullable(pl.String, "canonical form of the answer; null if empty or missing"),
        "verbalized_confidence": nullable(pl.Float64, "stated confidence in [0, 1]; null if invalid"),
        "parse_status": column(pl.String, "valid, invalid_confidence, invalid_answer or invalid_both"),
        "correct": column(
            pl.Boolean, "whether the canonical answer equals a canonical gold answer for the image shown"
        ),
    },
)
