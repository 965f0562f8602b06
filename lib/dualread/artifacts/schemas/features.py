"""One row per replayed completion: where its states were read, and how well the replay agrees."""

import polars as pl

from dualread.artifacts.schemas import COMPLETION, Schema, column

FEATURES = Schema(
    name="features",
    columns={
        **COMPLETION,
        "row": column(pl.Int64, "row of this completion in every tensor of features.safetensors"),
        "n_prompt_tokens": column(pl.Int32, "length of the prompt in tokens; t_prompt is the last of them"),
        "t_close": column(
            pl.Int32, "position in the completion of the token that ends </answer>, or of the last token"
        ),
        "answer_positions": column(pl.List(pl.Int32), "A: positions in the completion of the answer's tokens"),
        "has_answer_block": column(
            pl.Boolean, "false: there is none, so t_close is the last token and A is all tokens"
        ),
        "n_image_tokens": column(pl.Int32, "M, the number of image-token positions"),
        "token_log_probs": column(pl.List(pl.Float32), "log-softmax of each generated id in the replay"),
        "log_prob_mean_difference": column(pl.Float32, "mean absolute difference to the generation's log-probs"),
        "log_prob_max_difference": column(pl.Float32, "largest absolute difference to the generation's log-probs"),
        "argmax_mismatches": column(
            pl.Int32, "greedy ids that are not the argmax of the replay by more than dtype noise"
        ),
    },
)
