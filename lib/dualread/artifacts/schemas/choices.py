"""One row per answer and choice: how probable the choice is to the actor."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

CHOICES = Schema(
    name="choices",
    columns={
        "sample_id": column(pl.String, "id of the question in the table of questions (manifest.parquet)"),
        "condition": column(pl.String, "condition/view: the condition of the answer, and the view that asks about it"),
        "choice": column(pl.String, "Yes, No, 0, 1, ..., 100"),
        "log_prob": column(
            pl.Float64, "log-probability in nats; the probabilities of all choices need not add up to 1"
        ),
        "n_prompt_tokens": column(pl.Int32, "length of the prompt in tokens, image tokens and forced prefix included"),
    },
)
