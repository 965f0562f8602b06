"""One row an answer and choice: how likely the actor holds it."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

CHOICES = Schema(
    name="choices",
    columns={
        "sample_id": column(pl.String, "the question's id in the manifest"),
        "condition": column(pl.String, "condition/view: the answer's condition, and what was asked about it"),
        "choice": column(pl.String, "Yes, No, 0, 1, ..., 100"),
        "log_prob": column(pl.Float64, "log-probability in nats; the choices of an answer need not add up to 1"),
        "n_prompt_tokens": column(pl.Int32, "length of the prompt in tokens, image tokens and forced prefix included"),
    },
)
