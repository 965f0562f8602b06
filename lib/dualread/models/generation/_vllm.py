"""vLLM inside this process: opens a checkpoint, and passes on prompts and pixels as `backbones.encode` makes them.

All code that depends on the internals of vLLM (0.32) is in this module and in `_vllm_states`. It departs from vLLM's
defaults in three ways:

- The engine's core runs in this process rather than in a subprocess. The contents of a batch then do not depend on the
  timing of messages, and changes to vLLM's classes have to be made in one process only.
- vLLM never sees an image. It gets the expanded prompt, the pixel tensors and the position of the image tokens. Its own
  image processors are not used: they resample differently, and need a video processor that not every checkpoint has.
- Weights are found both under the names that transformers 5.19 and later save, and under the older ones.
"""

# vLLM is installed in a separate environment, which is not needed to check types.
# pyright: reportMissingImports=false

import json
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from dualread.errors import ConfigError, DataError, DualReadError
from dualread.models.actor import SeededDecoding, drawn_with
from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.generation._vllm_states import AnswerStates, image_spans
from dualread.schema.base import MOST_IMAGES, Wire

T = TypeVar("T")

# vLLM 0.32 has two model runners. Without this variable it takes the second one where Triton works, so on CUDA, and the
# first one in the build for CPUs. By its source, each knows all that is used here: raw log-probabilities, those of
# chosen ids, biases of -inf, a seed per request, hashes of images. But they draw other samples from the same seed. Keys
# do not contain the runner, so it has to be the same everywhere: the first one, on which the tests run. FlashInfer's
# sampler is for CUDA alone, and knows no seeds: vLLM does without it where a request has one.
_AS_ON_CPUS = {"VLLM_USE_V2_MODEL_RUNNER": "0", "VLLM_USE_FLASHINFER_SAMPLER": "0"}
_VARIABLES = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",  # it would send usage statistics over the network
    "VLLM_CONFIGURE_LOGGING": "0",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
_ROOM_FOR_COMPLETIONS = 1024  # tokens after the longest prompt; a larger number only costs memory
_LEAST_CACHE = 2**29  # bytes of keys and values on a CPU, where vLLM takes most of the machine's memory by default
_ON_CPU: dict[str, Any] = {
    "enforce_eager": True,  # compiling would take longer than running tiny models does
    "block_size": 32,  # tokens; prompts share whole blocks only, and a tiny prompt fits into the default of 128
    # With chunked prefill, vLLM samples before a prompt is read completely, and cannot reset a CPU's generators.
    "enable_chunked_prefill": False,
}
# vLLM's vision tower of Gemma 3 has one more level of names, as that of transformers had before 5.19.
_VISION_TOWER = {re.compile(r"^((?:model\.)?vision_tower\.)(?!vision_model\.)"): r"\1vision_model."}


@cache
def prepare() -> Any:
    """Prepare this process for vLLM; has to be called before any other package of vLLM's environment is imported.

    The torchvision on PyPI is built for CUDA. With a CPU build of torch, importing it (and with it most of
    transformers) fails unless two of its operators are declared. They are declared here; nothing calls them.

    Returns:
        The declarations, which have to stay alive, or None in the environment for CUDA.

    Raises:
        ConfigError: The environment is the one for CUDA, and there is no GPU.
    """
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)
    os.environ.update(_AS_ON_CPUS)
    logging.getLogger("vllm").setLevel(logging.ERROR)
    import torch

    if torch.version.cuda is not None:
        if not torch.cuda.is_available():
            raise ConfigError(
                "machine.vllm is cuda, but torch finds no GPU on this machine. Expected at least one. Set it to cpu, or"
                " run on a machine with a GPU."
            )
        return None
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # compiling one small function would take ten seconds
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library  # the cache keeps it alive; without it the declarations would be withdrawn


