"""The memory that a stage holds at its peak, from the sizes of a model and of a batch.

The formulas count what `models/generation/transformers_engine.py`, `models/replay/forward.py` and
`models/training/trainer.py` hold at once. A batch is padded to its longest row. Its prompts are read a few at a time:
first the images with what comes before them (`models/prefixes.py`), then the rest. Every prompt is taken to be about
another image. Arrays that are small beside these (ids, masks, states of single tokens) are left out.
`benchmarks/memory.py` compares the results with measurements.

`size` is `backbones.*.size` of a study. Every function returns {what is held: bytes}.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Size = Mapping[str, float]

BYTES = {"float32": 4, "bfloat16": 2}
# Images are read, and what follows them, in passes of at most so many tokens, by whether the model is on a GPU.
PASS_TOKENS = {False: 1536, True: 8192}
_FP32, _FP64 = 4, 8

# Arrays that are held while one layer is computed without gradients, each as wide as ...
_STATES = 4  # ... a hidden state: the residual stream, and the norm's copies, all in float32
_HEADS = 6  # ... the queries: queries, keys and values of all heads, what rotates them, and the output
_GATED = 3  # ... the feed-forward layer: gate, up, and their product
_VISION_STATES = 2  # ... a state of the vision tower: the residual stream and its norm
_VISION_HEADS = 5  # ... the same: queries, keys, values, and the output twice
_VISION_FED = 2  # ... the feed-forward layer of the vision tower: before and after the activation
_ROTATED = 3, 5  # where the vision tower rotates queries and keys: in the model's precision, and in float32
_POSITIONS = 2  # and, in float32, what it rotates by and the positions that it adds
# Arrays that a layer keeps for its gradient:
_KEPT_STATES = 9  # the inputs of norms and projections, in float32
_KEPT_HEADS = 8  # queries before and after norm and rotation, keys and values of all heads, and the output
_KEPT_GATED = 4  # gate, up, the activation, and the product
_KEPT_VISION_RESIDUAL = 2  # the residual stream, in float32
_KEPT_VISION_STATES = 8  # inputs of projections, queries, keys and values, and the output
_KEPT_VISION_FED = 2
# An image as the language model reads it, and what Qwen3-VL adds to the states of three more layers.
_FEATURES = 4
_SAMPLED = 5  # arrays of 4 bytes per entry of the vocabulary: the logits, and two copies in float64
_GREEDY = 2
LOGIT_CHUNK = 2048  # tokens whose logits are in memory at once; choices have those of one row at least
_CPU_LOGIT = 8 * _FP32 + 1  # itself, y, z, log_p, p, grad, the target's and the product's in TRL's `_backward_tile`
HEAD_TOKENS, _HEAD_ENTRIES = 4096, 32_768  # tokens and entries of the vocabulary in one piece of the trainer's logits


@dataclass(frozen=True, kw_only=True)
class LongestBatch:
    """A batch, described by its longest row.

    Attributes:
        rows: Completions.
        prompts: Prompts, each with an image of its own.
        prompt: Tokens of the longest prompt, image included.
        made: Tokens of the longest completion.
        pixels: Pixels of the largest image, as the model reads it.
        on_gpu: Whether the model is on a GPU.
    """

    rows: float
    prompts: float
    prompt: float
    made: float
    pixels: float
    on_gpu: bool = True


def patches(size: Size, pixels: float) -> float:
    """Return the number of patches that the vision tower reads of an image."""
    return pixels / size["pixels_per_token"] * size["patches_per_token"]


def layer_parameters(size: Size) -> float:
    """Return the parameters of one layer of the language model."""
    width = size["hidden_size"]
    return 2 * width * (size["attention_width"] + size["key_value_width"]) + 3 * width * size["feed_forward"]


def generation(size: Size, batch: LongestBatch, dtype: str, *, sampled: bool) -> dict[str, float]:
    """Return what the engine `transformers_engine` holds while it completes a batch."""
    keys = _key_values(size, BYTES[dtype], BYTES[dtype])
    return {"weights": size["parameters"] * BYTES[dtype], **_completing(size, batch, BYTES[dtype], keys, sampled)}


def scoring(size: Size, batch: LongestBatch, dtype: str, *, prefixes: float) -> dict[str, float]:
    """Return what the same engine holds while it scores choices that have `prefixes` prefixes together."""
    each = BYTES[dtype]
    read = _reading(size, batch, each, _key_values(size, each, each), added=prefixes)
    logits = min(read.rows * prefixes, max(prefixes, LOGIT_CHUNK)) * size["vocabulary"] * 2 * _FP64
    kept = read.rows * (batch.prompt + prefixes) * _key_values(size, each, each)
    return {"weights": size["parameters"] * each, "one batch": max(read.bytes, read.images + kept + logits)}


def one_answer(size: Size, tokens: float, dtype: str, pixels: float) -> dict[str, float]:
    """Return what vLLM needs at least: weights, one image, and keys and values of a row of `tokens` tokens."""
    each = BYTES[dtype]
    return {
        "weights": size["parameters"] * each,
        "an image": _encoding(size, pixels, each),
        "keys and values of one answer": tokens * _key_values(size, each, each),
    }


def replay(size: Size, batch: LongestBatch, dtype: str) -> dict[str, float]:
    """Return what a replay holds; every completion is taken to be about another image."""
    each = BYTES[dtype]
    own = _replaying(size, batch, each)
    if dtype == "float32":
        return {"weights": size["parameters"] * each, "one batch": own}
    # For a while, the model computes in float32 (models/replay/agreement.py), and whole batches at once.
    tokens = batch.rows * (batch.prompt + batch.made)
    whole = max(batch.rows * _encoding(size, batch.pixels, _FP32), tokens * _layer(size, _FP32), _cast(size, each))
    more = size["parameters"] * (_FP32 - each)
    if own > more + whole:
        return {"weights": size["parameters"] * each, "one batch": own}
    return {"weights in float32": size["parameters"] * _FP32, "one batch": whole}


def training(
    size: Size,
    batch: LongestBatch,
    dtype: str,
    *,
    rollouts: LongestBatch | None,
    of_step: float,
    reference: bool,
    recompute: bool = True,
    logits: float | None = None,
    adapter: float | None = None,
) -> dict[str, float]:
    """Return what one process of a training holds.

    With an adapter, its parameters alone have gradients, and the weights are in the precision of the forward pass. The
    reference is the model with the adapter switched off. Before the first step, the model reads a few completions in
    float32, one by one (models/training/_reference.py).

    Args:
        size: The model.
        batch: The completions of one pass.
        rollouts: The completions that are sampled at once; None if an engine samples them.
        dtype: The precision of the forward pass; the weights are float32.
        of_step: Completions of a step on this process.
        reference: Whether there is a KL penalty, and therefore a second model.
        recompute: Whether activations are computed again in the backward pass: on GPUs, but not on CPUs.
        logits: Bytes of the logits that are held at once; None for TRL's kernel on GPUs.
        adapter: Parameters of the adapter that is trained; None where all weights are.
    """
    each, n = BYTES[dtype], size["parameters"]
    sampling = {} if rollouts is None else sampled(size, rollouts, dtype)
    learning = one_pass(
        size, batch, dtype, of_step=of_step, recompute=recompute, logits=logits, adapter=adapter is not None
    )
    if adapter is not None:
        step, one = max(learning, sum(sampling.values())), one_completion(size, batch, dtype)
        if n * _FP32 + one > n * each + 4 * adapter * _FP32 + step:
            return {"weights in float32": n * _FP32, "adapter": adapter * _FP32, "one completion": one}
        return {"weights": n * each, "adapter, gradients, Adam": 4 * adapter * _FP32, "one pass or rollouts": step}
    return {
        "weights": n * _FP32,
        "gradients": n * _FP32,
        "Adam": 2 * n * _FP32,
        "reference model": n * _FP32 if reference else 0,
        "bfloat16 copies": n * each if dtype != "float32" else 0,
        **({"one pass": learning} if learning > sum(sampling.values()) else {"rollouts": sum(sampling.values())}),
    }


def one_pass(
    size: Size,
    batch: LongestBatch,
    dtype: str,
    *,
    of_step: float,
    adapter: bool,
    recompute: bool = True,
    logits: float | None = None,
) -> float:
    """Return the bytes of one pass that learns, with the pixels of all completions of the step; see `training`."""
    images = of_step * batch.pixels * size["values_per_pixel"] * _FP32
    if logits is None:
        logits = min(batch.rows * batch.made, HEAD_TOKENS) * _HEAD_ENTRIES * BYTES[dtype]
    learning = images + _learning(size, batch, BYTES[dtype], recompute) + logits
    if adapter:  # the head has no gradient
        return learning + 2 * batch.rows * (batch.prompt + batch.made) * size["hidden_size"] * _FP32
    return learning + _head_gradients(size, batch)


def sampled(size: Size, batch: LongestBatch, dtype: str) -> dict[str, float]:
    """Return what the trained model holds besides its weights while it samples a batch."""
    # Keys are normed and rotated in float32, values are what a projection returns.
    return _completing(size, batch, BYTES[dtype], _key_values(size, _FP32, BYTES[dtype]), sampled=True)


def one_completion(size: Size, batch: LongestBatch, dtype: str) -> float:
    """Return the bytes to read one completion in float32, and to cast the weights back afterwards."""
    read = max(_encoding(size, batch.pixels, _FP32), (batch.prompt + batch.made) * _layer(size, _FP32))
    return max(read, batch.made * size["vocabulary"] * (_FP32 + 2 * _FP64), _cast(size, BYTES[dtype]))


def between_steps(size: Size, dtype: str, *, reference: bool, adapter: float | None) -> dict[str, float]:
    """Return what one process of a training holds while an engine samples: neither gradients nor activations."""
    n = size["parameters"]
    if adapter is not None:
        return {"weights": n * BYTES[dtype], "adapter, Adam": 3 * adapter * _FP32}
    return {"weights": n * _FP32, "Adam": 2 * n * _FP32, "reference model": n * _FP32 if reference else 0}


def adapter_parameters(size: Size, rank: float, *, vision: bool) -> float:
    """Return the parameters of an adapter of all linear layers of the language model, or of the vision tower, too."""
    width, heads, keys = size["hidden_size"], size["attention_width"], size["key_value_width"]
    each = 2 * (width + heads) + 2 * (width + keys) + 3 * (width + size["feed_forward"])
    seen, fed = size["vision_width"], size["vision_feed_forward"]
    of_vision = size["vision_layers"] * (8 * seen + 2 * (seen + fed)) if vision else 0
    return rank * (size["layers"] * each + of_vision)


def logits_on_cpu(size: Size, batch: LongestBatch) -> float:
    """Return the bytes of the logits that TRL holds at once without a GPU: of all tokens of a pass, with copies."""
    tokens = batch.rows * (batch.prompt + batch.made)
    return tokens * min(size["vocabulary"], _HEAD_ENTRIES) * _CPU_LOGIT


def _cast(size: Size, each: int) -> float:
    """Return what weights that are cast back from float32, one by one, take besides: the largest one, the embedding."""
    return size["vocabulary"] * size["hidden_size"] * each


def _completing(size: Size, batch: LongestBatch, each: int, key_values: float, sampled: bool) -> dict[str, float]:
    """Return what the engine holds of a batch: keys and values, with a pass over prompts or a step."""
    keys = batch.rows * (batch.prompt + batch.made - 1) * key_values
    reading = _reading(size, batch, each, key_values).bytes
    step = batch.rows * size["vocabulary"] * (_SAMPLED if sampled else _GREEDY) * _FP32
    return {"keys and values": keys, "one step" if step > reading else "prompts": max(reading, step)}


def _replaying(size: Size, batch: LongestBatch, each: int) -> float:
    read = _reading(size, batch, each, _key_values(size, each, each), added=batch.made)
    logits = min(LOGIT_CHUNK, read.rows * batch.made) * size["vocabulary"] * (_FP32 + 2 * _FP64)
    logits += size["vocabulary"] * size["hidden_size"] * _FP32 if each != _FP32 else 0
    return max(read.bytes, read.images + logits)


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """A pass over prompts.

    Attributes:
        rows: The prompts that it reads.
        images: Bytes of the keys and values of their prefixes, images included.
        bytes: What is held at most while the images are encoded and read, and then what follows them.
    """

    rows: float
    images: float
    bytes: float


def _reading(size: Size, batch: LongestBatch, each: int, key_values: float, added: float = 0) -> _Reading:
    """Return what is held while prompts are read, each followed by `added` tokens."""
    image = batch.pixels / size["pixels_per_token"]
    most = PASS_TOKENS[batch.on_gpu]
    n = _at_once(batch.prompts, image, most) / image
    rest = max(1, batch.prompt - image) + added
    rows = _at_once(n, rest, most) / rest
    images = n * image * key_values
    shown = n * _features(size, batch.pixels, each) + images + n * image * _layer(size, each)
    # The keys and values of a prefix are copied for each row, and once more while a layer appends its own.
    copied = rows * (image + rest) * key_values * (1 + 1 / size["layers"])
    return _Reading(
        rows=rows,
        images=images,
        bytes=max(n * _encoding(size, batch.pixels, each), shown, images + copied + rows * rest * _layer(size, each)),
    )


def _learning(size: Size, batch: LongestBatch, each: int, recompute: bool) -> float:
    """Return the activations of a forward pass, and the gradients of one layer."""
    tokens, read = batch.rows * (batch.prompt + batch.made), batch.rows * patches(size, batch.pixels)
    kept = _KEPT_STATES * size["hidden_size"] * _FP32 + _KEPT_HEADS * size["attention_width"] * each
    kept += _KEPT_GATED * size["feed_forward"] * each
    seen = (_KEPT_VISION_RESIDUAL * _FP32 + _KEPT_VISION_STATES * each) * size["vision_width"]
    seen += _KEPT_VISION_FED * size["vision_feed_forward"] * each
    backward = max(tokens * _layer(size, each), read * _vision_layer(size, each))
    if not recompute:
        return tokens * kept * size["layers"] + read * seen * size["vision_layers"] + backward
    inputs = tokens * size["hidden_size"] * size["layers"] + read * size["vision_width"] * size["vision_layers"]
    return inputs * _FP32 + max(tokens * kept, read * seen) + backward


def _head_gradients(size: Size, batch: LongestBatch) -> float:
    """Return the gradients of the head and of its input."""
    states = batch.rows * (batch.prompt + batch.made) * size["hidden_size"]
    return (size["vocabulary"] * size["hidden_size"] + 2 * states) * _FP32


def _key_values(size: Size, key: int, value: int) -> float:
    """Return the bytes of a token's keys and values in all layers; `key` and `value` are the bytes of a number."""
    return size["layers"] * size["key_value_width"] * (key + value)


