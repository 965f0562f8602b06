"""vLLM in this process: a checkpoint opened, and prompts and pixels passed in exactly as `backbones.encode` made them.

All that this project has to know about vLLM (0.32) stands here. Three things are done our own way:

- The engine's core runs in this process and not in one of its own. What it puts into one batch then does not depend on
  how fast messages travel, and whatever has to be told to vLLM's code is told once.
- vLLM never sees an image. It is given the expanded prompt, the pixel tensors and the place of the image tokens, so its
  own image processors (other resampling, a video processor that not every checkpoint has) take no part.
- Weights are found under the names that transformers 5.19 and later write, and under those of before.
"""

# vLLM has an environment of its own, which those who check types need not have.
# pyright: reportMissingImports=false

import json
import logging
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError, DataError
from dualread.models.backbones.encode import Encoder, Prompt

_VARIABLES = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",  # it would tell its makers over the network
    "VLLM_CONFIGURE_LOGGING": "0",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
_ROOM_FOR_COMPLETIONS = 1024  # tokens behind the longest prompt; more only costs memory
_CPU_CACHE_BYTES = 2**29  # keys and values; vLLM would take most of the machine's memory
_CPU_BLOCK = 32  # tokens; only whole blocks are shared between prompts, and 128, its default, is a whole tiny prompt
# vLLM has one more level in the vision tower of Gemma 3, as transformers had before 5.19.
_VISION_TOWER = {re.compile(r"^((?:model\.)?vision_tower\.)(?!vision_model\.)"): r"\1vision_model."}


@cache
def prepare() -> Any:
    """Make vLLM's environment importable; to be called before anything else is imported that is installed there.

    PyPI's torchvision is built for CUDA. Beside a CPU build of torch its import, and with it that of most of
    transformers, fails unless two of its operators are declared; nothing calls them.

    Raises:
        ConfigError: It is the environment for CUDA, and there is no GPU.
    """
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)
    logging.getLogger("vllm").setLevel(logging.ERROR)
    import torch

    if torch.version.cuda is not None:
        if not torch.cuda.is_available():
            raise ConfigError(
                "machine.vllm: cuda, but torch finds no GPU here. Set it to cpu, or run where there is one."
            )
        return None
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # it would compile one small function for ten seconds
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library  # which the cache keeps alive, and with it the declarations


