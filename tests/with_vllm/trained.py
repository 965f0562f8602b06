# ruff: noqa: E402
"""Train tiny actors with rollouts by vLLM; run in vLLM's environment.

python trained.py FOLDER CASE [CASE ...]

Writes FOLDER/<case>.json for each of `CASES` and `FAULTS`, or FOLDER/<case>-<process>.json where several processes run
this: the train log, the error that ended the training if one did, and, by step, the completions of the process and the
largest difference between vLLM's log-probabilities and single-row passes of the policy. For "weights of <family>": the
digests of vLLM's weights, before and after changed ones are pushed, and as it reads them from a checkpoint. For "on a
GPU": what vLLM would be told there.
"""

import contextlib
import functools
import json
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from dualread.training.rollouts import vllm

vllm.prepare()

import numpy as np
import torch

from dualread.errors import DualReadError
from dualread.models import own_pass, prompts
from dualread.models.backbones.checkpoint import Opened, copy_processor, load
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.generation import vllm_engine
from dualread.models.generation._vllm import Core
from dualread.training import _rollouts, dcpo, grpo, state_signal, vl_calibration
from dualread.training.job import Job
from tests import jobs
from tests.jobs import by_length
from tests.tiny import GRPO, MODEL, build, image

# vLLM shares whole blocks of 32 tokens between prompts.
QUESTIONS = [" ".join([text] * 12) for text in ("Is this a CT scan?", "What is the size of the lesion?", "Where?")]


BY_LENGTH = types.SimpleNamespace(CONTRACT="single", reward=by_length, calibration_reward=by_length)


def by_state(found: Any, *, state_confidence: list[float], **_: Any) -> list[float]:
    """Return rewards in which the confidence of the head counts, too."""
    return [length + c for length, c in zip(by_length(found), state_confidence, strict=True)]


BY_STATE = types.SimpleNamespace(CONTRACT="single", reward=by_state, READS_STATE_CONFIDENCE=True)


def job(
    folder: Path,
    name: str,
    *,
    family: str = "qwen3_vl",
    dtype: str = "float32",
    gpus: Any = (),
    algorithm: Any = None,
    **settings: Any,
) -> Job:
    """Six steps of all three questions, so that every prompt and every image is met again with other weights."""
    checkpoint = folder / family
    if not checkpoint.exists():
        build(family, checkpoint, hidden_size=64)  # vLLM's attention on CPUs needs heads of width 32 or more
    changes = {"steps": 6, "prompts_per_step": 3, "completions_per_pass": 3, "rollouts": "vllm"}
    return jobs.job(
        folder,
        checkpoint,
        QUESTIONS,
        backbone_settings={**MODEL, "dtype": dtype},
        reward=settings.pop("reward", BY_LENGTH),
        settings=(algorithm or grpo).Settings(**GRPO | changes | settings),
        out=folder / f"{name} out",
        scratch=folder / f"{name} scratch",
        checkpoints=settings.get("save_every") and folder / "kept",
        rollouts=vllm,
        rollout_gpus=gpus,
    )


def against_single_rows(found: list[float], completions: list[Any]) -> Any:
    """Note completions, and how much vLLM's log-probabilities differ from those of single-row passes, in each step."""
    right = _rollouts.CheckedRollouts.roll_out

    def difference(opened: Opened, prompt: EncodedPrompt, ids: list[int], log_probs: list[float]) -> float:
        i = int(prompt.row)
        inputs = opened.encoder.inputs(prompts.render("shared", question=QUESTIONS[i]), [image(i)])
        return float(np.abs(own_pass.log_probs(opened.model, inputs, ids, 0) - np.array(log_probs)).max())

    def noting(self: Any, of_rows: Any, opened: Opened, **named: int) -> Any:
        made = right(self, of_rows, opened, **named)
        completions.append(made[0])
        opened.model.eval()
        with torch.no_grad():
            found.append(max(difference(opened, *row) for row in zip(of_rows, *made, strict=True)))
        opened.model.train()
        return made

    return replaced(_rollouts.CheckedRollouts, "roll_out", noting)


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def without(*parts: str) -> Any:
    """Push only those weights whose names contain none of `parts`."""
    right = _rollouts.merged_weights
    pushed = lambda model: ((n, of) for n, of in right(model) if not any(part in n for part in parts))  # noqa: E731
    return replaced(_rollouts, "merged_weights", pushed)


