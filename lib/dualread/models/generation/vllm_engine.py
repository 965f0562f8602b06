"""Generation with vLLM, for models and data sets that need its throughput; it runs in a separate environment.

Prompts and pixels are bit for bit those of `backbones.encode`. vLLM's prefix cache reads what requests share only once:
above all the image, for all samples, continuations and questions about it. A job uses every GPU that it can see, with
one process per GPU.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dualread.errors import ConfigError
from dualread.models.actor import (
    AnsweringActor,
    Collecting,
    Completion,
    EncodedRequest,
    Loglikelihoods,
    Request,
    Rollout,
    SeededDecoding,
)
from dualread.models.backbones._checkpoint_files import read_config
from dualread.models.backbones.checkpoint import check
from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.backbones.processor import load_processor
from dualread.models.generation._vllm import Core, prepare, read_back, sampling
from dualread.models.generation._vllm_stream import VllmStream
from dualread.models.generation.data_parallel import DataParallelEngine, by_image, visible_gpus
from dualread.models.streams import Finished
from dualread.progress import track
from dualread.schema.base import AS_GIVEN, Positive, Section, Wire
from dualread.schema.recorded import USUAL, Facts

ENVIRONMENT = "vllm"  # its lock file is in envs/; `machine.vllm` in the config chooses the build for CUDA or CPUs

COLLECTS = True

_MAX_NEXT_IDS = 128  # vLLM returns the log-probabilities of at most this many chosen ids per request


class Settings(Section):
    """How many completions are made together, and in how much memory."""

    max_num_seqs: Positive
    """Completions at once on one GPU."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1), AS_GIVEN] | None = None
    """Share of the GPU's memory that vLLM takes; by default, vLLM's own."""
    eager: bool | None = None
    """Run without CUDA graphs, which is slower. A method that reads an inner layer needs it with `replay.from`."""


def open_engine(checkpoint: Path, settings: Wire, engine: Wire, facts: Facts = USUAL) -> AnsweringActor:
    """Open `checkpoint` on every visible GPU; `engine` is what `Settings` declares."""
    del facts  # vLLM has its own ways to read rows, and the replay judges them
    if "quantization" in settings:
        raise ConfigError(
            "backbones.*.settings.quantization: vLLM has other kernels for quantized weights than the replay. Expected"
            " no quantization with this engine. Leave it out, or let transformers_engine generate."
        )
    prepare()
    check(checkpoint, settings)  # so that every engine refuses the same checkpoints, whatever vLLM would accept
    if len(gpus := visible_gpus()) <= 1:
        return VllmEngine(checkpoint, settings, engine)
    return open_in_processes(checkpoint, settings, engine, gpus)


def open_in_processes(checkpoint: Path, settings: Wire, engine: Wire, gpus: Sequence[str]) -> DataParallelEngine:
    """Open `checkpoint` on each of `gpus`, as CUDA_VISIBLE_DEVICES names them; other arguments as in `open_engine`."""
    arguments = (checkpoint, dict(settings), dict(engine))
    return DataParallelEngine(VllmEngine, arguments, gpus, encoder_of(checkpoint, settings))


