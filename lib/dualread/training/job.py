"""One actor to train: an `Assignment` from a stage, in plain values, and the `Job` that an algorithm gets.

A killed training resumes from the newest checkpoint whose files all match their digests. A kill can leave one that is
half written, and a disk can damage one; neither is ever loaded. The digests of a checkpoint's files are in its seals,
one file `sealed-<process>.json` per process.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dualread import plugins
from dualread.artifacts.tables import read_table
from dualread.errors import ConfigError
from dualread.models.actor import SeededDecoding
from dualread.models.conditions import Asked, asked
from dualread.models.generation.data_parallel import visible_gpus
from dualread.progress import say
from dualread.schema.backbones import TrainActorSpec
from dualread.schema.base import Section, Wire
from dualread.schema.columns import MANIFEST
from dualread.schema.recorded import Facts
from dualread.seeding import derive_seed
from dualread.store.digest import read_json, replace_text, sha256_file
from dualread.training.settings import WEIGHTS, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class Job:
    """One actor to train.

    The `facts` are what experiments say about the base checkpoint; `images` is the folder that the image files of the
    questions are relative to, and `references` has the accepted answers of each. The order of the questions and the
    rollouts depend on `seed`. `rollouts`, a module, samples in place of the model itself, on `rollout_gpus` (as
    CUDA_VISIBLE_DEVICES names them) or on those of the trainer. The trained checkpoint is written to `out`; `scratch`
    is for the trainer's own files; `checkpoints`, for those of `save_every`, outlives a kill. Trackers call the
    training `name`; `steps_file` is for those who watch it (`progress.note_steps`).
    """

    checkpoint: Path
    facts: Facts
    questions: Sequence[Asked]
    references: Sequence[Sequence[str]]
    images: Path
    backbone_settings: Wire
    reward: ModuleType
    settings: Any  # of the algorithm's own class
    seed: int
    out: Path
    scratch: Path
    checkpoints: Path | None = None
    steps_file: Path | None = None
    name: str = "actor"
    rollouts: ModuleType | None = None
    rollout_gpus: Sequence[str] = ()

    @property
    def model(self) -> Wire:
        """The settings with which the model is opened for training: the backbone's, with the actor's longest prompt."""
        limit = self.settings.longest_prompt(self.backbone_settings)
        return {**self.backbone_settings, "max_prompt_tokens": limit}

    @property
    def weights(self) -> Wire:
        """The settings with which the weights that are trained are loaded; those below an adapter stay as they are."""
        return {**self.model, "dtype": self.backbone_settings["dtype"] if self.settings.lora else WEIGHTS}

    @property
    def decoding(self) -> SeededDecoding:
        """How the completions of the rollouts are drawn: one per row."""
        return SeededDecoding(
            temperature=self.settings.temperature,
            top_p=self.settings.top_p,
            n_samples=1,
            max_completion_tokens=self.settings.max_completion_tokens,
            seed=self.seed,
        )


class Assignment(Section):
    """A job in plain values, which can be passed to another process as JSON. What is not explained is as in `Job`."""

    spec: TrainActorSpec
    """The stage's `spec`."""
    checkpoint: Path
    facts: Path
    """File of the facts of the checkpoint."""
    manifest: Path
    """The manifest table with the questions."""
    images: Path
    out: Path
    scratch: Path
    checkpoints: Path | None
    steps_file: Path | None = None

    @property
    def _algorithm(self) -> ModuleType:
        return plugins.load_module(self.spec.training.module)

    def train(self) -> list[dict[str, Any]]:
        """Train in this process; return the log."""
        gpus = _rollout_gpus(self.spec.settings)
        if self.spec.rollouts is not None:
            plugins.load_module(self.spec.rollouts.module).prepare()
        return self._algorithm.train(self.job(gpus))

    def job(self, rollout_gpus: Sequence[str] = ()) -> Job:
        """Return the job; it does not depend on the order of the manifest's rows."""
        spec = self.spec
        settings: TrainingSettings = self._algorithm.Settings.from_spec(spec.settings, "actor settings")
        manifest = read_table(self.manifest, MANIFEST).sort("sample_id")
        return Job(
            checkpoint=self.checkpoint,
            name=f"{spec.backbone}/{spec.actor}/{spec.seed}",
            facts=Facts.read(self.facts),
            questions=list(asked(manifest, prompt=spec.prompt.name)),
            references=manifest["reference_answers"].to_list(),
            images=self.images,
            backbone_settings=spec.model,
            reward=plugins.load_module(spec.reward.module),
            settings=settings,
            seed=derive_seed("actor", spec.backbone, settings.draws_as or spec.actor, spec.seed),
            out=self.out,
            scratch=self.scratch,
            checkpoints=self.checkpoints,
            steps_file=self.steps_file,
            rollouts=None if spec.rollouts is None else plugins.load_module(spec.rollouts.module),
            rollout_gpus=rollout_gpus,
        )

    def to_json(self) -> str:
        """Return the text that another process reads, whose current folder may be another one."""
        paths = {name: value.resolve() for name, value in self if isinstance(value, Path)}
        return self.model_copy(update=paths).model_dump_json()


