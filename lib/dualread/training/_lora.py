"""LoRA in place of full fine-tuning: which modules are adapted, and what is saved.

The weights of the base do not change. They are kept in the precision of the forward pass, and only the adapter in
float32. The reference of a KL penalty is the base with the adapter switched off.
"""

import warnings
from collections.abc import Iterator
from typing import Any

from dualread.errors import ConfigError, did_you_mean
from dualread.models import adapters
from dualread.models.backbones.checkpoint import copy_processor
from dualread.training.job import Job


def given_to_trainer(job: Job, model: Any) -> dict[str, Any]:
    """Return the trainer's arguments for an adapter; none where the whole model is trained."""
    if (lora := job.settings.lora) is None:
        return {}
    from peft import LoraConfig

    layers = list(_linear_layers(model, vision=lora.vision))
    known = sorted({name.rpartition(".")[2] for name in layers})
    targets = lora.targets or known
    if unknown := [name for name in targets if name not in known]:
        raise ConfigError(
            f"actor settings: lora.targets: {unknown[0]!r} is no linear layer of this model that can be adapted. Known:"
            f" {', '.join(known)}.{did_you_mean(unknown[0], known)}"
        )
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # pyright: ignore[reportArgumentType]  # peft takes any number
        lora_dropout=lora.dropout or 0.0,
        target_modules=[name for name in layers if name.rpartition(".")[2] in targets],
        task_type="CAUSAL_LM",
    )
    return {"peft_config": config}


def _linear_layers(model: Any, *, vision: bool) -> Iterator[str]:
    """Yield the names of the linear layers of the language model, or of the whole model without its head."""
    import torch

    part, head = model if vision else model.get_decoder(), model.get_output_embeddings()
    if not vision and part in (model, model.model):
        raise ConfigError(
            f"actor settings: lora: {type(model).__name__} does not say which part of it is the language model. Set"
            " lora.vision to true to adapt all of it, or train without lora."
        )
    inside = set(part.modules())
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and module in inside and module is not head:
            yield name


def base_of(model: Any) -> Any:
    """Return the model itself where it is wrapped with an adapter, whose layers it has."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def merged_weights(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, tensor) of all weights as one model has them, with an adapter added; the model is not changed.

    A tied weight comes under each of its names.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    base = base_of(model)
    adapted: dict[str, Any] = {name: layer for name, layer in base.named_modules() if isinstance(layer, BaseTunerLayer)}
    for name, tensor in base.state_dict().items():
        owner, _, rest = name.partition(".base_layer.")
        if rest == "weight" and (layer := adapted.get(owner)):
            [adapter] = layer.active_adapters
            tensor = (tensor.float() + layer.get_delta_weight(adapter).float()).to(tensor.dtype)
        elif not rest and any(name.startswith(f"{module}.") for module in adapted):
            continue  # a part of the adapter
        yield (f"{owner}.{rest}" if rest else name), gathered(tensor.detach())


def gathered(tensor: Any) -> Any:
    """Return a tensor as this process has it, or all of one that is sharded; then all processes have to call this."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def save(model: Any, job: Job) -> None:
    """Write the trained checkpoint: the weights that were trained, or the base with the adapter merged into them."""
    if job.settings.lora is None:
        model.save_pretrained(job.out)
        copy_processor(job.checkpoint, job.out)
        return
    from peft.tuners.tuners_utils import BaseTunerLayer

    for layer in model.to("cpu").modules():
        if isinstance(layer, BaseTunerLayer):  # one after the other: all weights in float32 take twice the memory
            base: Any = layer.get_base_layer()
            dtype = base.weight.dtype
            base.float()
            layer.merge(safe_merge=True)
            base.to(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft says that they are merged already
        merged = model.merge_and_unload()
    adapters.save(merged, job.checkpoint, job.out, job.backbone_settings)
