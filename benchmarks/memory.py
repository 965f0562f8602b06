"""Peak memory of each stage, predicted by `dualread plan` and measured, for untrained models of several sizes.

    python benchmarks/memory.py                                                  # all stages, 30 million parameters
    python benchmarks/memory.py --stages replay --sizes 100M --dtypes bfloat16 --rows 8 32 --made 64 --side 256
    python benchmarks/memory.py --stages train --recompute                       # as on a GPU, see below

Each case runs in a process of its own, which first runs the same stage with a very small model: what the libraries
allocate for good at their first use is not counted. Then it loads the model and computes one batch as long as its
longest row: `rows` completions of `made` tokens, which untrained models hardly ever end earlier. `samples` and `train`
draw four completions of each prompt; a training has two steps of two passes. `ratio` is measured / predicted.

On CPUs, the measured quantity is the peak resident memory minus that before the model was loaded. What is freed is
given back to the system at once (see `STRICT`), so this is what is in use at the peak. The same holds on GPUs of
`torch.cuda.max_memory_allocated`, which is measured where there is a GPU. What CPUs cannot show:

- CUDA's caching allocator reserves more than is in use. `plan` leaves room for that (`memory_share` in costs.yaml).
- CPUs and GPUs have other kernels for attention; none of those used here keeps the attention weights of a whole layer.
- On a CPU, the pixels that the processor makes and those that the model gets are the same memory, a file that is read
  in another precision is in memory for a while (not counted), and TRL holds more logits of a training pass at once
  (`peaks.logits_on_cpu`; the prediction counts them).
- Without a GPU, the library trains without computing activations again. `--recompute` does it as on a GPU.
"""

import argparse
import gc
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _tiny import backbone_entry, forget_peak, peak_mb, resident_mb, rows
from PIL import Image

from dualread import plugins
from dualread.commands.plan import peaks
from dualread.commands.plan.models import encoding, reading
from dualread.declared.recorded import Facts
from dualread.models import prompts
from dualread.models.actor import ReadSpec, Request, SeededDecoding, read_states
from dualread.models.backbones.opened import Opened, open_checkpoint
from dualread.models.conditions import Asked
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.replay import agreement
from dualread.models.training import grpo
from dualread.models.training.job import Job

SIZES = {  # hidden_size, layers, heads, heads of keys and values, feed_forward, vocabulary; vision: width, layers
    "tiny": (64, 2, 2, 1, 96, 1000, 32, 2),
    "10M": (256, 6, 4, 2, 768, 8000, 192, 6),
    "30M": (512, 8, 8, 4, 1536, 16000, 256, 8),
    "100M": (768, 12, 12, 6, 2304, 32000, 384, 8),
    "300M": (1024, 20, 16, 8, 3072, 48000, 512, 10),
}
GROUP = 4  # completions of a prompt
PIECES = 2  # passes of a training step
STRICT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One measurement.

    Attributes:
        stage: A key of STAGES.
        family: The architecture.
        size: A key of SIZES.
        dtype: The precision of the forward pass.
        rows: Completions at once.
        made: Tokens of a completion.
        side: Height and width of an image in pixels; a patch has 8 x 8, an image token 16 x 16.
        recompute: Whether activations are computed again in the backward pass.
        kl: Whether a training has a reference model.
    """

    stage: str
    family: str
    size: str
    dtype: str
    rows: int
    made: int
    side: int
    recompute: bool = False
    kl: bool = False

    @property
    def prompts(self) -> int:
        """The number of different prompts at once."""
        return self.rows // (GROUP if self.stage in ("samples", "train") else 1)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the backbone."""
        pixels = self.side**2
        changes = {"dtype": self.dtype, "min_pixels": pixels, "max_pixels": pixels, "max_prompt_tokens": 8192}
        return {**backbone_entry(self.family)["settings"], **changes}


