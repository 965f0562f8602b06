"""vLLM samples the completions of a training, in the trainer's process and on its GPU, or on GPUs of its own.

All weights are replaced before each step. On the trainer's GPU, vLLM gives its memory back while the model learns, with
`sleep`; without it, both have to fit beside each other, and `gpu_memory_utilization` says how much of the memory is
vLLM's. GPUs of its own have one process each. They get the weights as a file that is in memory alone, as long as a
process has it open: nothing is left of it when they are killed.
"""

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dualread.errors import ConfigError
from dualread.models.actor import Rollout, SeededDecoding
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.generation import vllm_engine
from dualread.models.generation._vllm import prepare as prepare_vllm
from dualread.models.generation.data_parallel import DataParallelEngine
from dualread.schema.base import AS_GIVEN, Positive, Section, Wire

ENVIRONMENT = "vllm"


class Settings(Section):
    """How vLLM samples for a training."""

    max_num_seqs: Positive = 256
    """Completions at once on one GPU, by default 256."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1), AS_GIVEN] = 0.3
    """vLLM's share of the GPU's memory, weights included (TRL: `vllm_gpu_memory_utilization`), by default 0.3."""
    sleep: bool = False
    """Whether vLLM gives its memory back while the model learns (TRL: `vllm_enable_sleep_mode`), by default not."""


def prepare() -> None:
    """Prepare this process; see `models.generation._vllm.prepare`."""
    prepare_vllm()
    # Nothing here uses trl's own code for vLLM, which knows vLLM up to 0.31.
    warnings.filterwarnings("ignore", "TRL currently supports vLLM")


def open_rollouts(
    checkpoint: Path, model: Wire, settings: Wire, gpus: Sequence[str] = ()
) -> "VllmRollouts | DistantRollouts":
    """Open `checkpoint` in vLLM; see `dualread.training.rollouts`."""
    arguments = (checkpoint, dict(model), Settings.from_spec(settings, "rollout_settings").to_spec())
    if not gpus:
        return VllmRollouts(vllm_engine.VllmEngine(*arguments))
    if sys.platform != "linux":
        raise ConfigError(
            f"training: rollout_gpus: this is {sys.platform}. Expected Linux, whose files in memory pass weights on."
            " Leave it out: vLLM then samples in the process that trains."
        )
    return DistantRollouts(vllm_engine.open_in_processes(*arguments, gpus), model["dtype"])


class VllmRollouts:
    """Implements `dualread.training.rollouts.Rollouts` with one engine in this process."""

    def __init__(self, engine: vllm_engine.VllmEngine):
        self._engine = engine
        engine.sleep()

    def roll_out(
        self,
        weights: Iterable[tuple[str, Any]],
        prompts: Sequence[EncodedPrompt],
        decoding: SeededDecoding,
        seeds: Sequence[int],
    ) -> list[Rollout]:
        """See `Rollouts.roll_out`."""
        self._engine.load(weights)
        made = self._engine.sample(prompts, decoding, seeds)
        self._engine.sleep()
        return made

    def close(self) -> None:
        """See `Rollouts.close`."""
        self._engine.close()


class DistantRollouts:
    """The same with engines in processes of their own, of which each samples a part of the completions."""

    def __init__(self, engines: DataParallelEngine, dtype: str):
        self._engines, self._dtype = engines, dtype

    def roll_out(
        self,
        weights: Iterable[tuple[str, Any]],
        prompts: Sequence[EncodedPrompt],
        decoding: SeededDecoding,
        seeds: Sequence[int],
    ) -> list[Rollout]:
        """See `Rollouts.roll_out`."""
        import torch

        dtype = getattr(torch, self._dtype)
        with open(os.memfd_create("dualread-weights"), "wb") as file:
            # Not as safetensors, which writes another file beside it and renames that one.
            torch.save({name: tensor.to("cpu", dtype) for name, tensor in weights}, file)
            file.flush()
            self._engines.call_each("load_file", Path(f"/proc/{os.getpid()}/fd/{file.fileno()}"))
        rows = self._engines.parts(range(len(prompts)))
        parts = [([prompts[i] for i in part], decoding, [seeds[i] for i in part]) for part in rows]
        return [row for rows in self._engines.call("sample", parts) for row in rows]

    def close(self) -> None:
        """See `Rollouts.close`."""
        self._engines.close()