class VllmEngine(Core):
    """Implements `dualread.models.actor.AnsweringActor` with vLLM on one device; arguments as in `open_engine`."""

    def __init__(self, checkpoint: Path, settings: Wire, engine: Wire):
        prepare()
        super().__init__(checkpoint, settings, encoder_of(checkpoint, settings), engine)

    def answer(
        self, requests: Sequence[Request], decoding: SeededDecoding, collecting: Collecting | None = None
    ) -> list[list[Completion]]:
        """Complete `requests`; see `AnsweringActor.answer`."""
        stream, n = VllmStream(self, collecting), decoding.n_samples

        def added() -> Iterator[None]:
            for i in by_image(requests):
                prompt = requests[i].encoded(self.encoder)
                yield stream.add(
                    EncodedRequest(name=str(i), prompt=prompt, decoding=decoding, watched=True), at_end=True
                )

        finished = (event for event in self.run(added(), stream.step) if isinstance(event, Finished))
        tracked = track(finished, total=n * len(requests), label="generating (completions)")
        made = {(int(event.name), event.index): event.completion for event in tracked}
        return [[made[i, k] for k in range(n)] for i in range(len(requests))]

    def sample(self, prompts: Sequence[EncodedPrompt], decoding: SeededDecoding, seeds: Sequence[int]) -> list[Rollout]:
        """Return one completion per prompt, each of a random stream of its own; equal prompts are read once.

        `n_samples` and `seed` of the decoding are not read: `seeds` has one per completion.
        """
        single, parameters = decoding.model_copy(update={"n_samples": 1}), dict[str, Any]()

        def added() -> Iterator[None]:
            for i, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True)):
                self.check_length(prompt.row, len(prompt.token_ids) + single.max_completion_tokens)
                name = self.add(str(i), self.given(prompt), sampling(single, seed, self.encoder), at_end=True)
                parameters[str(i)] = self.parameters(name)
                yield

        made: dict[str, Rollout] = {}
        for output in self.run(added(), self.step):
            [drawn] = output.outputs
            tokens, drawn_with = list(drawn.token_ids), read_back(parameters.pop(output.request_id))
            log_probs = [by_id[token].logprob for by_id, token in zip(drawn.logprobs, tokens, strict=True)]
            made[output.request_id] = Rollout(token_ids=tokens, log_probs=log_probs, drawn_with=drawn_with)
        return [made[str(i)] for i in range(len(prompts))]

    def load_file(self, file: Path) -> None:
        """Replace all weights by those that `torch.save` wrote to a file; see `load`."""
        import torch

        self.load(torch.load(file, mmap=True, weights_only=True).items())

    def loglikelihoods(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[Sequence[int]]]
    ) -> list[Loglikelihoods]:
        """Score the `continuations` of each request; see `AnsweringActor.loglikelihoods`.

        vLLM is asked for one token after every proper prefix of a continuation, together with the log-probabilities of
        all ids that follow that prefix.
        """
        asked = [
            (i, prefix, ids) for i in by_image(requests) for prefix, ids in next_ids(continuations[i], _MAX_NEXT_IDS)
        ]
        log_probs: dict[tuple[int, tuple[int, ...]], float] = {}
        prompts: list[Sequence[int]] = [()] * len(requests)
        outputs = self.run(self._single_tokens(requests, asked), self.step)
        for output in track(outputs, total=len(asked), label="scoring continuations (prefixes)"):
            i, prefix, ids = asked[int(output.request_id)]
            [of_token] = output.outputs[0].logprobs
            log_probs.update({(i, (*prefix, token)): of_token[token].logprob for token in ids})
            prompts[i] = output.prompt_token_ids[: len(output.prompt_token_ids) - len(prefix)]
        return [
            Loglikelihoods(
                prompt_token_ids=prompts[i],
                values=np.array(
                    [sum(log_probs[i, tuple(ids[: k + 1])] for k in range(len(ids))) for ids in of_request]
                ),
            )
            for i, of_request in enumerate(continuations)
        ]

    def _single_tokens(
        self, requests: Sequence[Request], asked: Sequence[tuple[int, tuple[int, ...], list[int]]]
    ) -> Iterator[None]:
        """Ask for one token after each prefix."""
        engine_prompt, current = {}, -1
        for number, (i, prefix, ids) in enumerate(asked):
            if i != current:
                engine_prompt, current = self.given(requests[i].encoded(self.encoder)), i
            extended = {**engine_prompt, "prompt_token_ids": [*engine_prompt["prompt_token_ids"], *prefix]}
            self.check_length(requests[i].row, len(extended["prompt_token_ids"]) + 1)
            parameters = {"temperature": 0.0, "max_tokens": 1, "logprob_token_ids": ids}
            self.add(str(number), extended, parameters, at_end=True)
            yield


def next_ids(continuations: Sequence[Sequence[int]], most: int) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Yield (prefix, ids that follow it) for every proper prefix of the continuations, the empty prefix first.

    A prefix with more than `most` next ids is yielded several times, with at most `most` of them each time.
    """
    following: dict[tuple[int, ...], dict[int, None]] = {}
    for ids in continuations:
        for k, token in enumerate(ids):
            following.setdefault(tuple(ids[:k]), {})[token] = None
    for prefix, after in following.items():
        ids = list(after)
        yield from ((prefix, ids[start : start + most]) for start in range(0, len(ids), most))


def encoder_of(checkpoint: Path, settings: Wire) -> Encoder:
    """Return the encoder of the checkpoint's prompts."""
    from transformers import GenerationConfig

    ends = GenerationConfig.from_pretrained(checkpoint).eos_token_id
    return Encoder(load_processor(checkpoint, settings), read_config(checkpoint), settings, ends=ends)
