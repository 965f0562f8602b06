"""One step of a training algorithm at full width, and the passes that VL-Calibration adds."""

import itertools
import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from _rehearsal import Rehearsal
from PIL import Image

from dualread import plugins
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.schema.backbones import TrainActorSpec
from dualread.schema.base import DatasetSplit, Plugin
from dualread.stages._asked import read_asked
from dualread.training.job import Assignment
from dualread.training.rewards.base import Verdict
from dualread.training.settings import WEIGHTS, training_settings

_NORM, _ADAPTED = "input_layernorm", "self_attn.q_proj"  # of the first layer: a small tensor, and one with an adapter

SEEN = "<vision>a dark round area, upper left</vision>\n<reasoning>axial ct</reasoning>\n<answer>no</answer>"


def train(rehearsal: Rehearsal, actor: str) -> str:
    """Train for one step, with a reward that differs within a group: untrained models never earn those of the paper."""
    spec, base, out = spec_of(rehearsal, actor), rehearsal.base(actor), rehearsal.folder / "trained"
    settings = spec.settings
    shutil.rmtree(out, ignore_errors=True)
    manifest, facts = rehearsal.manifest("train"), rehearsal.facts
    with tempfile.TemporaryDirectory(dir=rehearsal.folder) as scratch:
        assignment = Assignment(
            spec=spec, checkpoint=base / "checkpoint", facts=facts / "facts.json", images=manifest,
            manifest=manifest / "manifest.parquet", out=out, scratch=Path(scratch), checkpoints=None,
        )  # fmt: skip
        log = plugins.load_module(spec.training.module).train(replace(assignment.job(), reward=NUMBERED))
    of = {row["name"]: row["value"] for row in log}
    assert of["gradient_norm"] > 0, f"the gradient's norm is {of['gradient_norm']}; the log of the step: {of}"
    assert all(math.isfinite(value) for value in of.values()), f"the log has values that are not finite: {of}"
    # An adapter is merged into the linear layers of the language model, and everything else stays as it is.
    name = _ADAPTED if "lora" in settings else _NORM
    moved = _moved(name, base / "checkpoint", out)
    assert moved > 0, f"no weight of {name} has changed"
    assert "lora" not in settings or _moved(_NORM, base / "checkpoint", out) == 0, f"{_NORM} has changed"
    shutil.rmtree(out)
    n = settings["prompts_per_step"] * settings["group_size"]
    speed = n * of["completion_tokens"] / of["seconds"]
    return (
        f"a step of {n} completions in {of['seconds']:.0f} s,"
        f" {speed:.1f} tokens a second; gradient {of['gradient_norm']:.2g}; weights moved by up to {moved:.1e}"
        + ("" if settings["kl_coefficient"] else "; without reference model")
        + (f"; rollouts differ by {of['rollout_difference']:.2g} nats" if "rollout_difference" in of else "")
    )


def spec_of(rehearsal: Rehearsal, actor: str) -> TrainActorSpec:
    """Return the spec of the training, on one process."""
    entry = rehearsal.config.as_mapping()["actors"][actor]
    backbone = rehearsal.config.as_mapping()["backbones"][rehearsal.backbone]
    settings = {**training_settings(entry["settings"], backbone["training"]), "processes": 1}
    settings["prompts_per_step"] //= backbone["training"].get("processes", 1)  # the share of one GPU
    if rehearsal.backbone in rehearsal.scale.without_reference and "lora" not in settings:
        settings["kl_coefficient"] = 0.0
    prompt = rehearsal.asked().prompt.model_copy(update={"name": entry.get("prompt", "shared")})
    sampled_by = {"rollouts": Plugin(module=f"training.rollouts.{of}")} if (of := settings.get("rollouts")) else {}
    fields = {**rehearsal.fields(actor), **trained_by(entry), **sampled_by}
    return TrainActorSpec(**fields, prompt=prompt, settings=settings)


def trained_by(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a spec that an actor's entry in the study names."""
    reward = entry["reward"]
    contract = plugins.declared("rewards", reward, "CONTRACT")
    return {
        "examples": DatasetSplit(dataset="slake", split="train"),
        "training": Plugin(module=f"training.{entry['training']}"),
        "reward": Plugin(module=f"training.rewards.{reward}"),
        "contract": Plugin(module=f"grading.contracts.{contract}"),
    }


def _moved(name: str, before: Path, after: Path) -> float:
    """Return the largest change of a tensor of the language model's first layer."""
    from safetensors import safe_open

    def read(folder: Path) -> Any:
        for file in sorted(folder.glob("*.safetensors")):
            with safe_open(file, framework="pt") as tensors:
                for stored in tensors.keys():  # noqa: SIM118
                    if "language_model" in stored and stored.endswith(f"layers.0.{name}.weight"):
                        return tensors.get_tensor(stored).float()
        raise AssertionError(f"{folder}: no {name} of the language model's first layer")

    return float((read(before) - read(after)).abs().max())


_NUMBERS = itertools.count()


def _numbered(found: Sequence[Verdict], **_: Any) -> list[float]:
    # No two rewards are equal: anything that is read from a text may be the same for two answers of untrained models.
    return [float(next(_NUMBERS)) for _ in found]


NUMBERED = SimpleNamespace(CONTRACT="single", reward=_numbered, calibration_reward=_numbered)


def visual_dependence(rehearsal: Rehearsal) -> str:
    """Read completions that describe the image with and without most of the image, as VL-Calibration does."""
    from dualread.training.vl_calibration import blacken, measure

    base = rehearsal.base("vl_calibration") / "checkpoint"
    opened = open_checkpoint(base, {**rehearsal.settings, "dtype": WEIGHTS})
    asked = rehearsal.asked(actor="vl_calibration")
    question, *_ = read_asked(asked, {"manifest": rehearsal.manifest()})
    image = Image.open(rehearsal.manifest() / question.image_files[0]).convert("RGB")
    black = blacken(image, 14, np.random.default_rng(0))
    seen, unseen = (opened.encoder.prompt(question.text, images=[shown], row="0") for shown in (image, black))
    ids = opened.encoder.tokenizer(SEEN, add_special_tokens=False)["input_ids"]
    [block] = measure(opened, [(seen, unseen)], [ids], temperature=1.0, rows_per_pass=1)
    assert block is not None, "the completion has a vision block, and none was found"
    assert block.kl.max() > 0, "the image makes no difference"
    return f"{len(block.tokens)} tokens, KL {block.kl.mean():.2g}, entropy {block.entropy.mean():.2g}"
