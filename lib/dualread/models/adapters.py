"""LoRA adapters of peft, merged into the weights of their base: what comes after opens one whole checkpoint.

peft and transformers only warn about tensors of an adapter that they cannot place, and then answer as the base model.
Here every tensor of the adapter's file has to have its place, and every module that the adapter names has to have its
tensors. Names of older versions of transformers are translated by its own rules for weights.
"""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.errors import ArtifactError, in_a_line
from dualread.models.backbones._checkpoint_files import AGAIN, opened
from dualread.models.backbones.checkpoint import copy_processor, load
from dualread.schema.base import Wire

if TYPE_CHECKING:
    from torch import Tensor

CONFIG = "adapter_config.json"
_WEIGHTS = "adapter_model.safetensors"
_PREFIX = "base_model.model."
# What the adapter holds of a module, after the module's name.
_TENSOR = re.compile(r"\.((lora_|base_layer\.|modules_to_save\.).*|\w+)$")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def is_adapter(folder: Path) -> bool:
    """Return whether a folder holds an adapter."""
    return (folder / CONFIG).is_file()


def merge(adapter: Path, base: Path, out: Path, settings: Wire, *, base_name: str | None = None) -> int:
    """Write the checkpoint of a base with an adapter's changes in its weights; return how many modules they change.

    Sums are computed in float32 and stored in the dtype in which the settings open the model. Tokenizer, chat template
    and image processor are those of the base; `base_name` is its repository of the hub, if it is from there. What is no
    complete LoRA adapter of this base, or changes nothing, is refused.
    """
    import torch
    from peft import PeftModel

    config = _config(adapter)
    named = config.base_model_name_or_path
    if base_name is not None and _REPOSITORY.fullmatch(named or "") and named != base_name:
        raise ArtifactError(
            f"{adapter / CONFIG}: its base is {named}, and this one is {base_name}. Expected the adapter's own base."
            " Give that one, or correct base_model_name_or_path in a copy of the folder."
        )
    model: Any = load(base, {"dtype": "float32", "attention": "eager"})
    tied = model.all_tied_weights_keys
    for name in tied:  # peft changes such a weight alone, or each of the two in its own way
        module = model.get_submodule(_module(name))
        module.weight = torch.nn.Parameter(module.weight.detach().clone())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what peft warns about is checked here
        try:
            adapted = PeftModel(model, config)
        except Exception as error:  # of many kinds; most often, no module has one of the names
            why = in_a_line(error).partition(". ")[0]
            raise _other_base(adapter, base, f"peft cannot place its target_modules there ({why})") from error
        n_modules = _fill(adapted, adapter, base)
        try:
            merged = adapted.merge_and_unload(safe_merge=True)
        except (ValueError, RuntimeError) as error:  # NaN, or a bias where the base has none
            why = f"cannot be added to weights ({in_a_line(error)}). Expected finite changes of the base's tensors"
            raise ArtifactError(f"{adapter}: {why}. Train it again.") from error
    if tied:  # peft has only seen that they are two tensors
        pairs = ((merged.get_parameter(name), merged.get_parameter(other)) for name, other in tied.items())
        merged.config.tie_word_embeddings = is_tied = all(torch.equal(*pair) for pair in pairs)
        if not is_tied:
            merged.config.get_text_config().tie_word_embeddings = False
        merged.tie_weights()
    save(merged, base, out, settings)
    return n_modules


def save(merged: Any, base: Path, out: Path, settings: Wire) -> None:
    """Write a merged model in the dtype in which it will be opened, with the processor of its base."""
    import torch

    merged.to(dtype=getattr(torch, settings["dtype"])).save_pretrained(out)
    copy_processor(base, out)


