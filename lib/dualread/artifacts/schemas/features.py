"""One row a replayed completion: where its states were read, and how well the replay agrees."""

import polars as pl

from dualread.artifacts.schemas import COMPLETION, Schema, column

FEATURES = Schema(
    name="features",
    columns={
        **COMPLETION,
        "row": column(pl.Int64, "row of every tensor in features.safetensors"),
        "n_prompt_tokens": column(pl.Int32, "t_prompt is the last of these"),
        "t_close": column(pl.Int32, "completion position of the token that ends </answer>, or the last one"),
        "answer_positions": column(pl.List(pl.Int32), "A: completion positions of the answer's tokens"),
        "has_answer_block": column(pl.Boolean, "false: t_close and A fall back to the end and to all tokens"),
        "n_image_tokens": column(pl.Int32, "M, the number of image-token positions"),
        "token_log_probs": column(pl.List(pl.Float32), "replayed log-softmax of each generated id"),
        "log_prob_mean_difference": column(pl.Float32, "mean absolute difference to the generation's log-probs"),
        "log_prob_max_difference": column(pl.Float32, "largest absolute difference to the generation's log-probs"),
        "argmax_mismatches": column(pl.Int32, "greedy ids that are not the replay's argmax, beyond dtype noise"),
    },
)
