"""The parts of a model that the library's own passes use: images, positions, masks and the head of any architecture.

A model of transformers that reads images and text has a core, `model.model`, which gives states; `get_image_features`,
which encodes images; rotary embeddings, which are given the positions; and a head.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from dualread.models.backbones.encode import EncodedPrompt

_NOT_SHOWN = ("last_hidden_state", "hidden_states", "attentions")  # what an image encoder gives besides its features
_VISION = ("vision", "visual")


def on_device(model: Any, inputs: Mapping[str, "Tensor"]) -> dict[str, "Tensor"]:
    """Return image inputs on the model's device, and in its dtype unless they are integers."""
    dtypes = {name: model.dtype if t.is_floating_point() else t.dtype for name, t in inputs.items()}
    return {name: t.to(model.device, dtypes[name]) for name, t in inputs.items()}


def encode_images(model: Any, prompts: Sequence["EncodedPrompt"]) -> Callable[[Sequence[int]], dict[str, Any]]:
    """Encode each distinct image of `prompts` once for all the batches that show it.

    The result takes positions in `prompts`, and returns the image arguments of `model.model` for a batch of these.
    """
    if not any(prompt.image for prompt in prompts):
        return lambda rows: {}
    images = {prompt.image_sha256: on_device(model, prompt.image) for prompt in prompts}
    alike = len({tuple(t.shape[1:] for t in image.values()) for image in images.values()}) == 1
    once: dict[str, dict[str, Any]] = {}
    for group in [list(images)] if alike else [[digest] for digest in images]:
        made, kind = _features(model, [images[digest] for digest in group])
        if made is None:  # features that cannot be told apart in the result for several images
            made = [of_one for digest in group for of_one in _features(model, [images[digest]])[0] or ()]
        once |= zip(group, made, strict=True)

    def shown(rows: Sequence[int]) -> dict[str, Any]:
        import torch

        digests = [prompts[i].image_sha256 for i in rows]
        of_rows = kind(**{key: _joined([once[digest][key] for digest in digests]) for key in once[digests[0]]})
        # Some models compute the positions of image tokens from the image grid of each row.
        grids = [name for name in images[digests[0]] if name.endswith("grid_thw")]
        of_grids = {name: torch.cat([images[digest][name] for digest in digests]) for name in grids}
        return {"mm_encoder_outputs": {"image": of_rows}, **of_grids}

    return shown


def _features(model: Any, images: Sequence[Mapping[str, "Tensor"]]) -> tuple[list[dict[str, Any]] | None, Any]:
    """Return (the features of each image, their class); None if those of several images cannot be told apart."""
    import torch

    encode = model.model.get_image_features
    taken = inspect.signature(encode).parameters
    inputs = {name: torch.cat([image[name] for image in images]) for name in images[0] if name in taken}
    features = encode(**inputs, return_dict=True)
    tiles = [len(image["pixel_values"]) for image in images]
    split = {key: _split(value, tiles) for key, value in features.items() if key not in _NOT_SHOWN}
    if any(parts is None for parts in split.values()):
        return None, type(features)
    return [{key: parts[i] for key, parts in split.items() if parts} for i in range(len(images))], type(features)


def _split(value: Any, tiles: Sequence[int]) -> list[Any] | None:
    """Split what the image encoder gives for images of so many tiles each; None if it does not show where."""
    n = len(tiles)
    if n == 1:
        return [value]
    if hasattr(value, "split"):
        sizes = next((sizes for sizes in ([1] * n, list(tiles)) if sum(sizes) == len(value)), None)
        return None if sizes is None else list(value.split(sizes))
    if all(hasattr(part, "split") for part in value):  # one tensor per image
        return [(part,) for part in value] if len(value) == n else None
    return [[(layer[i],) for layer in value] for i in range(n)] if all(len(layer) == n for layer in value) else None


