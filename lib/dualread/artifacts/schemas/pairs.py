"""One row per question that has a same-question donor."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

PAIRS = Schema(
    name="pairs",
    columns={
        "sample_id": column(pl.String, "the source question"),
        "donor_sample_id": column(pl.String, "the question that lends its image and its gold answer"),
        "question_key": column(pl.String, "the normalized question that both share"),
        "source_image_id": column(pl.String, "image of the source"),
        "donor_image_id": column(pl.String, "image of the donor; never the source's"),
        "n_candidates": column(pl.Int32, "number of questions that could have been the donor"),
    },
)
