"""One backbone at a scale that a machine can bear: its checkpoint, its questions, its specs."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import _real

from dualread.schema.answers import ShardSpec
from dualread.schema.backbones import ProbeCheckpointSpec
from dualread.schema.base import ConfiguredPlugin, Plugin
from dualread.schema.data import BuildManifestSpec, DrawPhantomSpec, Phantom
from dualread.stages import build_manifest, draw_phantom, probe_checkpoint
from dualread.study.asked import shard_spec
from dualread.study.costs import Costs
from dualread.study.files import load

ROOT = Path(__file__).resolve().parents[1]
SHARD = ("slake", "test", "original")
TRAINED = ("rlvr", "dcpo", "vl_calibration")  # one actor for each training algorithm, of which all weights are trained
ADAPTED = "lora"  # the actor of which an adapter is trained


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is done on this machine.

    Attributes:
        overlay: What is laid over paper.yaml.
        layers: Layers of the language model and of the vision tower, by backbone; None for all.
        trained_layers: The same of the models of which all weights are trained; an adapter is that of `layers`.
        images: Images, and questions about each.
        side: Width and height of the images.
        trained_dtype: The precision of trainings of all weights.
        on_gpu: Whether models are on a GPU.
        without_reference: Backbones whose reference model has no room, so that they train with `kl_coefficient: 0`.
    """

    overlay: str
    layers: Mapping[str, tuple[int | None, int | None]]
    trained_layers: Mapping[str, tuple[int | None, int | None]]
    images: tuple[int, int]
    side: int
    trained_dtype: Mapping[str, str]
    on_gpu: bool = False
    without_reference: tuple[str, ...] = ()


