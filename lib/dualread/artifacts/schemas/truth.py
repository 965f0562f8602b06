"""One row per image of a phantom hospital: what its writer knows. The loader of the data set does not read it."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

TRUTH = Schema(
    name="truth",
    columns={
        "image_id": column(pl.String, "the image, as the table of questions names it"),
        "haze": column(pl.Float64, "share of the contrast that a haze takes away, in [0, 1]; 0 is a clear image"),
    },
)