@contextlib.contextmanager
def keeping(*caches: str) -> Iterator[None]:
    """Let vLLM keep what `Core.load` makes it forget."""
    from vllm.v1.engine.llm_engine import LLMEngine
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    with contextlib.ExitStack() as kept:
        for cache in caches:
            for owner in (LLMEngine, GPUModelRunner):
                if hasattr(owner, cache):
                    kept.enter_context(replaced(owner, cache, lambda *_: True))
        yield


def told(name: str, value: float) -> Any:
    """Tell vLLM another sampling parameter than was said."""
    right = vllm_engine.sampling
    return replaced(vllm_engine, "sampling", lambda *given: {**right(*given), name: value})


def sharpened(temperature: float) -> Any:
    """Let vLLM draw at another temperature than its parameters and its log-probabilities say."""
    from vllm.v1.sample.sampler import Sampler

    right = Sampler.sample
    drawn = lambda self, logits, *given, **named: right(self, logits / temperature, *given, **named)  # noqa: E731
    return replaced(Sampler, "sample", drawn)


def failing() -> Any:
    """Let vLLM raise an error of its own at its first step."""
    from vllm.v1.engine.llm_engine import LLMEngine

    def step(_: Any) -> Any:
        raise RuntimeError("planted")

    return replaced(LLMEngine, "step", step)


@contextlib.contextmanager
def sleeping() -> Iterator[None]:
    """Let vLLM sleep on a CPU: it pauses, wakes up in two parts, and goes on, but gives no memory back."""
    right = Core.__init__

    def opened(self: Core, *arguments: Any) -> None:
        right(self, *arguments)
        self._sleeps = True

    with replaced(Core, "__init__", opened):
        yield


def dying(calls: int) -> Any:
    """Return rewards that kill this process in their next call: the engine has the new weights, and no step follows."""
    left = iter(range(calls))

    def reward(found: Any, **_: Any) -> list[float]:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return BY_LENGTH.reward(found)

    return types.SimpleNamespace(CONTRACT="single", reward=reward)


ALL = ("model", "lm_head")  # of which each name has one
CORRECTED = {"importance_sampling": {"mode": "token_truncate", "clip_max": 2.0}}
DCPO = {"gamma": 0.5, "kl_coefficient": 1e-3}
LORA = {"rank": 4, "alpha": 8, "vision": True}
IMAGES = ("reset_encoder_cache", "reset_mm_cache")
# The algorithm, and changes of the job.
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (grpo, {}),
    "again": (grpo, {}),
    "by two": (grpo, {"processes": 2}),
    "by two full": (dcpo, {**DCPO, "processes": 2, "shard": "full"}),
    "by two optimizer": (grpo, {"processes": 2, "shard": "optimizer"}),
    "by two stale": (grpo, {"processes": 2, "shard": "full"}),
    "apart": (grpo, {"gpus": ("", "")}),
    "asleep": (grpo, {"rollout_settings": {"sleep": True}}),
    "lora": (grpo, {"lora": LORA}),
    "bfloat16": (grpo, {"dtype": "bfloat16"}),
    "corrected": (grpo, CORRECTED),
    "dcpo": (dcpo, DCPO),
    "vl_calibration": (vl_calibration, {"patch_pixels": 14}),
    "state_signal": (state_signal, {"weight": 0.5, "head_learning_rate": 0.01, "reward": BY_STATE}),
    "killed": (grpo, {"save_every": 1, "reward": dying(3)}),
    "resumed": (grpo, {"save_every": 1}),
    "causal image tokens": (grpo, {"family": "gemma3"}),
}
TOLD = (("temperature", 0.0), ("temperature", 0.7), ("temperature", 2.0), ("top_p", 0.5), ("top_k", 5))
# Planted in a case; one that is not in `CASES` is planted in a plain one.
FAULTS: dict[str, Callable[[], Any]] = {
    "by two stale": lambda: without("lm_head"),
    "asleep": sleeping,
    "stale": lambda: without(*ALL),
    "stale head": lambda: without("lm_head"),
    "stale vision": lambda: without("visual"),
    "stale prefixes": lambda: keeping("reset_prefix_cache"),
    "stale images": lambda: keeping(*IMAGES),
    **{f"{name} {value}": functools.partial(told, name, value) for name, value in TOLD},
    "one seed": lambda: told("seed", 1),
    "cut short": lambda: told("max_tokens", 3),
    "sampler": lambda: sharpened(0.05),
    "failing": failing,
}


