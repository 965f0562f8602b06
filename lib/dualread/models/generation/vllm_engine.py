"""Generation with vLLM, for models and data sets that need its throughput; in an environment of its own.

Prompts and pixels are those of `backbones.encode`, to the bit. What prompts share, the image above all, is read once
for the samples of a question, the choices behind it and the other questions about the image. A job uses every GPU that
it sees, one process each.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dualread.models.backbones.encode import Encoder
from dualread.models.generation._vllm import Core, prepare
from dualread.models.generation.base import Completion, Decoding, Engine, Request, Weighed
from dualread.models.generation.data_parallel import DealtEngine, by_image, visible_gpus
from dualread.progress import track
from dualread.seeding import derive_seed

ENVIRONMENT = "vllm"  # envs/vllm.lock, or what the config's `machine` says of it
SETTINGS = {
    "max_num_seqs": {"type": "integer", "minimum": 1},  # completions at once on one GPU
    "gpu_memory_utilization": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "optional": True},
}

_IDS_A_REQUEST = 128  # of as many named ids vLLM tells the log-probabilities at once


def open_engine(
    checkpoint: Path, backbone: ModuleType, settings: Mapping[str, Any], engine: Mapping[str, Any]
) -> Engine:
    """Open `checkpoint` on every visible GPU; `settings` is the backbone's entry, `engine` what SETTINGS name.

    Raises:
        ArtifactError: It is not a whole checkpoint of the backbone.
    """
    prepare()
    backbone.check(checkpoint)  # every engine refuses the same checkpoints, whatever vLLM makes of them
    if len(gpus := visible_gpus()) <= 1:
        return VllmEngine(checkpoint, backbone, settings, engine)
    encoder, stop = _encoder(checkpoint, backbone, settings)
    arguments = (checkpoint, backbone.__name__, dict(settings), dict(engine))
    return DealtEngine(open_one, arguments, gpus, encoder, stop)


def open_one(checkpoint: Path, backbone: str, settings: Mapping[str, Any], engine: Mapping[str, Any]) -> "VllmEngine":
    """Open `checkpoint` in this process; `backbone` is the name of its module."""
    prepare()
    return VllmEngine(checkpoint, importlib.import_module(backbone), settings, engine)


class VllmEngine:
    """See `dualread.models.generation.base.Engine`."""

    def __init__(self, checkpoint: Path, backbone: ModuleType, settings: Mapping[str, Any], engine: Mapping[str, Any]):
        self.encoder, self.stop = _encoder(checkpoint, backbone, settings)
        self._never = dict.fromkeys(backbone.forbidden_token_ids(self.encoder.processor), -float("inf"))
        self._core = Core(checkpoint, settings, self.encoder, engine)

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> list[list[Completion]]:
        """Complete `requests`; see the interface."""
        order = by_image(requests)
        results: list[list[Completion]] = [[] for _ in requests]
        asked = ((requests[i].row, self._given(requests[i]), self._sampling(requests[i], decoding)) for i in order)
        for position, output in track(self._core.run(asked), total=len(order), label="generating (prompts)"):
            made = sorted(output.outputs, key=lambda one: one.index)
            results[order[position]] = [self._completion(output.prompt_token_ids, one) for one in made]
        return results

    def weigh(self, requests: Sequence[Request], choices: Sequence[Sequence[Sequence[int]]]) -> list[Weighed]:
        """Weigh the `choices` of each request; see the interface.

        Each beginning of a choice is a request for one token, whose answer names the log-probabilities of all ids that
        follow there.
        """
        asked = [(i, begun, ids) for i in by_image(requests) for begun, ids in beginnings(choices[i], _IDS_A_REQUEST)]
        log_probs: dict[tuple[int, tuple[int, ...]], float] = {}
        prompts: list[Sequence[int]] = [()] * len(requests)
        run = self._core.run(self._single_tokens(requests, asked))
        for position, output in track(run, total=len(asked), label="weighing choices (beginnings)"):
            i, begun, ids = asked[position]
            [said] = output.outputs[0].logprobs
            log_probs.update({(i, (*begun, token)): said[token].logprob for token in ids})
            prompts[i] = output.prompt_token_ids[: len(output.prompt_token_ids) - len(begun)]
        return [
            Weighed(
                prompt_token_ids=prompts[i],
                log_probs=np.array([sum(log_probs[i, tuple(ids[: k + 1])] for k in range(len(ids))) for ids in of]),
            )
            for i, of in enumerate(choices)
        ]

    def _given(self, request: Request) -> dict[str, Any]:
        encoded = self.encoder.prompt(request.text, image=request.image, row=request.row)
        return self._core.given(encoded, request.prefix)

    def _sampling(self, request: Request, decoding: Decoding) -> dict[str, Any]:
        return {
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "n": decoding.n_samples,
            "max_tokens": decoding.max_completion_tokens,
            # Sample k of a row is seeded by this + k: a row's samples do not depend on what else is asked.
            "seed": derive_seed("sample", decoding.seed, request.row),
            "logprobs": 0,  # of the chosen id alone
            "logit_bias": self._never,
            "stop_token_ids": sorted(self.stop),
        }

    def _single_tokens(
        self, requests: Sequence[Request], asked: Sequence[tuple[int, tuple[int, ...], list[int]]]
    ) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        given, of = {}, -1
        for i, begun, ids in asked:
            if i != of:
                given, of = self._given(requests[i]), i
            behind = {**given, "prompt_token_ids": [*given["prompt_token_ids"], *begun]}
            yield requests[i].row, behind, {"temperature": 0.0, "max_tokens": 1, "logprob_token_ids": ids}

    def _completion(self, prompt: Sequence[int], made: Any) -> Completion:
        tokens = list(made.token_ids)
        return Completion(
            prompt_token_ids=prompt,
            token_ids=tokens,
            token_log_probs=[said[token].logprob for said, token in zip(made.logprobs, tokens, strict=True)],
            text=self.encoder.tokenizer.decode(tokens, skip_special_tokens=True),
            finish_reason=made.finish_reason,
        )


def beginnings(choices: Sequence[Sequence[int]], most: int) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Yield every beginning of the choices, the empty one first, and the ids that follow it, at most `most` at once."""
    following: dict[tuple[int, ...], dict[int, None]] = {}
    for ids in choices:
        for k, token in enumerate(ids):
            following.setdefault(tuple(ids[:k]), {})[token] = None
    for begun, after in following.items():
        ids = list(after)
        yield from ((begun, ids[start : start + most]) for start in range(0, len(ids), most))


def _encoder(checkpoint: Path, backbone: ModuleType, settings: Mapping[str, Any]) -> tuple[Encoder, frozenset[int]]:
    """Return the encoder of the checkpoint's prompts and the ids that end a turn."""
    from transformers import GenerationConfig

    processor = backbone.load_processor(checkpoint, settings)
    stop: Any = GenerationConfig.from_pretrained(checkpoint).eos_token_id
    return Encoder(backbone, processor, settings["max_prompt_tokens"]), frozenset(
        stop if isinstance(stop, list) else [stop]
    )