def create(case: Case, folder: Path) -> None:
    """Save an untrained checkpoint of the case's size."""
    width, layers, heads, key_value_heads, feed_forward, vocabulary, vision_width, vision_layers = SIZES[case.size]
    sizes = {
        **{"hidden_size": width, "layers": layers, "heads": heads, "key_value_heads": key_value_heads},
        **{"feed_forward": feed_forward, "vision_hidden_size": vision_width, "vision_layers": vision_layers},
        **{"vision_heads": 4, "image_size": case.side, "max_positions": 8192},
    }
    architecture = backbone_entry(case.family)["source"]["pretrain"]["architecture"] | sizes
    texts = [text for row in rows(8) for text in (row.text, row.completion)]
    create = plugins.load("architectures", case.family).create
    model, processor = create(texts, prompts.fixed_pieces(prompts.names()), architecture, seed=0)
    model.resize_token_embeddings(vocabulary, mean_resizing=False)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def size_of(checkpoint: Path) -> dict[str, float]:
    """Return `backbones.*.size` of a checkpoint."""
    from safetensors import safe_open
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(checkpoint)
    text, vision = config.get_text_config(), config.vision_config
    parameters = 0
    for file in checkpoint.glob("*.safetensors"):
        with safe_open(file, "pt") as tensors:
            parameters += sum(math.prod(tensors.get_slice(name).get_shape()) for name in list(tensors.keys()))
    if hasattr(config, "mm_tokens_per_image"):
        side = vision.image_size / vision.patch_size / config.mm_tokens_per_image**0.5
    else:
        side = vision.spatial_merge_size
    return {
        "parameters": parameters,
        "hidden_size": text.hidden_size,
        "feed_forward": text.intermediate_size,
        "layers": text.num_hidden_layers,
        "attention_width": text.num_attention_heads * text.head_dim,
        "key_value_width": text.num_key_value_heads * text.head_dim,
        "vocabulary": text.vocab_size,
        "pixels_per_token": (side * vision.patch_size) ** 2,
        "patches_per_token": side**2,
        "values_per_pixel": 3 * getattr(vision, "temporal_patch_size", 1),
        "vision_width": vision.hidden_size,
        "vision_feed_forward": vision.intermediate_size,
        "vision_layers": getattr(vision, "num_hidden_layers", None) or vision.depth,
        "vision_rotary": hasattr(vision, "rope_parameters"),
    }


