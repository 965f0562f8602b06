"""One row a method of one actor on one shard: what its confidence costs, counted from the artifacts."""

import polars as pl

from dualread.artifacts.schemas import Schema, column

COSTS = Schema(
    name="costs",
    columns={
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor"),
        "seed": column(pl.Int64, "seed of the actor; 0 where the actor has none"),
        "dataset": column(pl.String, "config name of the data set"),
        "split": column(pl.String, "train, validation or test"),
        "method": column(pl.String, "config name of the confidence method"),
        "answers": column(pl.Int64, "committed answers; all that follows is a mean over them"),
        "completions": column(pl.Float64, "completions generated, the committed answer included (paper: t)"),
        "prompt_passes": column(pl.Float64, "times that a prompt and its image are encoded: to generate, or alone"),
        "prompt_only_passes": column(pl.Float64, "those of them after which nothing is generated (paper: rho)"),
        "replay_passes": column(pl.Float64, "times that prompt and answer are read again (paper: tau)"),
        "read_tokens": column(pl.Float64, "tokens that all passes read: prompts, and answers read again"),
        "generated_tokens": column(pl.Float64, "tokens generated, the committed answer's included"),
    },
)
