"""A checkpoint is opened only if its files hold every weight of its architecture, and nothing else in their place.

transformers draws a missing weight at random, ignores a weight that it does not know, and goes on with a warning. Here
its own loading report decides: older names of the same weights are accepted because transformers accepts them, and
everything else is refused by name. The report is made from the headers of the weight files; no weight is read for it.
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.errors import ArtifactError
from dualread.models.backbones._checkpoint_files import AGAIN, opened, read_config, some, weight_files

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def load(model_class: Any, checkpoint: Path, settings: Mapping[str, Any]) -> "PreTrainedModel":
    """Load a `model_class` in `settings["dtype"]` with `settings["attention"]`, in evaluation mode.

    Raises:
        ArtifactError: See `check_names` and `check_values`; or nothing says which token ends a turn.
    """
    from transformers.utils import logging as talk

    check_names(model_class, checkpoint)
    talk.disable_progress_bar()  # a bar per checkpoint says nothing in a log
    model = model_class.from_pretrained(
        checkpoint, dtype=settings["dtype"], attn_implementation=settings["attention"]
    ).eval()
    _refuse_non_finite(checkpoint, model.named_parameters())
    if model.generation_config.eos_token_id is None:
        raise ArtifactError(
            f"{checkpoint}: no eos_token_id in generation_config.json. Expected the ids that end a turn; without "
            "them no answer ends. Copy the file from the model that this one was trained from."
        )
    return model


def load_tokenizer(model_class: Any, checkpoint: Path, image_token: str) -> "PreTrainedTokenizerBase":
    """Load the tokenizer, which pads on the left.

    It may have fewer tokens than the model has embeddings, because those are padded to a round number.

    Args:
        model_class: The class of the model that reads its tokens.
        checkpoint: The folder.
        image_token: The placeholder that image states are read at.

    Raises:
        ArtifactError: It cannot be read, has no chat template, has a token without an embedding, or another image token
            than config.json says.
    """
    from transformers import AutoTokenizer

    config = read_config(checkpoint, model_class.config_class)
    if not (checkpoint / "tokenizer_config.json").is_file():  # transformers would make up special tokens
        raise ArtifactError(f"{checkpoint}: no file tokenizer_config.json. Expected the model's own tokenizer. {AGAIN}")
    try:
        tokenizer = AutoTokenizer.from_pretrained(checkpoint, padding_side="left")
    except Exception as error:  # tokenizers raises nothing narrower
        reason = f"{type(error).__name__}: {error}"
        raise ArtifactError(f"{checkpoint}: the tokenizer cannot be read ({reason}). {AGAIN}") from error
    vocabulary, n_embeddings = tokenizer.get_vocab(), config.get_text_config().vocab_size
    problem = None
    if (largest := max(vocabulary.values())) >= n_embeddings:
        problem = (
            f"the tokenizer has ids up to {largest}, expected less than the {n_embeddings} embeddings (vocab_size)."
        )
    elif (found := vocabulary.get(image_token)) != config.image_token_id:
        problem = f"the tokenizer's id of {image_token} is {found}, expected {config.image_token_id} as in config.json."
    elif tokenizer.chat_template is None:
        problem = "no chat template. Expected chat_template.jinja, or `chat_template` in tokenizer_config.json."
    if problem:
        raise ArtifactError(f"{checkpoint}: {problem} Save the tokenizer that the model was trained with beside it.")
    return tokenizer


def check_names(model_class: Any, checkpoint: Path) -> None:
    """Refuse a folder whose tensors are not those of a `model_class`, each under its name and of its shape.

    Raises:
        ArtifactError: See `read_config`, `weight_files` and `opened`; or tensors are missing, unknown, or of another
            shape than config.json says.
    """
    model, report = _loading_report(model_class, checkpoint)
    found = {
        # Of two tied weights that are both missing, transformers names both; only one is ever stored.
        "missing": sorted(report["missing_keys"] - set(model.all_tied_weights_keys)),
        "unknown to this model": sorted(report["unexpected_keys"]),
        "of another shape than config.json says": [
            f"{name} (shape {list(shape)}, expected {list(expected)})"
            for name, shape, expected in sorted(report["mismatched_keys"])
        ],
    }
    if problems := [f"{len(names)} tensors are {what}: {some(names)}." for what, names in found.items() if names]:
        raise ArtifactError(
            f"{checkpoint}: not the weights of the {model_class.__name__} in config.json. {' '.join(problems)} Save "
            "the whole model again with `save_pretrained`, or download it again with its own config.json."
        )


def check_values(checkpoint: Path) -> None:
    """Read every weight, one at a time.

    Raises:
        ArtifactError: A weight is NaN or infinite.
    """
    for tensors in opened(weight_files(checkpoint)):
        _refuse_non_finite(checkpoint, ((name, tensors.get_tensor(name)) for name in list(tensors.keys())))


def _loading_report(model_class: Any, checkpoint: Path) -> tuple[Any, dict[str, Any]]:
    """Return (a model without values, what transformers says about the names and shapes in the files)."""
    import torch
    from transformers.utils import logging as talk

    config = read_config(checkpoint, model_class.config_class)
    without_values = {
        name: torch.empty(tensors.get_slice(name).get_shape(), device="meta")
        for tensors in opened(weight_files(checkpoint))
        for name in list(tensors.keys())
    }
    verbosity, had_bar = talk.get_verbosity(), talk.is_progress_bar_enabled()
    talk.set_verbosity(logging.CRITICAL)  # it would print the report with advice that is wrong here
    talk.disable_progress_bar()
    try:
        return model_class.from_pretrained(
            None,
            config=config,
            state_dict=without_values,
            device_map="meta",
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except Exception as error:  # sizes that do not fit each other fail anywhere in the model
        raise ArtifactError(
            f"{checkpoint / 'config.json'}: no {model_class.__name__} can be built from it ({type(error).__name__}: "
            f"{error}). Correct its sizes. {AGAIN}"
        ) from error
    finally:
        talk.set_verbosity(verbosity)
        if had_bar:
            talk.enable_progress_bar()


def _refuse_non_finite(checkpoint: Path, tensors: Iterable[tuple[str, "Tensor"]]) -> None:
    # NaN passes through a minimum; this reads each weight once and copies none.
    names = [
        name
        for name, tensor in tensors
        if tensor.is_floating_point() and not all(value.isfinite() for value in tensor.detach().aminmax())
    ]
    if names:
        raise ArtifactError(
            f"{checkpoint}: {len(names)} tensors hold NaN or infinite values: {some(names)}. Expected finite weights. "
            "Take a checkpoint from before its training diverged; a conversion to float16 can do this too."
        )