class Core:
    """A checkpoint opened in vLLM, after `prepare`.

    Args:
        checkpoint: Its folder.
        settings: The backbone's config entry.
        encoder: Encodes its prompts.
        engine: `max_num_seqs`, `gpu_memory_utilization`.
    """

    def __init__(self, checkpoint: Path, settings: Mapping[str, Any], encoder: Encoder, engine: Mapping[str, Any]):
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own and those of its compiled classes, at import
            from transformers import AutoConfig
            from vllm.engine.arg_utils import EngineArgs
            from vllm.usage.usage_lib import UsageContext
            from vllm.v1.engine.llm_engine import LLMEngine

            _register_model(checkpoint, encoder.max_prompt_tokens)
            positions = AutoConfig.from_pretrained(checkpoint).get_text_config().max_position_embeddings
            self.max_tokens = min(encoder.max_prompt_tokens + _ROOM_FOR_COMPLETIONS, positions)
            arguments = EngineArgs(
                model=str(checkpoint),
                dtype=settings["dtype"],
                max_model_len=self.max_tokens,
                max_num_seqs=engine["max_num_seqs"],
                enable_prefix_caching=True,
                logprobs_mode="raw_logprobs",  # before forbidden ids, temperature and top-p
                generation_config="vllm",  # and not the checkpoint's, which may hold a temperature
                seed=0,  # of nothing: each request brings its own
                limit_mm_per_prompt={"image": 1},
                mm_processor_cache_gb=0,
                mm_device_do_normalize=False,  # the pixels are normalized already
                skip_mm_profiling=True,  # it would need vLLM's own image processor
                disable_log_stats=True,
                use_tqdm_on_load=False,
                **(_on_gpu(engine) if torch.cuda.is_available() else _on_cpu()),
            )
            self._engine = LLMEngine.from_engine_args(arguments, usage_context=UsageContext.LLM_CLASS)
        self._in_flight = 2 * engine["max_num_seqs"]
        self._encoder = encoder

    def given(self, prompt: Prompt, begun: Sequence[int]) -> dict[str, Any]:
        """Return what vLLM is given: ids of the prompt and of a begun completion, pixels, where the image's ids are."""
        import torch
        from transformers import BatchFeature
        from vllm.inputs import mm_input
        from vllm.multimodal.inputs import MultiModalKwargsItems, PlaceholderRange

        at = [i for i, token in enumerate(prompt.token_ids) if token == self._encoder.image_token_id]
        # Into how many pieces an image is cut, which vLLM wants to know of Gemma 3: images are never cut.
        pixels = BatchFeature({**prompt.image, "num_patches": torch.tensor([1])})
        fields = self._engine.renderer.get_mm_processor()._get_mm_fields_config(pixels, {})
        return mm_input(
            prompt_token_ids=[*prompt.token_ids, *begun],
            mm_kwargs=MultiModalKwargsItems.from_hf_inputs(pixels, fields),
            mm_hashes={"image": [prompt.image_sha256]},
            mm_placeholders={"image": [PlaceholderRange(offset=at[0], length=len(at))]},
        )

    def run(self, asked: Iterable[tuple[str, dict[str, Any], dict[str, Any]]]) -> Iterator[tuple[int, Any]]:
        """Yield (position in `asked`, vLLM's output) of every request as it finishes.

        Args:
            asked: (name for errors, what `given` returned, sampling parameters), taken as they are needed: pixels of
                a whole data set would not fit into memory.

        Raises:
            DataError: A prompt and its completion are longer than `max_tokens`.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        waiting, running = enumerate(asked), 0
        following = next(waiting, None)
        while following or running:
            while following and running < self._in_flight:
                position, (name, given, parameters) = following
                length = len(given["prompt_token_ids"]) + parameters["max_tokens"]
                if length > self.max_tokens:
                    raise DataError(
                        f"{name}: prompt and completion may have {length} tokens, but the engine was opened for "
                        f"{self.max_tokens}. Lower the completion's budget or the backbone's max_pixels."
                    )
                last_only = RequestOutputKind.FINAL_ONLY
                wanted = SamplingParams(**parameters, detokenize=False, output_kind=last_only, ignore_eos=True)
                self._engine.add_request(str(position), given, wanted)
                running += wanted.n
                following = next(waiting, None)
            for output in self._engine.step():
                if output.finished:
                    running -= len(output.outputs)
                    yield int(output.request_id), output


def _on_gpu(engine: Mapping[str, Any]) -> dict[str, Any]:
    return {name: engine[name] for name in ("gpu_memory_utilization",) if name in engine}


def _on_cpu() -> dict[str, Any]:
    return {
        "enforce_eager": True,  # compiling takes longer than tiny models run
        "kv_cache_memory_bytes": _CPU_CACHE_BYTES,
        "block_size": _CPU_BLOCK,
        # A prompt that is read in parts is sampled too early, and then the CPU's generators cannot be set back.
        "enable_chunked_prefill": False,
    }


def _register_model(checkpoint: Path, max_image_tokens: int) -> None:
    """Put a class of the checkpoint's architecture in place of vLLM's, which it would inspect in another process."""
    from vllm.model_executor.models.registry import ModelRegistry
    from vllm.model_executor.models.utils import WeightsMapper
    from vllm.multimodal import MULTIMODAL_REGISTRY

    [architecture] = json.loads((checkpoint / "config.json").read_text())["architectures"]
    known = ModelRegistry.models[architecture].load_model_cls()
    processing = known._processor_factory

    class Info(processing.info):
        """What vLLM asks about images before it has seen one."""

        def get_supported_mm_limits(self) -> Mapping[str, int]:
            return {"image": 1}

        def get_mm_max_tokens_per_item(self, seq_len: int, mm_counts: Mapping[str, int]) -> Mapping[str, int]:
            return {"image": max_image_tokens}

    class Model(known):
        """The architecture, whoever wrote its weights."""

        hf_to_vllm_mapper = WeightsMapper(orig_to_new_regex=_VISION_TOWER) | known.hf_to_vllm_mapper

    register = MULTIMODAL_REGISTRY.register_processor
    register(processing.processor, info=Info, dummy_inputs=processing.dummy_inputs)(Model)
    ModelRegistry.register_model(architecture, Model)