class Core:
    """A checkpoint opened in vLLM, whose prompts `encoder` encodes; `prepare` has to be called first.

    A prompt and its completion have at most `max_tokens` together; `in_flight` completions are begun before others have
    ended: twice as many as vLLM makes at once.
    """

    def __init__(
        self, checkpoint: Path, settings: Wire, encoder: Encoder, engine: Wire, most_images: int = MOST_IMAGES
    ):
        """`engine` has `max_num_seqs`, and perhaps `gpu_memory_utilization`, `eager` and `sleep`."""
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # vLLM and its compiled classes warn at import
            from transformers import AutoConfig
            from vllm.engine.arg_utils import EngineArgs
            from vllm.usage.usage_lib import UsageContext
            from vllm.v1.engine.llm_engine import LLMEngine

            _register_model(checkpoint, settings["max_prompt_tokens"], most_images)
            config = AutoConfig.from_pretrained(checkpoint, trust_remote_code=False)
            self.n_layers = config.get_text_config().num_hidden_layers
            positions = config.get_text_config().max_position_embeddings
            self.max_tokens = min(settings["max_prompt_tokens"] + _ROOM_FOR_COMPLETIONS, positions)
            on_gpu = {name: value for name, value in engine.items() if name == "gpu_memory_utilization"}
            on_gpu |= {"enable_sleep_mode": True} if engine.get("sleep") else {}
            on_gpu |= {"enforce_eager": True} if engine.get("eager") else {}
            arguments = EngineArgs(
                model=str(checkpoint),
                trust_remote_code=False,
                dtype=settings["dtype"],
                max_model_len=self.max_tokens,
                max_num_seqs=engine["max_num_seqs"],
                enable_prefix_caching=True,
                logprobs_mode="raw_logprobs",  # before ids are forbidden and temperature and top-p applied
                generation_config="vllm",  # not the checkpoint's, which may set a temperature
                seed=0,  # without effect: each request has its own seed
                limit_mm_per_prompt={"image": most_images},
                mm_processor_cache_gb=0,
                mm_device_do_normalize=False,  # the pixels are already normalized
                skip_mm_profiling=True,  # it would need vLLM's own image processor
                disable_log_stats=True,
                use_tqdm_on_load=False,
                **(on_gpu if torch.cuda.is_available() else _ON_CPU | self._cache_on_cpu(config, settings["dtype"])),
                # Processes that train together are connected when it starts, but each samples alone.
                distributed_executor_backend="external_launcher"
                if int(os.environ.get("WORLD_SIZE", "1")) > 1
                else None,
            )
            self._engine = LLMEngine.from_engine_args(arguments, usage_context=UsageContext.LLM_CLASS)
        self._sleeps = bool(engine.get("sleep")) and torch.cuda.is_available()
        self.in_flight = 2 * engine["max_num_seqs"]
        self.encoder = encoder

    def _cache_on_cpu(self, config: Any, dtype: str) -> dict[str, int]:
        """Return the room for keys and values, which has to suffice for at least two of the longest requests."""
        import torch

        text = config.get_text_config()
        heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        of_token = 2 * self.n_layers * heads * width * getattr(torch, dtype).itemsize
        return {"kv_cache_memory_bytes": max(_LEAST_CACHE, 2 * self.max_tokens * of_token)}

    def given(self, prompt: EncodedPrompt) -> dict[str, Any]:
        """Return vLLM's input: the ids of `prompt`; of an image, the pixels, and where its tokens are."""
        import torch
        from transformers import BatchFeature
        from vllm.inputs import mm_input, tokens_input
        from vllm.multimodal.inputs import MultiModalKwargsItems, PlaceholderRange

        spans, hashes = image_spans(prompt, self.encoder.image_token_id), prompt.image_sha256.split()
        ids = list(prompt.token_ids)
        if not hashes:
            return tokens_input(ids)
        # For Gemma 3, vLLM asks into how many crops an image is divided. Images are never cropped here.
        pixels = BatchFeature({**prompt.image, "num_patches": torch.tensor([1] * len(hashes))})
        fields = self._engine.renderer.get_mm_processor()._get_mm_fields_config(pixels, {})
        return mm_input(
            prompt_token_ids=ids,
            mm_kwargs=MultiModalKwargsItems.from_hf_inputs(pixels, fields),
            mm_hashes={"image": hashes},
            mm_placeholders={"image": [PlaceholderRange(offset=at, length=n) for at, n in spans]},
        )

    def add(self, name: str, prompt: dict[str, Any], parameters: Mapping[str, Any], *, at_end: bool = False) -> str:
        """Begin to answer a request, one completion of a prompt as `given` makes it; return the engine's name for it.

        If `at_end`, all that is said comes at its end; otherwise, what is said at a step comes with that step.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        kind = RequestOutputKind.FINAL_ONLY if at_end else RequestOutputKind.DELTA
        wanted = SamplingParams(**parameters, detokenize=False, output_kind=kind, ignore_eos=True)
        return self._engine.add_request(name, prompt, wanted)

    @property
    def n_open(self) -> int:
        """Number of requests that the engine has not answered."""
        return self._engine.get_num_unfinished_requests()

    def abort(self, names: Sequence[str]) -> None:
        """Forget requests by the names with which they were added."""
        self._engine.abort_request(list(names))

    def step(self) -> list[Any]:
        """Return what vLLM says at one step: its outputs, whose request_id is the name of a request."""
        return self._engine.step()

    @property
    def _runner(self) -> Any:
        worker = self._engine.model_executor.driver_worker
        return getattr(worker, "worker", worker).model_runner

    @cached_property
    def states(self) -> AnswerStates:
        """What keeps the states of requests that it is told to, from now on."""
        return AnswerStates(self._runner, self.encoder.image_token_id)

    def logits(self, states: Any) -> Any:
        """Return the logits [..., V] of final-layer states [..., D], in float32 as a replay computes them."""
        import torch
        from vllm.model_executor.layers.logits_processor import LogitsProcessor

        model = self._runner.model
        heads = [module for module in model.modules() if isinstance(module, LogitsProcessor)]
        before = [head.head_dtype for head in heads]
        try:
            for head in heads:
                head.head_dtype = torch.float32
            return model.compute_logits(states)
        finally:
            for head, dtype in zip(heads, before, strict=True):
                head.head_dtype = dtype

    def run(self, added: Iterable[None], step: Callable[[], Iterable[T]]) -> Iterator[T]:
        """Yield what is said at all steps of some requests, until all are answered; `step` is what a step is, and says.

        `added` adds one request whenever it is asked for the next: as needed, because the pixels of a whole data set
        would not fit into memory.
        """
        for _ in added:
            while self.n_open >= self.in_flight:
                yield from step()
        while self.n_open:
            yield from step()

    def parameters(self, name: str) -> Any:
        """Return the sampling parameters of a request, by the engine's name for it, as vLLM has them: a copy."""
        return self._engine.engine_core.engine_core.scheduler.requests[name].sampling_params

    def check_length(self, name: str, length: int) -> None:
        """Refuse a request that may have `length` tokens with its completion, if these are more than `max_tokens`."""
        if length > self.max_tokens:
            raise DataError(
                f"{name}: prompt and completion may have {length} tokens, but the engine was opened for "
                f"{self.max_tokens}. Lower max_completion_tokens, or the backbone's max_pixels."
            )

    def load(self, weights: Iterable[tuple[str, Any]]) -> None:
        """Replace all weights by (name, tensor), named as in a checkpoint; forget what was computed with the old ones.

        The engine may be asleep, and is awake afterwards. Tied weights have to be given under both names, because vLLM
        keeps a packed copy of the head on CPUs. What is not given keeps its old value, without a warning.
        """
        if self._sleeps:
            self._engine.wake_up(["weights"])
        self._engine.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(weights)})
        if self._sleeps:
            self._engine.wake_up(["kv_cache"])
        # By itself, vLLM forgets only its encoder's outputs, and not that it had them: it would look for them in vain.
        self._engine.reset_mm_cache()
        self._engine.reset_encoder_cache()
        if not self._engine.reset_prefix_cache():
            raise DualReadError("vLLM keeps prefixes of old weights, because requests are running. Expected none.")

    def sleep(self) -> None:
        """Give the GPU's memory back until the next `load`, if the engine was opened with `sleep`."""
        if self._sleeps:
            self._engine.sleep(level=2)  # weights are not kept, because `load` brings them all

    def close(self) -> None:
        """End the engine. vLLM also disconnects this process from others; without this call, at any time after it."""
        self._engine.engine_core.shutdown()


