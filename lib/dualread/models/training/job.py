"""One actor to train: an `Assignment` from a stage, in plain values, and the `Job` that an algorithm gets."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dualread import plugins
from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.tables import read_table
from dualread.models.backbones.facts import Facts
from dualread.models.conditions import Asked, asked
from dualread.models.training.settings import max_prompt_tokens
from dualread.seeding import derive_seed
from dualread.specs.actors import TrainActorSpec
from dualread.specs.parts import Settings
from dualread.store.typed import typed


@dataclass(frozen=True, kw_only=True)
class Job:
    """One actor to train.

    Attributes:
        checkpoint: Folder of the base checkpoint.
        facts: What experiments say about it.
        questions: The training questions, with text and image.
        references: The accepted reference answers of each question.
        images: Folder that the questions' image files are relative to.
        backbone_settings: The `settings` of the backbone's config entry.
        reward: The reward's module.
        settings: The `settings` of the actor's config entry; see the algorithm's `SETTINGS`.
        seed: Seed of the order of the questions and of the rollouts.
        out: Folder for the trained checkpoint.
        scratch: Folder for the trainer's own files.
        checkpoints: Folder for the checkpoints of `save_every`, which outlives a kill; None if there is none.
    """

    checkpoint: Path
    facts: Facts
    questions: Sequence[Asked]
    references: Sequence[Sequence[str]]
    images: Path
    backbone_settings: Settings
    reward: ModuleType
    settings: Settings
    seed: int
    out: Path
    scratch: Path
    checkpoints: Path | None = None

    @property
    def model(self) -> Settings:
        """The settings with which the model is opened for training: the backbone's, with the actor's longest prompt."""
        limit = max_prompt_tokens(self.settings, self.backbone_settings)
        return {**self.backbone_settings, "max_prompt_tokens": limit}


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A job in plain values, which can be passed to another process as JSON.

    Attributes:
        spec: The stage's `spec`.
        facts: File of the facts of the checkpoint.
        manifest: The manifest table with the questions.
        checkpoint, images, out, scratch, checkpoints: See `Job`.
    """

    spec: TrainActorSpec
    checkpoint: Path
    facts: Path
    manifest: Path
    images: Path
    out: Path
    scratch: Path
    checkpoints: Path | None

    def train(self) -> list[dict[str, Any]]:
        """Train in this process; return the log."""
        return plugins.load_module(self.spec.training.module).train(self.job())

    def job(self) -> Job:
        """Return the job; it does not depend on the order of the manifest's rows."""
        spec = self.spec
        manifest = read_table(self.manifest, MANIFEST).sort("sample_id")
        return Job(
            checkpoint=self.checkpoint,
            facts=Facts.read(self.facts),
            questions=list(asked(manifest, image="original", prompt=spec.prompt.name)),
            references=manifest["reference_answers"].to_list(),
            images=self.images,
            backbone_settings=spec.model,
            reward=plugins.load_module(spec.reward.module),
            settings=spec.settings,
            seed=derive_seed("actor", spec.backbone, spec.actor, spec.seed),
            out=self.out,
            scratch=self.scratch,
            checkpoints=self.checkpoints,
        )

    def to_json(self) -> str:
        """Return the text that `from_json` reads."""
        return json.dumps(asdict(self), default=lambda path: str(path.resolve()))

    @classmethod
    def from_json(cls, text: str) -> "Assignment":
        """Return the assignment that `to_json` wrote."""
        return typed(cls, json.loads(text), "train_actor")