def digests(folder: Path, family: str) -> dict[str, Any]:
    """Return the digests of vLLM's own weights: at first, when changed ones are pushed, and opened with these."""
    opened = job(folder, "weights", family=family)
    model, changed = load(opened.checkpoint, MODEL), folder / f"{family} changed"
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    model.save_pretrained(changed)
    copy_processor(opened.checkpoint, changed)

    def weights_of(rollouts: Any) -> dict[str, str]:
        [found] = rollouts._engine._engine.collective_rpc("compute_weight_checksums")
        return found

    with contextlib.closing(vllm.open_rollouts(opened.checkpoint, MODEL, {})) as rollouts:
        before = weights_of(rollouts)
        rollouts._engine.load(_rollouts.merged_weights(model))
        pushed = weights_of(rollouts)
    with contextlib.closing(vllm.open_rollouts(changed, MODEL, {})) as rollouts:
        return {"before": before, "pushed": pushed, "read": weights_of(rollouts)}


def on_a_gpu(folder: Path) -> dict[str, Any]:
    """Return what vLLM is told where there is a GPU; it is not opened."""
    from vllm.v1.engine.llm_engine import LLMEngine

    told = []

    def noted(arguments: Any, **_: Any) -> Any:
        told.append(arguments)
        raise DualReadError("not opened")

    settings = {"gpu_memory_utilization": 0.25, "sleep": True, "max_num_seqs": 5}
    gpu, engine = replaced(torch.cuda, "is_available", lambda: True), replaced(LLMEngine, "from_engine_args", noted)
    with gpu, engine, contextlib.suppress(DualReadError):
        vllm.open_rollouts(job(folder, "unopened").checkpoint, MODEL, settings)
    names = ("gpu_memory_utilization", "enable_sleep_mode", "max_num_seqs", "enforce_eager", "enable_prefix_caching")
    return {name: getattr(told[0], name) for name in names}


def main(folder: Path, *names: str) -> None:
    for name in names:
        if name == "on a GPU":
            (folder / f"{name}.json").write_text(json.dumps(on_a_gpu(folder)))
            continue
        if name.startswith("weights of "):
            found = digests(folder, name.removeprefix("weights of "))
            (folder / f"{name}.json").write_text(json.dumps(found))
            continue
        (algorithm, changes), planted = CASES.get(name, (grpo, {})), FAULTS.get(name, contextlib.nullcontext)
        made, found, completions, said = job(folder, name, algorithm=algorithm, **changes), [], [], {}
        with planted(), against_single_rows(found, completions):
            try:
                said["log"] = algorithm.train(made)
            except DualReadError as error:
                said["error"] = f"{type(error).__name__}: {error}"
        process = f"-{os.environ['RANK']}" if "RANK" in os.environ else ""
        said |= {"differences": found, "completions": completions}
        (folder / f"{name}{process}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
