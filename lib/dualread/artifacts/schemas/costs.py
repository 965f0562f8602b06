"""One row per method, actor and shard: the cost of a confidence, counted from the artifacts."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

COSTS = Schema(
    name="costs",
    columns={
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor"),
        "seed": column(pl.Int64, "seed of the actor; 0 if the actor has none"),
        "dataset": column(pl.String, "config name of the data set"),
        "split": column(pl.String, "train, validation or test"),
        "method": column(pl.String, "config name of the confidence method"),
        "answers": column(pl.Int64, "number of committed answers; the following columns are means over them"),
        "completions": column(pl.Float64, "generated completions, with the committed answer (paper: t)"),
        "prompt_passes": column(pl.Float64, "how often a prompt and its image are encoded, with or without generation"),
        "prompt_only_passes": column(pl.Float64, "how many of the prompt passes generate nothing (paper: rho)"),
        "replay_passes": column(pl.Float64, "how often prompt and answer are read again (paper: tau)"),
        "read_tokens": column(pl.Float64, "tokens that all passes read: prompts, and answers that are read again"),
        "generated_tokens": column(pl.Float64, "generated tokens, with those of the committed answer"),
    },
)