def _joined(values: Sequence[Any]) -> Any:
    import torch

    first = values[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(list(values))
    if isinstance(first[0], torch.Tensor):
        return [tensor for of_image in values for tensor in of_image]
    return [[tensor for of_image in values for tensor in of_image[layer]] for layer in range(len(first))]


def keeping(layers: Sequence[int]) -> dict[str, Any]:
    """Return the argument of a pass that keeps the states of `layers`; 0 are the embeddings.

    Before 5.23, transformers counts from the first layer where it is given a list, and makes the last one the final
    states. There, the states of all layers are kept.
    """
    if not layers:
        return {}
    import transformers

    counts_embeddings = tuple(map(int, transformers.__version__.split(".")[:2])) >= (5, 23)
    return {"output_hidden_states": list(layers) if counts_embeddings else True}


@contextlib.contextmanager
def positions(model: Any) -> Iterator[list["Tensor"]]:
    """Collect the positions [..., rows or 1, tokens] that the language model is given, whatever computes them."""
    seen: list[Tensor] = []

    def note(module: Any, arguments: Any, named: Any) -> None:
        positions_of_call = named.get("position_ids", arguments[1] if len(arguments) > 1 else None)
        if positions_of_call is not None:
            seen.append(positions_of_call)

    modules = (m for name, m in model.model.named_modules() if not any(word in name for word in _VISION))
    rotary = next((m for m in modules if "rotary" in type(m).__name__.lower()), None)
    handle = rotary.register_forward_pre_hook(note, with_kwargs=True) if rotary is not None else None
    try:
        yield seen
    finally:
        if handle is not None:
            handle.remove()


def position_offsets(seen: Sequence["Tensor"], like: "Tensor") -> "Tensor":
    """Return what to add to the column of a later token of each row to get its position [rows].

    An image may occupy fewer positions than it has tokens. `seen` is what `positions` collected in a pass over unpadded
    rows, `like` the ids of that pass [rows, columns].
    """
    if not seen:  # a model without rotary embeddings
        return like.new_zeros(len(like))
    largest = seen[0].reshape(-1, *seen[0].shape[-2:]).amax(dim=(0, 2))
    return (largest + 1 - like.shape[1]).expand(len(like))


def attention_masks(model: Any, allowed: "Tensor", distance: "Tensor") -> Any:
    """Return the mask of a pass in which only the pairs in `allowed` [rows, 1, tokens, columns] see each other.

    `distance` says by how many positions the other one comes before a token [tokens, columns]. There is one mask, or
    one by type of layer.
    """
    text = model.config.get_text_config()
    window = getattr(text, "sliding_window", None)
    # Where there are no types, a window is that of all layers, as in Mistral.
    kinds = set(getattr(text, "layer_types", None) or ["sliding_attention" if window else "full_attention"])
    masks = {"full_attention": allowed, "sliding_attention": allowed & (distance < (window or allowed.shape[-1]))}
    return masks if len(kinds) > 1 else masks[kinds.pop()]


def attend_without_cudnn() -> None:
    """Let torch's attention on a GPU use any kernel but cuDNN's, in this process.

    cuDNN plans each new shape, which takes longer than the pass, and every token of an answer makes a new shape.
    """
    import torch

    torch.backends.cuda.enable_cudnn_sdp(False)


@contextlib.contextmanager
def in_attention(model: Any, name: str) -> Iterator[None]:
    """Compute attention with another function for a while: "sdpa" takes masks of any form, "eager" shows weights."""
    configured = model.config._attn_implementation
    if configured == name:
        yield
        return
    try:
        with contextlib.suppress(ValueError):  # some models have another one alone, which can do the same or is refused
            model.set_attn_implementation(name)
        yield
    finally:
        model.set_attn_implementation(configured)


def head(model: Any, dtype: Any = None) -> Callable[["Tensor"], "Tensor"]:
    """Return the function from final-layer states [..., D] to logits [..., V].

    It computes in `dtype`, None for the model's own. Nothing is copied where the model has this one.
    """
    import torch

    layer: Any = model.get_output_embeddings()
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    weight, bias = layer.weight, getattr(layer, "bias", None)
    if dtype is not None:
        weight, bias = weight.to(dtype), None if bias is None else bias.to(dtype)

    def logits(states: "Tensor") -> "Tensor":
        raw = layer(states) if dtype is None else torch.nn.functional.linear(states.to(dtype), weight, bias)
        return raw if cap is None else cap * torch.tanh(raw / cap)

    return logits