def sampling(decoding: SeededDecoding, seed: int, encoder: Encoder) -> dict[str, Any]:
    """Return the sampling parameters of a request; vLLM seeds its sample k with `seed` + k."""
    return {
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "n": decoding.n_samples,
        "max_tokens": decoding.max_completion_tokens,
        "seed": seed,
        "logprobs": 0,  # only that of the chosen id
        "logit_bias": dict.fromkeys(encoder.forbidden, -float("inf")),
        "stop_token_ids": sorted(encoder.stop),
    }


# What of vLLM's sampling parameters is read back, and what changes nothing of what is drawn.
_READ_BACK = {"temperature", "top_p", "max_tokens", "seed", "stop_token_ids", "logit_bias"}
_HARMLESS = {"n", "logprobs", "ignore_eos", "detokenize", "output_kind", "output_text_buffer_length", "skip_clone"}
_HARMLESS |= {"skip_reading_prefix_cache", "_eos_token_id", "_all_stop_token_ids"}


def read_back(parameters: Any) -> dict[str, Any]:
    """Return by what vLLM draws a completion, as `actor.drawn_with` says it.

    `parameters` are those of one request as vLLM has them. What is not as by default has vLLM's name.
    """
    from vllm import SamplingParams

    default, bias = SamplingParams(), dict(parameters.logit_bias or {})
    forbidden = [token for token, bias_of_token in bias.items() if bias_of_token == -float("inf")]
    names = set(parameters.__struct_fields__) - _READ_BACK - _HARMLESS
    settings = {name: (getattr(parameters, name) or None, getattr(default, name) or None) for name in names}
    others = {name: value for name, (value, by_default) in settings.items() if value != by_default}
    ends = set(parameters.stop_token_ids or ()) | (set() if parameters.ignore_eos else {parameters.eos_token_id})
    drawn = drawn_with(
        temperature=parameters.temperature,
        top_p=parameters.top_p,
        max_completion_tokens=parameters.max_tokens,
        seed=parameters.seed,
        stop=ends,
        forbidden=forbidden,
    )
    return drawn | others | ({"logit_bias": bias} if len(bias) > len(forbidden) else {})


