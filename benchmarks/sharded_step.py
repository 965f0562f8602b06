"""One step of a sharded training of each larger backbone, by two processes of this machine; no tokenizer is needed.

    python benchmarks/sharded_step.py                            # both, 16 GiB of memory without a GPU
    python benchmarks/sharded_step.py --backbones qwen3-vl-8b --layers 1 --shard optimizer

The backbones are those of workflow/studies/larger.yaml, with the widths that it says, random weights, and few layers.
Their embeddings are not there: with gradients and Adam, those of Qwen3-VL-8B take 20 GB, and those of MedGemma-27B 23
GB. So the tokenizer is one of 400 tokens, as that of our tiny models. What needs real tokenizers is in full_size.py.

The step is one of GRPO with a reference model; the trained model samples itself. Each process prints its peak memory.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROCESSES = 2
FAMILIES = {"qwen3-vl-8b": "qwen3_vl", "medgemma-27b": "gemma3"}
LAYERS = {"qwen3-vl-8b": 2, "medgemma-27b": 1}  # of the language model; the vision tower has two
# Laid over the studies: little of everything, on one machine.
LITTLE = {
    "training": {"processes": PROCESSES, "nodes": 1, "shard": "full", "completions_per_pass": 1, "rollouts": None,
                 "rollout_settings": None, "max_prompt_tokens": 512},
    "actor": {"steps": 1, "passes": None, "prompts_per_step": 2, "group_size": 2, "max_completion_tokens": 16,
              "save_every": None, "warmup_fraction": 0.0, "kl_coefficient": 1.0e-3},
}  # fmt: skip
SIDE = 224  # width and height of the images
_HEAD, _VISION_HEAD = 128, 72  # their widths in both


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbones", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--layers", type=int, help="layers of the language model")
    parser.add_argument("--shard", default="full", choices=["full", "optimizer"])
    parser.add_argument("--folder", type=Path, help="where checkpoints are written, 2 GB each")
    options = parser.parse_args()
    for backbone in options.backbones:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            layers = options.layers or LAYERS[backbone]
            step(backbone, layers, options.shard, Path(folder))
    return 0


def step(backbone: str, layers: int, shard: str, folder: Path, *, narrower: int = 1) -> None:
    """Take one step, and print a line per process.

    Widths are divided by `narrower`; memory is then mostly not that of weights.
    """
    from dualread.study.files import laid_over, load
    from dualread.training.job import Assignment
    from dualread.training.worker import launch

    os.environ["PYTHONPATH"] = os.pathsep.join(str(ROOT / name) for name in ("lib", "benchmarks"))
    studies = load([ROOT / "workflow/studies" / name for name in ("paper.yaml", "larger.yaml")], ROOT).as_mapping()
    widths = {name: int(n) // narrower for name, n in studies["backbones"][backbone]["size"].items()}
    size = write(backbone, layers, widths, folder / "checkpoint")
    given = {"min_pixels": SIDE**2, "max_pixels": SIDE**2, "forbidden_tokens": []}
    of = {"size": size, "settings": given, "training": {**LITTLE["training"], "shard": shard}}
    config = laid_over(studies, {"backbones": {backbone: of}, "actors": {"rlvr": {"settings": LITTLE["actor"]}}})
    manifest = questions(folder)
    (folder / "facts.json").write_text(json.dumps({"facts": {}}))
    assignment = Assignment(
        spec=spec_of(config, backbone),
        **{"checkpoint": folder / "checkpoint", "facts": folder / "facts.json", "out": folder / "trained"},
        **{"images": manifest, "manifest": manifest / "manifest.parquet", "scratch": folder, "checkpoints": None},
    )
    (folder / "assignment.json").write_text(assignment.to_json())
    launch("sharded_step", folder / "assignment.json", PROCESSES)
    for rank in range(PROCESSES):
        of = json.loads((folder / f"told-{rank}.json").read_text())
        print(
            f"{backbone}, {layers} layer(s), {size['parameters'] / 1e9:.2f}e9 weights, shard: {shard}, process {rank}:"
            f" a step in {of['seconds']:.0f} s, {of['cpu_seconds']:.0f} s CPU in all; gradient"
            f" {of['gradient_norm']:.2g}; {of['memory'] / 1e9:.1f} GB",
            flush=True,
        )


def write(backbone: str, layers: int, size: Mapping[str, int], folder: Path) -> dict[str, Any]:
    """Write a checkpoint with the widths of `size`; return the size that it has."""
    import torch

    from dualread import plugins
    from dualread.models import prompts
    from dualread.models.backbones import user_model

    family = FAMILIES[backbone]
    sizes = {
        "vocabulary": 400,
        "hidden_size": size["hidden_size"],
        "layers": layers,
        "heads": size["attention_width"] // _HEAD,
        "key_value_heads": max(1, size["key_value_width"] // _HEAD),
        "feed_forward": size["feed_forward"],
        "vision_hidden_size": size["vision_width"],
        "vision_layers": 2,
        "vision_heads": size["vision_width"] // _VISION_HEAD,
        "patch_size": {"qwen3_vl": 16, "gemma3": 14}[family],
        "image_size": SIDE,
        "max_positions": 1024,
    }
    texts = ["What is the size of the lesion?", "Is this a CT scan?", "<answer>upper left</answer>"] * 20
    create = plugins.load("architectures", family).create
    model, processor = create(texts, prompts.fixed_pieces(prompts.names()), sizes, seed=0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(0.4)  # wide layers with the deviation of narrow ones would always say the same token
        # So would a tied head, because the logit of the last token read grows with the width.
        model.get_input_embeddings().weight.mul_(min(1.0, 300 / sizes["hidden_size"]))
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return user_model.size_of(backbone, model.config.to_dict(), sum(weight.numel() for weight in model.parameters()))


def questions(folder: Path) -> Path:
    """Make a manifest of questions about phantom images; return its folder."""
    from dualread.schema.base import Plugin
    from dualread.schema.data import BuildManifestSpec, DrawPhantomSpec, Phantom
    from dualread.stages import build_manifest, draw_phantom

    drawn, made = folder / "drawn", folder / "manifest"
    drawn.mkdir()
    made.mkdir()
    phantom = Phantom(
        format="slake", seed=0, images={"train": 2, "validation": 1, "test": 1}, size=SIDE, questions_per_image=2
    )
    draw_phantom.compute(
        DrawPhantomSpec(name="larger", writer=Plugin(module="training.writers.slake"), phantom=phantom), {}, drawn
    )
    of = {"dataset": "slake", "split": "train", "settings": {}, "roles": "fit", "seed": 0}
    build_manifest.compute(
        BuildManifestSpec(loader=Plugin(module="data.datasets.slake"), **of), {"source": drawn}, made
    )
    return made


def spec_of(config: Any, backbone: str) -> Any:
    """Return the spec of the training of the actor `rlvr`."""
    from _training import trained_by

    from dualread.schema.backbones import TrainActorSpec
    from dualread.schema.base import Prompt
    from dualread.training.settings import training_settings

    entry, of = config["actors"]["rlvr"], config["backbones"][backbone]
    return TrainActorSpec(
        **{"backbone": backbone, "model": of["settings"], "actor": "rlvr", "seed": 17},
        **trained_by(entry),
        prompt=Prompt(name="shared", file="models/prompts/shared.txt"),
        settings=training_settings(entry["settings"], of["training"]),
    )


def work(file: Path) -> int:
    """Train as one of the processes, and tell how much memory that took."""
    import torch
    import trl.trainer.grpo_trainer  # noqa: F401  # packages are not counted
    from _training import NUMBERED
    from full_size import _in_use, _Memory

    from dualread.training import grpo
    from dualread.training.job import Assignment

    counted, on_gpu = ("RssAnon",), torch.cuda.is_available()
    before = 0.0 if on_gpu else _in_use(counted)
    memory = _Memory(counted, on_gpu=on_gpu, shared=False)
    job = replace(Assignment.model_validate_json(file.read_text()).job(), reward=NUMBERED)
    start = time.process_time()
    with memory:
        log = grpo.train(job)
    of = {row["name"]: row["value"] for row in log}
    assert of["gradient_norm"] > 0, f"the log of the step: {of}"
    assert all(math.isfinite(value) for value in of.values()), f"the log has values that are not finite: {of}"
    told = {"memory": memory.peak - before, "cpu_seconds": time.process_time() - start, **of}
    file.with_name(f"told-{os.environ['RANK']}.json").write_text(json.dumps(told))
    return 0


if __name__ == "__main__":
    # The processes of a training are given a file.
    sys.exit(work(Path(sys.argv[1])) if sys.argv[1:] and Path(sys.argv[1]).name == "assignment.json" else main())
