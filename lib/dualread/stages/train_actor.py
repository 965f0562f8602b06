"""Stage train_actor: an actor, trained from a base checkpoint on the training split of the in-distribution data set.

Output: checkpoint/ and train_log.parquet (step, name, value), the same files as for a base. The log has no seconds,
because they differ between two runs of one key, whose bytes must not. The summary says how long the steps took,
including those before an interruption; the store keeps it in RECORD.json with the seconds of the last run.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import from_rows, write_table
from dualread.digests import MANIFEST_NAME
from dualread.errors import ArtifactError
from dualread.progress import steps_file
from dualread.schema.backbones import TrainActorSpec
from dualread.schema.columns import TRAIN_LOG
from dualread.store import partial
from dualread.store.manifest import read_manifest
from dualread.training.job import Assignment
from dualread.training.settings import LAYOUT
from dualread.training.trainer import SECONDS, counted
from dualread.training.worker import train_together


def compute(spec: TrainActorSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Train the actor."""
    settings = spec.settings
    nodes = settings.get("nodes", 1)
    # In the store, which all nodes see, and where `store gc` removes what a killed training has left.
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=out) as scratch:
        assignment = Assignment(
            spec=spec,
            checkpoint=inputs["base"] / "checkpoint",
            facts=_facts(inputs["facts"]),
            manifest=inputs["manifest"] / "manifest.parquet",
            images=inputs["manifest"],
            out=out / "checkpoint",
            scratch=Path(scratch),
            # A sharded checkpoint can be read by other processes than have written it.
            checkpoints=partial.directory(LAYOUT if "shard" in settings else ()) if "save_every" in settings else None,
            steps_file=steps_file(),
        )
        n_processes = settings.get("processes", 1)
        log = assignment.train() if n_processes == 1 else train_together(assignment, n_processes, nodes)
    frame = from_rows(log, TRAIN_LOG)
    seconds = frame.filter(pl.col("name") == SECONDS)["value"]
    write_table(out / "train_log.parquet", frame.filter(pl.col("name") != SECONDS), TRAIN_LOG)
    rewards = frame.filter(pl.col("name") == "reward")["value"]
    without_spread, groups, unmoved, steps = counted(log, settings["prompts_per_step"])
    return (
        f"took {steps} steps of {seconds.mean():.1f} s on average, {seconds.sum():.0f} s in all:"
        f" reward {rewards[0]:.3f} -> {rewards[-1]:.3f}; {without_spread} of {groups} groups had rewards without"
        f" spread, {unmoved} of {steps} steps moved nothing"
    )


def _facts(folder: Path) -> Path:
    """Return the file of the facts; another version of transformers may have found that rows share more than here."""
    import transformers

    if (manifest := folder / MANIFEST_NAME).is_file():
        version = read_manifest(manifest).action.packages.get("transformers")
        if version != transformers.__version__:
            raise ArtifactError(
                f"{folder}: facts were found by transformers {version}, but {transformers.__version__} trains here."
                " Expected the same version, because another one may read rows in another way. Probe the checkpoint in"
                " the environment of the training."
            )
    return folder / "facts.json"
