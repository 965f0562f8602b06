"""The model's own pass: transformers alone reads one row, without padding, with nothing that this library adds.

It is what every faster way to read rows, here and in the trainer, is compared with.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np


def read(model: Any, inputs: Mapping[str, Any], completion: Sequence[int], completion_type: int, **wanted: Any) -> Any:
    """Return the model's output, in evaluation mode, for a prompt and the C ids of its completion.

    `inputs` is what the processor makes of the prompt: input_ids [1, P], perhaps token types, and the image;
    `completion_type` the token type of the completion; `wanted` are further arguments, such as `output_hidden_states`.
    """
    import torch

    shape, batch = inputs["input_ids"].shape, {}
    for name, value in inputs.items():
        batch[name] = value.to(model.device, model.dtype if value.is_floating_point() else value.dtype)
        if value.shape == shape:
            after = list(completion) if name == "input_ids" else [completion_type] * len(completion)
            batch[name] = torch.cat([batch[name], torch.tensor([after], device=model.device, dtype=value.dtype)], dim=1)
    batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    with _own_forward(model):
        return model(**batch, use_cache=False, **wanted)


@contextlib.contextmanager
def _own_forward(model: Any) -> Iterator[None]:
    """Let a model use the `forward` of its class: trl and accelerate replace the one of the object."""
    replaced = {"forward": model.__dict__.pop("forward")} if "forward" in model.__dict__ else {}
    try:
        yield
    finally:
        model.__dict__.update(replaced)


def log_probs(
    model: Any, inputs: Mapping[str, Any], completion: Sequence[int], completion_type: int, temperature: float = 1.0
) -> np.ndarray:
    """Return the log-probability of each id of the completion in nats, float64 [C]; arguments as those of `read`."""
    import torch

    logits = read(model, inputs, completion, completion_type, logits_to_keep=len(completion) + 1).logits[0]
    log_probs_of_tokens = torch.log_softmax(logits[-len(completion) - 1 : -1].double() / temperature, dim=-1)
    return log_probs_of_tokens[range(len(completion)), list(completion)].cpu().numpy()


def mean_difference(values: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """Return the mean absolute difference over all tokens of all rows, in nats."""
    return float(np.abs(np.concatenate(values) - np.concatenate(other)).mean())


@contextlib.contextmanager
def in_float32(model: Any) -> Iterator[None]:
    """Compute in float32 for a while. Only the weights are cast; back again, they are the same bytes.

    Quantized weights stay as they are. What they stand for is multiplied in float32.
    """
    import torch
    from transformers.integrations.bitsandbytes import dequantize_bnb_weight

    kinds = [(weight, weight.dtype) for weight in model.parameters() if weight.is_floating_point()]
    dtypes = [(weight, dtype) for weight, dtype in kinds if dtype != torch.float32]
    quantized: list[Any] = [
        m for m in model.modules() if isinstance(m, torch.nn.Linear) and not m.weight.is_floating_point()
    ]

    def multiplied(layer: Any, states: Any) -> Any:
        weight = dequantize_bnb_weight(layer.weight, getattr(layer, "state", None)).to(torch.float32)
        return torch.nn.functional.linear(states, weight, layer.bias)

    try:
        for weight, _ in dtypes:
            weight.data = weight.data.to(torch.float32)
        for layer in quantized:
            layer.forward = functools.partial(multiplied, layer)
        yield
    finally:
        for weight, dtype in dtypes:
            weight.data = weight.data.to(dtype)
        for layer in quantized:
            del layer.forward


@contextlib.contextmanager
def in_bfloat16(model: Any) -> Iterator[None]:
    """Compute in bfloat16 for a while, as an engine does that has a copy of the weights in bfloat16.

    The weights themselves are kept meanwhile, because they cannot be cast back.
    """
    import torch

    kept = [(weight, weight.data) for weight in model.parameters() if weight.is_floating_point()]
    try:
        for weight, values in kept:
            weight.data = values.to(torch.bfloat16)
        yield
    finally:
        for weight, values in kept:
            weight.data = values


def generated(model: Any, inputs: Mapping[str, Any], completion: Sequence[int]) -> Any:
    """Return the logits [C, V] of the model's own `generate`, which is made to say the completion.

    The model itself decides there which token type a completion has.
    """
    import torch
    from torch.distributed.fsdp import FSDPModule

    n = inputs["input_ids"].shape[1]
    with _own_forward(model):
        made = model.generate(
            **{name: value.to(model.device) for name, value in inputs.items()},
            prefix_allowed_tokens_fn=lambda _, ids: [completion[len(ids) - n]],
            do_sample=False,
            synced_gpus=isinstance(model, FSDPModule),  # as many passes by all processes that share it
            max_new_tokens=len(completion),
            output_logits=True,
            return_dict_in_generate=True,
        )
    return torch.cat(made.logits)