def questions(case: Case, n: int, folder: Path) -> list[Request]:
    """Return `n` questions, each about an image of its own in `folder`."""
    found = []
    for i, row in enumerate(rows(n)):
        file = folder / f"{i}.png"
        pixels = np.random.default_rng(i).integers(0, 255, (64, 64, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(file)
        found.append(Request(text=row.text, image=file, image_name=str(i), row=f"question {i}"))
    return found


def generate(case: Case, checkpoint: Path, asked: Sequence[Request]) -> float:
    """Generate, or sample, the completions of one batch; return the CPU seconds without loading the model."""
    engine = _engine(case, checkpoint)
    began = time.process_time()
    n = GROUP if case.stage == "samples" else 1
    decoding = SeededDecoding(temperature=float(n > 1), top_p=1.0, n_samples=n, max_completion_tokens=case.made, seed=0)
    engine.answer(asked, decoding)
    return time.process_time() - began


def score(case: Case, checkpoint: Path, asked: Sequence[Request]) -> float:
    """Score the integers from 0 to 100 after each prompt."""
    engine = _engine(case, checkpoint)
    began = time.process_time()
    engine.loglikelihoods(asked, [continuations(engine.encoder.tokenizer)] * len(asked))
    return time.process_time() - began


def continuations(tokenizer: Any) -> list[list[int]]:
    """Return the ids of the integers from 0 to 100 with the beginning of the closing tag."""
    return [tokenizer(f"{i}</confidence>", add_special_tokens=False)["input_ids"][:4] for i in range(101)]


def replay(case: Case, checkpoint: Path, asked: Sequence[Request]) -> float:
    """Replay one batch of random completions, and measure the rounding where the stage does."""
    actor = _opened(case, checkpoint)
    began = time.process_time()
    rng, stop = np.random.default_rng(0), min(actor.stop)
    kept = sorted(set(range(300)) - actor.stop - set(actor.forbidden))
    completions = [[*rng.choice(kept, case.made - 1).tolist(), stop] for _ in asked]
    read_states(actor, asked, completions, ReadSpec(kappa=0.1), batch_size=case.rows)
    agreement.Own.of(actor, asked, completions)
    return time.process_time() - began


def train(case: Case, checkpoint: Path, asked: Sequence[Request]) -> float:
    """Train two steps of `PIECES` passes; return the CPU seconds with loading the model and saving the actor."""
    began = time.process_time()
    images = [r.image for r in asked if isinstance(r.image, Path)]
    about = [
        Asked(sample_id=r.row, text=r.text, image_file=file.name, image_id=r.image_name)
        for r, file in zip(asked, images, strict=True)
    ]
    settings = {
        **{"steps": 2, "prompts_per_step": len(asked), "group_size": GROUP, "completions_per_pass": case.rows},
        **{"max_completion_tokens": case.made, "temperature": 1.0, "top_p": 1.0, "learning_rate": 1e-6},
        **{"betas": [0.9, 0.95], "weight_decay": 0.01, "warmup_fraction": 0.05, "clip_norm": 1.0},
        **{"clip_low": 0.2, "clip_high": 0.2, "kl_coefficient": 0.01 * case.kl},
    }
    if case.recompute:
        _recompute()
    with tempfile.TemporaryDirectory(dir=checkpoint.parent) as folder:
        grpo.train(
            Job(
                checkpoint=checkpoint,
                facts=Facts(),
                questions=about,
                references=[["yes"]] * len(about),
                images=images[0].parent,
                backbone_settings=case.settings,
                reward=plugins.load("rewards", "rlvr"),
                settings=grpo.Settings(**settings),
                seed=0,
                out=Path(folder, "actor"),
                scratch=Path(folder, "scratch"),
            )
        )
    return time.process_time() - began


STAGES = {"generate": generate, "samples": generate, "integers": score, "replay": replay, "train": train}


def _engine(case: Case, checkpoint: Path) -> TransformersEngine:
    return TransformersEngine(_opened(case, checkpoint), case.rows)


def _opened(case: Case, checkpoint: Path) -> Opened:
    opened = open_checkpoint(checkpoint, case.settings)
    forget_peak()  # a file that is read in another precision was in memory with its copy, on the CPU only
    return opened


def _recompute() -> None:
    """Let the trainer compute activations again in the backward pass, as it does on GPUs."""
    from trl.trainer import grpo_config

    class Recomputing(grpo_config.GRPOConfig):
        def __post_init__(self) -> None:
            self.activation_checkpointing = True
            super().__post_init__()

    grpo_config.GRPOConfig = Recomputing


def measure(case: Case, checkpoints: Mapping[str, Path]) -> dict[str, Any]:
    """Run a case in this process; return the bytes and the CPU seconds that it took, and its longest prompt."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        asked = questions(case, case.prompts * (PIECES if case.stage == "train" else 1), Path(scratch))
        small = replace(case, size="tiny", rows=GROUP, made=4)
        STAGES[case.stage](small, checkpoints["tiny"], asked[: small.prompts * 2])
        gc.collect()
        before = resident_mb()
        forget_peak()
        if on_gpu := torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        seconds = STAGES[case.stage](case, checkpoints[case.size], asked)
        used = torch.cuda.max_memory_allocated() if on_gpu else (peak_mb() - before) * 1e6
        encoder = _encoder(checkpoints[case.size], case)
        longest = max(len(encoder.prompt(r.text, image=r.image, row=r.row).token_ids) for r in asked)
        nodes = len({tuple(ids[:end]) for ids in continuations(encoder.tokenizer) for end in range(len(ids))})
    return {"bytes": used, "seconds": seconds, "prompt": longest, "nodes": nodes}


def _encoder(checkpoint: Path, case: Case) -> Any:
    from dualread.models.backbones._checkpoint_files import read_config
    from dualread.models.backbones.encode import Encoder
    from dualread.models.backbones.processor import load_processor

    settings = {**case.settings, "max_prompt_tokens": 8192}
    return Encoder(load_processor(checkpoint, settings), read_config(checkpoint), settings)


def predict(case: Case, size: Mapping[str, float], found: Mapping[str, Any]) -> dict[str, float]:
    """Return what `dualread plan` expects at the peak."""
    batch = peaks.LongestBatch(
        rows=case.rows,
        prompts=case.prompts,
        prompt=found["prompt"],
        made=case.made,
        pixels=case.side**2,
        on_gpu=False,
    )
    if case.stage == "train":
        return peaks.training(
            size,
            batch,
            case.dtype,
            rollouts=batch,
            of_step=case.rows * PIECES,
            reference=case.kl,
            recompute=case.recompute,
            logits=peaks.logits_on_cpu(size, batch),
        )
    if case.stage == "replay":
        return peaks.replay(size, batch, case.dtype)
    if case.stage == "integers":
        return peaks.scoring(size, batch, case.dtype, prefixes=found["nodes"])
    return peaks.generation(size, batch, case.dtype, sampled=case.stage == "samples")


def operations(case: Case, size: Mapping[str, float], found: Mapping[str, Any]) -> float:
    """Return the operations by which `dualread plan` counts time; steps of generation are operations, too, on a CPU."""
    columns, head = found["prompt"] + case.made, 2 * size["vocabulary"] * size["hidden_size"]
    image = encoding(size, case.side**2)
    if case.stage == "train":
        rollouts = case.prompts * (reading(size, found["prompt"], found["prompt"]) + image)
        rollouts += case.rows * case.made * (reading(size, 1, columns) + head)
        # Without a GPU, nothing is computed again, and the head reads prompts as well.
        passes = 4 if case.recompute else 3
        learned = case.rows * (passes * (reading(size, columns, columns) + image) + 4 * head * columns)
        return 2 * PIECES * (rollouts + learned + case.rows * case.kl * (learned / passes))
    if case.stage == "replay":
        once = case.rows * (reading(size, columns, columns) + case.made * head)
        again = 2 * once if case.dtype != "float32" else 0
        return once + again + (1 + 2 * (again > 0)) * case.prompts * image
    read = case.prompts * (reading(size, found["prompt"], found["prompt"]) + image)
    if case.stage == "integers":
        return read + case.prompts * found["nodes"] * (reading(size, 1, found["prompt"]) + head)
    return read + case.rows * case.made * (reading(size, 1, columns) + head)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield every combination of the options; those with the same checkpoint follow each other."""
    names = ("family", "size", "side", "stage", "dtype", "rows", "made")
    chosen = (options.families, options.sizes, options.side, options.stages, options.dtypes, options.rows, options.made)
    for values in itertools.product(*chosen):
        yield Case(**dict(zip(names, values, strict=True)), recompute=options.recompute, kl=options.kl)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", nargs="+", default=list(STAGES), choices=STAGES)
    parser.add_argument("--families", nargs="+", default=["qwen3_vl", "gemma3"])
    parser.add_argument("--sizes", nargs="+", default=["30M"], choices=SIZES)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--rows", nargs="+", type=int, default=[16])
    parser.add_argument("--made", nargs="+", type=int, default=[32])
    parser.add_argument("--side", nargs="+", type=int, default=[128])
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--kl", action="store_true")
    parser.add_argument("--json", type=Path, help="also write the cases there, one per line")
    parser.add_argument("--child", help=argparse.SUPPRESS)  # cases, and the folders of their checkpoints
    options = parser.parse_args()
    from transformers.utils import logging

    logging.disable_progress_bar()
    if options.child:
        child(json.loads(options.child))
        return
    groups = itertools.groupby(cases(options), key=lambda case: (case.family, case.size, case.side))
    with tempfile.TemporaryDirectory() as scratch:
        found = (row for _, group in groups for row in compare(list(group), Path(scratch)))
        report(found, options.json)


def compare(of_checkpoint: Sequence[Case], scratch: Path) -> Iterator[dict[str, Any]]:
    """Measure the cases of one checkpoint in a process of their own; yield what was measured and predicted."""
    [*_, case] = of_checkpoint
    folders = {name: scratch / f"{case.family}-{name}-{case.side}" for name in ("tiny", case.size)}
    work = [replace(case, stage="create", size=name) for name, folder in folders.items() if not folder.is_dir()]
    told = {
        "cases": [asdict(case) for case in (*work, *of_checkpoint)],
        "folders": {name: str(folder) for name, folder in folders.items()},
    }
    command = [sys.executable, __file__, "--child", json.dumps(told)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **STRICT}) as process:
        assert process.stdout is not None
        measured = (json.loads(line) for line in process.stdout if line.startswith("{"))
        for case, found in zip(of_checkpoint, measured, strict=False):
            size = size_of(folders[case.size])
            parts = predict(case, size, found)
            found |= {"operations": operations(case, size, found), "predicted": sum(parts.values()), "parts": parts}
            yield {**asdict(case), **found}
    if process.returncode:
        raise SystemExit(f"the process that measured {case} failed; its error is above")


def child(told: Mapping[str, Any]) -> None:
    """Make the checkpoints that are missing, and print a line of JSON for each of the other cases."""
    folders = {name: Path(folder) for name, folder in told["folders"].items()}
    for case in (Case(**fields) for fields in told["cases"]):
        if case.stage == "create":
            create(case, folders[case.size])
        else:
            print(json.dumps(measure(case, folders)), flush=True)


def report(found: Iterator[Mapping[str, Any]], out: Path | None) -> None:
    """Print a row per case as soon as it is measured."""
    print(
        "stage     family    size  dtype     rows made side prompt  measured predicted ratio seconds  predicted parts"
    )
    for row in found:
        parts = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in row["parts"].items() if size)
        numbers = f"{row['rows']:>4} {row['made']:>4} {row['side']:>4} {row['prompt']:>6}"
        numbers += f" {row['bytes'] / 1e6:>6.0f} MB {row['predicted'] / 1e6:>6.0f} MB"
        numbers += f" {row['bytes'] / row['predicted']:>5.2f} {row['seconds']:>7.1f}"
        print(f"{row['stage']:<9} {row['family']:<9} {row['size']:<5} {row['dtype']:<8} {numbers}  {parts}", flush=True)
        if out is not None:
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
