"""Specs of stages for tests: ordinary values, and whatever a test changes."""

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from dualread.schema.answers import ChosenImage, Decoding, GenerateSpec, ReplaySpec, ShardSpec
from dualread.schema.backbones import TrainActorSpec
from dualread.schema.base import ConfiguredPlugin, DatasetSplit, Plugin, Prompt
from dualread.schema.data import BuildManifestSpec, DrawPhantomSpec, Phantom
from dualread.schema.readers import MethodReference
from dualread.schema.recorded import Facts
from dualread.schema.replay import Agreement, Replay, ReplaySettings
from tests.tiny import GRPO, MODEL


def changed(spec: Any, /, **changes: Any) -> Any:
    """The same declaration with other values."""
    return type(spec)(**{**dict(spec), **changes})


def phantom(writer: str = "slake", **changes: Any) -> DrawPhantomSpec:
    """A small phantom hospital."""
    given = {"format": writer, "seed": 0, "images": {"train": 1, "validation": 1, "test": 4}, "size": 32}
    name = changes.pop("name", "hospital")
    drawn = Phantom(**given | changes)
    return DrawPhantomSpec(name=name, writer=Plugin(module=f"training.writers.{writer}"), phantom=drawn)


def manifest(loader: str = "slake", **changes: Any) -> BuildManifestSpec:
    """The manifest of one split, by default of a data set with the name of its loader."""
    given = {"dataset": loader, "split": "test", "settings": {}, "roles": "test", "seed": 0}
    return BuildManifestSpec(loader=Plugin(module=f"data.datasets.{loader}"), **given | changes)


@cache
def facts() -> Path:
    """An artifact with the facts of most models."""
    folder = Path(tempfile.mkdtemp(prefix="facts-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "facts.json").write_text(json.dumps({"facts": Facts().model_dump()}))
    return folder


def prompt(name: str = "shared") -> Prompt:
    hints = Plugin(module="models.hints") if name == "misled" else None
    return Prompt(name=name, file=f"models/prompts/{name}.txt", hints=hints)


def contract(name: str = "single") -> Plugin:
    """A format of completions."""
    return Plugin(module=f"grading.contracts.{name}")


def image(change: str | ChosenImage, **settings: Any) -> ChosenImage:
    """An image change, by its name or as it is."""
    if isinstance(change, ChosenImage):
        return change
    return ChosenImage(module=f"models.images.{change}", settings=settings)


def measure(name: str, **settings: Any) -> ConfiguredPlugin:
    """A measure of completions."""
    return ConfiguredPlugin(module=f"models.measures.{name}", settings=settings)


def decoding(**changes: Any) -> Decoding:
    """Greedy decoding of a few tokens."""
    return Decoding(**{"temperature": 0.0, "top_p": 1.0, "n_samples": 1, "max_completion_tokens": 10} | changes)


def shard(condition: str = "original", **changes: Any) -> ShardSpec:
    """The test questions of slake under a condition with the name of its image."""
    changes = {name: image(of) if name in ("image", "shows") else of for name, of in changes.items()}
    given = {"dataset": "slake", "split": "test", "condition": condition}
    given |= {} if "image" in changes else {"image": image(condition)}
    return ShardSpec(**given | {"prompt": prompt(), "decoding": decoding()} | changes)


def backbone() -> dict[str, Any]:
    """The fields of every spec of a stage with a model."""
    return {"backbone": "tiny", "model": MODEL}


def generate(asked: ShardSpec, batch_size: int = 4) -> GenerateSpec:
    engine = ConfiguredPlugin(module="models.generation.transformers_engine", settings={"batch_size": batch_size})
    return GenerateSpec(**backbone(), actor="base", seed=0, shard=asked, engine=engine)


def replay(asked: ShardSpec, batch_size: int = 4) -> ReplaySpec:
    names = ("argmax_tolerance", "max_mean_log_prob_difference", "max_argmax_mismatch_share")
    agreement = Agreement(**dict.fromkeys(names, 1e-3))
    how = Replay(settings=ReplaySettings(batch_size=batch_size), kappa=0.1, agreement=agreement)
    return ReplaySpec(**backbone(), actor="base", seed=0, shard=asked, replay=how)


def training(algorithm: str = "grpo", reward: str = "rlvr", **settings: Any) -> TrainActorSpec:
    """A training of the actor that has the name of its reward."""
    plugins = {"training": Plugin(module=f"training.{algorithm}")}
    plugins |= {"reward": Plugin(module=f"training.rewards.{reward}")}
    plugins |= {"contract": contract("dual" if reward == "vl_calibration" else "single")}
    given = {**backbone(), **plugins, "actor": reward, "seed": 17, "prompt": prompt()}
    examples = DatasetSplit(dataset="slake", split="train")
    return TrainActorSpec(**given, examples=examples, settings=GRPO | settings)


def method(name: str, reader: str | None = None, **parents: MethodReference) -> MethodReference:
    """A method with a reader of the same name, if none is given."""
    return MethodReference(method=name, module=f"readers.{reader or name}", parents=parents)