WHOLE = dict.fromkeys(_real.BACKBONES, (None, None))
CPU = Scale(
    overlay="full_size_cpu.yaml",
    layers={
        **{"qwen3-vl-2b": (None, None), "medgemma-1.5-4b": (12, 3)},
        # In float32, in which checkpoints are probed, all of Qwen2.5-VL takes 15 GB.
        **{"qwen2.5-vl-3b": (6, 8), "llava-1.5-7b": (2, 12)},
    },
    # With gradients and Adam, a weight takes 16 bytes: the embeddings alone take 5, 11, 5 and 4 GB.
    trained_layers={
        **{"qwen3-vl-2b": (2, 3), "medgemma-1.5-4b": (1, 2)},
        **{"qwen2.5-vl-3b": (2, 4), "llava-1.5-7b": (1, 2)},
    },
    images=(1, 2),
    side=256,
    # copies in bfloat16 have no room beside MedGemma's embeddings
    trained_dtype={**dict.fromkeys(_real.BACKBONES, "bfloat16"), "medgemma-1.5-4b": "float32"},
    without_reference=("medgemma-1.5-4b",),
)
GPU = Scale(
    overlay="full_size_gpu.yaml",
    layers=WHOLE,
    trained_layers=WHOLE,
    on_gpu=True,
    images=(64, 1),
    side=640,
    trained_dtype=dict.fromkeys(_real.BACKBONES, "bfloat16"),
)


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """One backbone in one precision.

    Attributes:
        folder: Checkpoints, images, and answers; what is there is used again.
        scale: How much is done.
        backbone: A backbone of paper.yaml or of full_size_families.yaml.
        dtype: float32 or bfloat16.
        on_vllm: Whether vLLM generates, not transformers, and on a GPU also samples for trainings.
        trains_in_vllm: Whether this process trains in vLLM's environment, whose transformers may need facts of its own.
    """

    folder: Path
    scale: Scale
    backbone: str
    dtype: str
    on_vllm: bool = False
    trains_in_vllm: bool = False

    @property
    def family(self) -> str:
        return _real.BACKBONES[self.backbone]

    @cached_property
    def config(self) -> Any:
        by_vllm = ["full_size_vllm.yaml"] if self.on_vllm and self.scale.on_gpu else []
        names = ["full_size_families.yaml", self.scale.overlay, *by_vllm]
        laid_over_it = (Path(__file__).with_name(name) for name in names)
        return load([ROOT / "workflow/studies/paper.yaml", *laid_over_it], ROOT)

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.config.as_mapping()["backbones"][self.backbone]["settings"], "dtype": self.dtype}

    @property
    def engine(self) -> ConfiguredPlugin:
        """What generates. On vLLM, with what paper.yaml says on a GPU; the replay needs no memory beside it."""
        entry = self.config.generation
        if not self.on_vllm:
            return ConfiguredPlugin(module=f"models.generation.{entry.engine}", settings=entry.settings)
        on_gpu = {"gpu_memory_utilization": 0.9} if self.scale.on_gpu else {}
        return ConfiguredPlugin(module="models.generation.vllm_engine", settings={"max_num_seqs": 256, **on_gpu})

    @property
    def answering(self) -> Path:
        """The folder of the actor that answers."""
        return self.actor(self.scale.layers[self.backbone])

    def base(self, actor: str) -> Path:
        """Return the folder of the actor that a training begins with."""
        return self.answering if actor == ADAPTED else self.actor(self.scale.trained_layers[self.backbone])

    def actor(self, layers: tuple[int | None, int | None], seed: int = 0) -> Path:
        """Return the folder of an actor with random weights, which is written if it is not there."""
        name = "-".join(map(str, (self.backbone, *(n or "all" for n in layers), seed)))
        folder = self.folder / "actors" / name
        _real.write(self.family, folder / "checkpoint", layers=layers[0], vision_layers=layers[1], seed=seed)
        (folder / "MANIFEST.json").write_text(json.dumps({"digest": name}))  # the replay records it
        return folder

    @property
    def facts(self) -> Path:
        """The folder of the backbone's facts, which `probe` writes; they do not depend on the number of layers."""
        return self.answering.with_name(f"{self.answering.name}-facts{'-vllm' if self.trains_in_vllm else ''}")

    def probe(self) -> str:
        """Run the stage `probe_checkpoint`, which finds facts by experiment; return what it says."""
        self.facts.mkdir(exist_ok=True)
        spec = ProbeCheckpointSpec(backbone=self.backbone, model=self.settings)
        return probe_checkpoint.compute(spec, {"actor": self.answering}, self.facts)

    def manifest(self, split: str = "test") -> Path:
        """Return the folder of a manifest of questions about phantom images, which is made if it is not there."""
        n_images, n_questions = self.scale.images
        folder = self.folder / f"hospital-{n_images}-{n_questions}-{self.scale.side}"
        if not (folder / split).exists():
            shutil.rmtree(folder, ignore_errors=True)
            drawn, made = folder / "drawn", folder / "made"
            drawn.mkdir(parents=True)
            phantom = Phantom(
                format="slake",
                seed=0,
                images={"train": n_images, "validation": 1, "test": n_images},
                size=self.scale.side,
                questions_per_image=n_questions,
            )
            spec = DrawPhantomSpec(name="full size", writer=Plugin(module="training.writers.slake"), phantom=phantom)
            draw_phantom.compute(spec, {}, drawn)
            loader = Plugin(module="data.datasets.slake")
            for name, role in (("train", "fit"), ("test", "test")):
                made.mkdir()
                of = {"dataset": "slake", "split": name, "settings": {}, "roles": role, "seed": 0}
                build_manifest.compute(BuildManifestSpec(loader=loader, **of), {"source": drawn}, made)
                made.rename(folder / name)  # what was interrupted is made again
        return folder / split

    def asked(self, *view: str, actor: str = "rlvr") -> ShardSpec:
        return shard_spec(self.config, actor, (*SHARD, *view))

    def answers(self, view: str) -> Path:
        by = "-vllm" if self.on_vllm else ""
        return self.folder / "answers" / f"{self.backbone}-{self.dtype}{by}" / view

    def least(self, stage: str) -> float:
        """Return the bytes that a stage needs at least: what it holds per parameter (lib/dualread/study/costs.yaml)."""
        is_training = stage.startswith("train") and stage != f"train_actor ({ADAPTED})"
        layers = (self.scale.trained_layers if is_training else self.scale.layers)[self.backbone]
        unit, actor = Costs()["training_memory"]["bytes_per_parameter"], stage.removeprefix("train_actor (")[:-1]
        each = {"float32": 4.0, "bfloat16": 2.0}[self.dtype]
        if stage == "replay" or (not is_training and stage.startswith("train")):
            each = unit["base in float32"]  # rounding is measured, and completions are compared, in float32
        elif is_training:
            has_reference = actor != TRAINED[0] and self.backbone not in self.scale.without_reference
            parts = ("weights", "gradients", "Adam", *(["reference model"] if has_reference else []))
            each = sum(unit[part] for part in parts)
        return each * _real.size_of(self.family, *layers)["parameters"]

    def float32_of(self, kind: str) -> float:
        """Return the bytes in float32 of all weights of the model of a process."""
        layers = (self.scale.trained_layers if kind in TRAINED else self.scale.layers)[self.backbone]
        return 4 * _real.size_of(self.family, *layers)["parameters"]

    def fields(self, actor: str = "rlvr") -> dict[str, Any]:
        """Return what the specs of all stages with a model have in common."""
        return {"backbone": self.backbone, "model": self.settings, "actor": actor, "seed": 17}
