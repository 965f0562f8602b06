"""Opens checkpoints, and refuses them unless their files hold exactly the weights of their architecture.

transformers initializes missing weights at random, ignores unknown weights, and only warns about both. Here its loading
report decides: older names of weights are accepted because transformers accepts them, and all other differences are
errors that name the weights. The report needs only the headers of the weight files; no weights are read for it.
"""

import copy
import importlib
import logging
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.errors import ArtifactError, ConfigError, in_a_line
from dualread.grading.answers import character_spans, tokens_within
from dualread.models.backbones._checkpoint_files import (
    AGAIN,
    opened,
    read_config,
    read_json,
    readable,
    shortened,
    weight_files,
)
from dualread.models.backbones.encode import Encoder
from dualread.models.backbones.parts import attend_without_cudnn
from dualread.models.backbones.processor import load_processor
from dualread.models.backbones.tokenizer import forget_calls
from dualread.models.replay.positions import Positions, locate
from dualread.schema.base import Wire
from dualread.schema.recorded import USUAL, Facts

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

# Other formats of the weights, and documentation; not copied from the hub or from a folder.
LEFT_OUT = ("*.bin", "*.pt", "*.pth", "*.gguf", "*.md", ".git*", ".cache")
_OF_THE_MODEL = ("*.safetensors", "*.safetensors.index.json", "config.json", "generation_config.json")


def download(repository: str, revision: str | None, *, left_out: Sequence[str] = LEFT_OUT) -> Path:
    """Download the repository "owner/name" of the hub, or find it among those downloaded before; return its folder.

    `revision` is a commit, tag or branch, or None for the newest commit; `left_out` are patterns of files.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repository, revision=revision, ignore_patterns=list(left_out)))
    except Exception as error:  # the hub raises errors of several packages
        raise ArtifactError(
            f"{repository}: not on this machine, and cannot be downloaded from the hub ({in_a_line(error)}). Check"
            " the name, the revision and the connection."
        ) from error


def copy_processor(checkpoint: Path, out: Path) -> None:
    """Copy the files of tokenizer, chat template and image processor from one folder of a checkpoint to another.

    They are copied as they came, but for what a tokenizer keeps of calls (`tokenizer.forget_calls`). Saved again by
    transformers, they would name the classes that were at hand here.
    """
    shutil.copytree(checkpoint, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*LEFT_OUT, *_OF_THE_MODEL))
    forget_calls(out)


def load(checkpoint: Path, settings: Wire, *, without_weights: bool = False) -> "PreTrainedModel":
    """Load a model with the configured dtype, attention and quantization, in evaluation mode.

    It has to be whole (`check_names`), of finite weights, and say which token of its vocabulary ends a turn. With
    `without_weights`, no tensor is read: weights and buffers are on the meta device.
    """
    attend_without_cudnn()
    model_class = check_names(checkpoint)
    if (file := checkpoint / "generation_config.json").exists():
        read_json(file)  # transformers would do without a damaged one
    open_model = model_class.from_pretrained
    if "quantization" in settings:  # the spec names the module, so that only these results depend on its package
        module = importlib.import_module(f"dualread.{settings['quantization']['module']}")
        open_model = partial(module.open_model, model_class, settings=settings)
    try:
        how = {"dtype": settings["dtype"], "attn_implementation": settings["attention"]}
        where = {"device_map": "meta"} if without_weights else {}
        model = open_model(checkpoint, **how, **where, trust_remote_code=False).eval()
    except (ValueError, ImportError) as error:
        raise ConfigError(
            f"attention: {settings['attention']!r}: {model_class.__name__} cannot be opened with it"
            f" ({in_a_line(error).partition('. ')[0]}). Expected an attention that this model has. Try eager."
        ) from error
    except (OSError, RecursionError, TypeError, KeyError, AttributeError) as error:  # such as generation_config.json
        raise ArtifactError(f"{checkpoint}: cannot be opened ({in_a_line(error)}). {AGAIN}") from error
    if not without_weights:
        _refuse_non_finite(checkpoint, model.named_parameters())
    ends, n_tokens = model.generation_config.eos_token_id, model.config.get_text_config().vocab_size
    if not set(ends if isinstance(ends, list) else [ends]) <= set(range(n_tokens)):
        raise ArtifactError(
            f"{checkpoint}: eos_token_id in generation_config.json is {ends}, expected ids from 0 to {n_tokens - 1}, of"
            " which one ends a turn. Without it, no answer would end. Copy the file from the model that this one was"
            " trained from."
        )
    return model


def check(checkpoint: Path, settings: Wire) -> None:
    """Refuse a folder that is not a complete checkpoint; no weights are read."""
    check_names(checkpoint)
    load_processor(checkpoint, settings)


def check_names(checkpoint: Path) -> Any:
    """Return the model's class in transformers; refuse tensors that differ from config.json in name or shape."""
    model, report = _loading_report(checkpoint)
    wrong = {
        # If two tied weights are missing, transformers lists both, although only one of them is ever stored.
        "missing": sorted(report["missing_keys"] - set(model.all_tied_weights_keys)),
        "unknown to this model": sorted(report["unexpected_keys"]),
        "of a shape that differs from config.json": [
            f"{name} (shape {list(shape)}, expected {list(expected)})"
            for name, shape, expected in sorted(report["mismatched_keys"])
        ],
    }
    if problems := [f"{len(names)} tensors are {what}: {shortened(names)}." for what, names in wrong.items() if names]:
        raise ArtifactError(
            f"{checkpoint}: not the weights of the {type(model).__name__} in config.json. {' '.join(problems)} "
            "Save the complete model again with `save_pretrained`, or download it again with its own config.json."
        )
    return type(model)


