"""One row per given completion, in the order of generations.parquet: its tokens, as the service lists them."""

import polars as pl

from dualread.artifacts.schemas import COMPLETION, Schema, column

TOKENS = Schema(
    name="tokens",
    columns={
        "sample_id": COMPLETION["sample_id"],
        "sample_index": COMPLETION["sample_index"],
        "n_bytes": column(
            pl.List(pl.Int32), "bytes of each token in the completion's text (UTF-8); 0 for the one that ends the turn"
        ),
        "log_probs": column(pl.List(pl.Float64), "log-probability of each token, as the service gave it"),
    },
)
