"""Small train logs, as the stage that trains an actor writes them."""

import math

import polars as pl

from dualread.schema.tables import FigureLayout
from tests.reporting.figures.answers import labeled

LAYOUT = FigureLayout(study="embedded", backbones=labeled(tiny="Tiny"), actors=labeled(rlvr="GRPO (RLVR)"))


def log(**curves) -> pl.DataFrame:
    """Return a log of `curves`, each {step: value} under its name, "__" standing for "/"."""
    rows = [
        {"step": step, "name": name.replace("__", "/"), "value": value}
        for name, curve in curves.items()
        for step, value in curve.items()
    ]
    return pl.DataFrame(rows, schema={"step": pl.Int64, "name": pl.String, "value": pl.Float64})


# Seed 17 has no valid confidence at step 2, seed 29 an undefined gradient norm at step 3.
LOGS = {
    "train_log/tiny/rlvr/17": log(
        reward={1: 0.25, 2: 0.5, 3: 0.75},
        terms__confidence__mean={1: 0.5, 3: 0.9},
        terms__confidence__std={1: 0.1, 3: 0.2},
        gradient_norm={1: 1.0, 2: 2.0, 3: 4.0},
        learning_rate={1: 1e-5, 2: 1e-5, 3: 1e-5},
    ),
    "train_log/tiny/rlvr/29": log(
        reward={1: 0.75, 2: 0.5, 3: 0.25},
        terms__confidence__mean={1: 0.7, 2: 0.8, 3: 0.9},
        terms__confidence__std={1: 0.3, 2: 0.3, 3: 0.2},
        gradient_norm={1: 3.0, 2: 2.0, 3: math.nan},
    ),
}