def _rollout_gpus(settings: Wire) -> list[str]:
    """Return the GPUs that sample for this process alone; on CPUs, an empty name for each process that does."""
    # Called before CUDA starts, which does not look again at CUDA_VISIBLE_DEVICES. The GPUs of the trainers come first.
    # A single trainer is left with its own, because transformers would spread its batches over all that it sees.
    if not (n := settings.get("rollout_gpus", 0)):
        return []
    if not (visible := visible_gpus()):
        return [""] * n
    processes, rank = int(os.environ.get("LOCAL_WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    if len(visible) < (needed := processes * (1 + n)):
        raise ConfigError(
            f"training: rollout_gpus: {n}, but this machine has {len(visible)} GPU(s). Expected {needed}: for each of"
            f" {processes} process(es) one to learn and {n} to sample. Set a smaller number, or leave it out."
        )
    if processes == 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[0]
    return visible[processes + rank * n :][:n]


# With two, one is complete even if a kill interrupts the writing of the other.
KEPT = 2


def seal(checkpoint: Path, process: int, n_processes: int = 1) -> None:
    """Record the digests of the files that `process` has written to `checkpoint`; called when all of them are complete.

    Each process writes its random state and, of a sharded model, its part. The first one writes all else.
    """
    digests = {}
    for path in sorted(checkpoint.rglob("*")):
        named = re.fullmatch(r"rng_state_(\d+)\.pth|__(\d+)_\d+\.distcp", path.name)  # by the process that wrote it
        writer = 0 if named is None else int(named[1] or named[2])
        if path.is_file() and writer == process and not path.name.startswith(("sealed-", ".sealed-")):
            digests[path.relative_to(checkpoint).as_posix()] = sha256_file(path)
    table = {"processes": n_processes, "files": digests}
    replace_text(checkpoint / _seal(process), json.dumps(table, indent=1))


def newest_complete(folder: Path, n_processes: int | None, *, remove: bool = False) -> Path | None:
    """Return the complete checkpoint with the most steps, written by `n_processes` (any number if None); None without
    one.

    With `remove`, half-written and damaged checkpoints are removed, with a warning. If another run wrote over such a
    checkpoint and were killed, it could pass for complete.
    """
    checkpoints = [(path.name.partition("-")[2], path) for path in folder.glob("checkpoint-*") if path.is_dir()]
    complete = None
    for _, path in sorted((int(step), path) for step, path in checkpoints if step.isdecimal()):
        if (problem := next(_problems(path, n_processes), None)) is None:
            complete = path
        elif remove:
            say(f"warning: {problem}. The checkpoint {path} is removed; nothing is read from it")
            shutil.rmtree(path)
    return complete


def _problems(path: Path, n_processes: int | None) -> Iterator[str]:
    sealed: dict[str, str] = {}
    expected, process = n_processes or 1, 0
    while process < expected:
        try:
            seal = read_json(path / _seal(process))
            sealed |= seal["files"]
            if n_processes is None:
                expected = int(seal["processes"])
            elif seal["processes"] != n_processes:
                yield f"{path}: written by {seal['processes']} processes, expected {n_processes}"
        except FileNotFoundError:
            yield f"{path}: half-written, {_seal(process)} is missing"
        except (OSError, ValueError, TypeError, KeyError) as error:
            yield f"{path / _seal(process)}: damaged ({error})"
        process += 1
    for name, digest in sealed.items():
        try:
            actual = sha256_file(path / name)
        except OSError as error:
            yield f"{path / name}: cannot be read ({error.strerror})"
        else:
            if actual != digest:
                yield f"{path / name}: damaged, sha256 {actual[:12]}, expected {digest!s:.12}"


def _seal(process: int) -> str:
    return f"sealed-{process}.json"
