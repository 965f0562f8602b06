"""One row a picture of a manifest: how it looks, small, for finding copies of it."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

THUMBNAILS = Schema(
    name="thumbnails",
    columns={
        "pixel_sha256": column(pl.String, "digest of the decoded RGB pixels and the size, as in the manifest"),
        "thumbnail": column(pl.Binary, "gray levels of the picture at 64 x 64 pixels, row by row, 8 bits each"),
    },
)