def _at_once(n: float, width: float, most: float) -> float:
    """Return the tokens of one pass over `n` rows of `width` tokens, at most `most` or one row."""
    return max(1, min(n, most // width)) * width


def _layer(size: Size, each: int) -> float:
    """Return the bytes per token while a layer is computed without gradients."""
    wide = max(_GATED * size["feed_forward"], _HEADS * size["attention_width"])
    return wide * each + _STATES * size["hidden_size"] * _FP32


def _vision_layer(size: Size, each: int) -> float:
    """Return the bytes per patch while a layer of the vision tower is computed without gradients."""
    width, fed = size["vision_width"], _VISION_FED * size["vision_feed_forward"] * each
    if not size["vision_rotary"]:
        return max(fed, _VISION_HEADS * width * each) + (_VISION_STATES + 1) * width * each
    own, exact = _ROTATED
    exact += each != _FP32  # their values, which are not in float32 yet
    heads = (own * each + exact * _FP32) * width
    return max(fed, heads) + _VISION_STATES * width * each + _POSITIONS * width * _FP32


def _encoding(size: Size, pixels: float, each: int) -> float:
    """Return the bytes per image while images are encoded: pixels as they come and as the model reads them, a layer."""
    return pixels * size["values_per_pixel"] * (_FP32 + each) + patches(size, pixels) * _vision_layer(size, each)


def _features(size: Size, pixels: float, each: int) -> float:
    return _FEATURES * pixels / size["pixels_per_token"] * size["hidden_size"] * each