def _register_model(checkpoint: Path, max_image_tokens: int, most_images: int) -> None:
    """Replace vLLM's class for the architecture by a subclass, because vLLM would inspect its own in a subprocess."""
    from vllm.model_executor.models.registry import ModelRegistry
    from vllm.model_executor.models.utils import WeightsMapper
    from vllm.multimodal import MULTIMODAL_REGISTRY

    [architecture] = json.loads((checkpoint / "config.json").read_text())["architectures"]
    known = ModelRegistry.models[architecture].load_model_cls()
    processing = known._processor_factory

    class Info(processing.info):
        """The limits that vLLM asks for before the first image."""

        def get_supported_mm_limits(self) -> Mapping[str, int]:
            return {"image": most_images}

        def get_mm_max_tokens_per_item(self, seq_len: int, mm_counts: Mapping[str, int]) -> Mapping[str, int]:
            return {"image": max_image_tokens}

    class Model(known):
        """The architecture, with the weight names of every version of transformers."""

        hf_to_vllm_mapper = WeightsMapper(orig_to_new_regex=_VISION_TOWER) | known.hf_to_vllm_mapper

    register = MULTIMODAL_REGISTRY.register_processor
    register(processing.processor, info=Info, dummy_inputs=processing.dummy_inputs)(Model)
    ModelRegistry.register_model(architecture, Model)