def _config(adapter: Path) -> Any:
    from peft import PeftConfig

    try:
        config: Any = PeftConfig.from_pretrained(str(adapter))
    except Exception as error:  # peft raises many kinds of errors for wrong values
        raise ArtifactError(f"{adapter / CONFIG}: cannot be read ({in_a_line(error)}). {AGAIN}") from error
    if (kind := getattr(config.peft_type, "value", None)) != "LORA":
        raise ArtifactError(
            f"{adapter / CONFIG}: peft_type is {kind}. Expected LORA, whose changes can be merged into weights. Use"
            " another adapter, or merge it yourself."
        )
    if str(config.init_lora_weights).startswith("pissa_niter_"):
        raise ArtifactError(
            f"{adapter / CONFIG}: init_lora_weights is {config.init_lora_weights}, with which peft takes random"
            " parts from the base, other ones each time. Expected changes of the whole base. Save the adapter again"
            " with peft's `path_initial_model_for_weight_conversion`."
        )
    if not (adapter / _WEIGHTS).is_file():
        raise ArtifactError(f"{adapter}: no file {_WEIGHTS}. Expected it beside {CONFIG}. Save the adapter with peft.")
    config.inference_mode = True
    return config


def _fill(adapted: Any, adapter: Path, base: Path) -> int:
    """Give a model with an empty adapter the tensors of the adapter's file; return the number of changed modules."""
    import torch
    from peft import get_peft_model_state_dict, set_peft_model_state_dict

    expected: Mapping[str, Tensor] = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    tensors = {name: t.get_tensor(name) for t in opened([adapter / _WEIGHTS]) for name in list(t.keys())}
    if tensors.keys() != expected.keys():
        tensors = _renamed(tensors, adapted.get_base_model())
    # peft also saves embeddings and heads that an adapter changes; they are the base's.
    weights = {name: weight for name, weight in adapted.state_dict().items() if ".base_layer." in name}
    tensors = {n: t for n, t in tensors.items() if n not in weights or not torch.equal(weights[n].to(t.dtype), t)}
    wrong = {
        "have no place in the model": sorted(tensors.keys() - expected.keys()),
        "of modules that its configuration names are missing": sorted(expected.keys() - tensors.keys()),
        "have another shape": [
            n for n in sorted(tensors.keys() & expected.keys()) if tensors[n].shape != expected[n].shape
        ],
    }
    if problems := [f"{len(names)} tensors {what}, such as {names[0]}" for what, names in wrong.items() if names]:
        raise _other_base(adapter, base, "; ".join(problems))
    # The second factor starts at zero; without it, the other tensors change nothing.
    others = (".lora_A", ".lora_embedding_A", ".lora_magnitude_vector")
    if not any(bool(tensor.any()) for name, tensor in tensors.items() if not any(part in name for part in others)):
        raise ArtifactError(f"{adapter}: all its changes are zero. Expected a trained adapter. {AGAIN}")
    set_peft_model_state_dict(adapted, tensors)
    return len({_module(name) for name in tensors})


def _renamed(tensors: Mapping[str, "Tensor"], model: Any) -> dict[str, "Tensor"]:
    """Return the tensors under the present names of their modules."""
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

    rules = get_model_conversion_mapping(model)
    renamings = [rule for rule in rules if isinstance(rule, WeightRenaming)]
    converters = [rule for rule in rules if isinstance(rule, WeightConverter)]
    weights = {re.sub(r"\.(base_layer|original_module)\.", ".", n): weight for n, weight in model.state_dict().items()}
    renamed = {}
    for name, tensor in tensors.items():
        module = _module(name)
        [now, _] = rename_source_key(f"{module}.weight", renamings, converters, model.base_model_prefix, weights)
        renamed[name.replace(module, now.removesuffix(".weight"), 1)] = tensor
    return renamed


def _module(name: str) -> str:
    """Return the module that a tensor of an adapter belongs to."""
    return _TENSOR.sub("", name.removeprefix(_PREFIX))


def _other_base(adapter: Path, base: Path, problem: str) -> ArtifactError:
    return ArtifactError(
        f"{adapter}: not an adapter of {base}: {problem}. Expected tensors of all modules that {CONFIG} names, and no"
        " others. Give the base that it was trained on, or the complete adapter."
    )