def check_values(checkpoint: Path) -> None:
    """Read all weights, one tensor at a time, and refuse those that are not finite."""
    for tensors in opened(weight_files(checkpoint)):
        _refuse_non_finite(checkpoint, ((name, tensors.get_tensor(name)) for name in list(tensors.keys())))


def _loading_report(checkpoint: Path) -> tuple[Any, dict[str, Any]]:
    """Return (a model without values, transformers' report on the names and shapes in the files)."""
    import torch
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    from transformers.utils import logging as talk

    config = read_config(checkpoint)
    model_class: Any = MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)]
    without_values = {
        name: torch.empty(tensors.get_slice(name).get_shape(), device="meta")
        for tensors in opened(weight_files(checkpoint))
        for name in list(tensors.keys())
    }
    verbosity = talk.get_verbosity()
    talk.set_verbosity(logging.CRITICAL)  # it would print the report with advice that does not apply here
    talk.disable_progress_bar()  # it only clutters a log
    what = f"{checkpoint / 'config.json'}: no {model_class.__name__} can be built from it"
    try:
        with readable(what, "sizes that fit each other"):  # others cause errors anywhere in the model
            return model_class.from_pretrained(
                None,
                config=config,
                state_dict=without_values,
                device_map="meta",
                ignore_mismatched_sizes=True,
                output_loading_info=True,
                trust_remote_code=False,
            )
    finally:
        talk.set_verbosity(verbosity)


def _refuse_non_finite(checkpoint: Path, tensors: Iterable[tuple[str, "Tensor"]]) -> None:
    # Minimum and maximum of a tensor with NaN are NaN. They are computed in one pass, without a copy of the tensor.
    names = [
        name
        for name, tensor in tensors
        if tensor.is_floating_point() and not all(value.isfinite() for value in tensor.detach().aminmax())
    ]
    if names:
        raise ArtifactError(
            f"{checkpoint}: {len(names)} tensors hold NaN or infinite values: {shortened(names)}. Expected finite"
            " weights. Use a checkpoint from before its training diverged, or one that was not converted to float16."
        )


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A checkpoint in memory, on the GPU if there is one: its model in evaluation mode, and what encodes its prompts.

    `thinking_ends` is what ends the thinking of its completions before an answer; None where they do not think.
    """

    model: Any
    encoder: Encoder
    thinking_ends: str | None = None

    def locate(self, completion: Sequence[int]) -> Positions:
        """Return the positions that are read in a completion."""
        return locate(completion, self.encoder.decode, self.encoder.stop, self.thinking_ends)

    def locate_claims(self, completion: Sequence[int], claims: Sequence[tuple[int, int]]) -> list[Positions]:
        """Return the positions to read of each claim of a completion; claims are (start, end) in characters."""
        report, (_, spans) = self.locate(completion), character_spans(completion, self.encoder.decode)
        return [report.of_claim(tokens_within(spans, start, end)) for start, end in claims]

    @classmethod
    def of(cls, model: Any, processor: Any, settings: Wire, facts: Facts = USUAL) -> "Opened":
        """Return a model that is in memory, and its processor, as an opened checkpoint."""
        ends = model.generation_config.eos_token_id
        return cls(model=model, encoder=Encoder(processor, model.config, settings, facts, ends))

    def with_facts(self, facts: Facts) -> "Opened":
        """Return the same checkpoint, whose rows are read as `facts` say."""
        encoder = copy.copy(self.encoder)
        encoder.facts = facts
        return replace(self, encoder=encoder)


def open_checkpoint(checkpoint: Path, settings: Wire, facts: Facts = USUAL) -> Opened:
    """Load `checkpoint` for generation or replay."""
    import torch

    processor = load_processor(checkpoint, settings)
    model: Any = load(checkpoint, settings)
    if "quantization" not in settings:  # such a model is where it was quantized
        model = model.to("cuda" if torch.cuda.is_available() else "cpu")
    return Opened.of(model, processor, settings, facts)
