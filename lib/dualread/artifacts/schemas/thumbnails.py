"""One row per picture of a table of questions: a small gray version, to find copies of the picture."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

THUMBNAILS = Schema(
    name="thumbnails",
    columns={
        "pixel_sha256": column(
            pl.String, "digest of the size and the decoded RGB pixels, as in the table of questions"
        ),
        "thumbnail": column(pl.Binary, "gray levels of the picture at 64 x 64 pixels, row by row, 8 bits each"),
    },
)
