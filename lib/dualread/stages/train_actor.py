"""An actor: a base checkpoint trained on the training split of the in-distribution data set.

Output: checkpoint/ and train_log.parquet (step, name, value), the same form as a base.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.schemas.train_log import TRAIN_LOG
from dualread.artifacts.tables import from_rows, read_table, write_table
from dualread.conditions import asked
from dualread.seeding import derive_seed
from dualread.training._trainer import Job


def compute(spec: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    """Train `spec["training"]` with `spec["reward"]` and `spec["settings"]`."""
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST).sort("sample_id")
    training = plugins.load_module(spec["training"]["module"])
    with tempfile.TemporaryDirectory(prefix="dualread-") as scratch:
        log = training.train(
            Job(
                checkpoint=inputs["base"] / "checkpoint",
                questions=asked(manifest, {"image": "original", "prompt": spec["prompt"]}, None),
                references=manifest["reference_answers"].to_list(),
                images=inputs["manifest"],
                backbone=plugins.load_module(spec["family"]["module"]),
                backbone_settings=spec["model"],
                reward=plugins.load_module(spec["reward"]["module"]),
                settings=spec["settings"],
                seed=derive_seed("actor", spec["backbone"], spec["actor"], spec["seed"]),
                out=out / "checkpoint",
                scratch=Path(scratch),
            )
        )
    frame = from_rows(log, TRAIN_LOG)
    write_table(out / "train_log.parquet", frame, TRAIN_LOG)
    rewards = frame.filter(pl.col("name") == "reward")["value"]
    return f"read {manifest.height} questions, took {len(rewards)} steps: reward {rewards[0]:.3f} -> {rewards[-1]:.3f}"
