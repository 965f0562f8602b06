"""One row per completion: exact token ids and raw log-probabilities."""

import polars as pl

from dualread.artifacts.schemas import COMPLETION, Schema, column

GENERATIONS = Schema(
    name="generations",
    columns={
        **COMPLETION,
        "image_id": column(pl.String, "the image that was shown"),
        "prompt_sha256": column(pl.String, "digest of the prompt's token ids, with image tokens expanded"),
        "n_prompt_tokens": column(pl.Int32, "length of the prompt in tokens, with image tokens expanded"),
        "token_ids": column(pl.List(pl.Int32), "generated ids as sampled, with the stop token"),
        "token_log_probs": column(pl.List(pl.Float32), "raw log-softmax of each id, before bias and temperature"),
        "text": column(pl.String, "the decoded ids without special tokens"),
        "finish_reason": column(pl.String, "stop or length"),
    },
)
