"""The memory that one process of a sharded training holds at its peak (models/training/_sharding.py), by part.

With n parameters, P processes, and bytes in float32, each process always holds

    weights              4 n / P
    Adam                 8 n / P     two moments
    reference model      4 n / P     with a KL penalty

or, with an adapter of a parameters and base weights of b bytes each (2 in bfloat16),

    weights              b n / P
    adapter and Adam     12 a / P    in float32; its reference is the model with the adapter switched off

and in one of three phases besides

    learning    gradients of what is trained, 4 / P each; the weights that are gathered at once (`gathered`); one pass
    sampling    the whole weights in one piece, 4 n or b n, with what the rollouts hold; or the engine's share of the
                memory, with one gathered tensor, the largest
    comparing   before the first step: some completions are read one by one in float32, where an engine samples also
                in bfloat16, for which the whole weights are gathered

An adapter, and an algorithm that reads completions by itself, need the whole weights also where an engine samples; the
comparison then needs them in float32, too. The peak is the largest phase. An engine that does not sleep keeps its share
in all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dualread.commands.plan import peaks
from dualread.commands.plan.peaks import BYTES, LongestBatch, Size

_FP32 = 4
_GATHERED = 2  # layers at once: the one that is computed, and the next


@dataclass(frozen=True, kw_only=True)
class ShardedLayout:
    """How a training is spread.

    Attributes:
        processes: P.
        by_layers: Whether weights are gathered layer by layer (`shard: full`), or for a whole pass.
        engine: Bytes of the engine that samples on the same GPU; 0 if it has GPUs of its own, None if there is none.
        sleeps: Whether it gives them back while the model learns.
        reads: Whether the algorithm reads completions by itself.
    """

    processes: int
    by_layers: bool
    engine: float | None = None
    sleeps: bool = False
    reads: bool = False


def training(
    size: Size,
    batch: LongestBatch,
    dtype: str,
    layout: ShardedLayout,
    *,
    rollouts: LongestBatch,
    of_step: float,
    reference: bool,
    adapter: float | None = None,
    logits: float | None = None,
) -> Mapping[str, float]:
    """Return {what is held: bytes} at the peak of one process; arguments as those of `peaks.training`."""
    n, part = size["parameters"], layout.processes
    mixed, base = dtype != "float32", _FP32 if adapter is None else BYTES[dtype]
    held = {"weights": n * base / part}
    if adapter is None:
        held |= {"Adam": 2 * n * _FP32 / part, "reference model": n * _FP32 / part if reference else 0}
    else:
        held["adapter, Adam"] = 3 * adapter * _FP32 / part
    engine = layout.engine or 0.0
    awake = {"vLLM": engine} if engine else {}
    resting = {} if layout.sleeps else awake

    learning = {
        **held,
        "gradients": (n if adapter is None else adapter) * _FP32 / part,
        "gathered weights": gathered(size, dtype, base, by_layers=layout.by_layers, trained=adapter is None),
        **resting,
        "one pass": peaks.one_pass(size, batch, dtype, of_step=of_step, adapter=adapter is not None, logits=logits),
    }
    one, copy = peaks.one_completion(size, batch, dtype), n * BYTES["bfloat16"] if mixed else 0
    if layout.engine is None:
        own = sum(peaks.sampled(size, rollouts, dtype).values())
        copies = copy if adapter is None else 0
        sampling = {**held, "whole weights": n * base, "bfloat16 copies": copies, "rollouts": own}
        comparing = {**held, "whole weights in float32": n * _FP32, "one completion": one}
    elif adapter is not None or layout.reads:
        sampling = {**held, "whole weights": n * base, **awake}
        both = {"whole weights in float32": n * _FP32, "in bfloat16": copy}
        comparing = {**held, **both, **resting, "one completion": one}
    else:
        sampling = {**held, "a gathered weight": size["vocabulary"] * size["hidden_size"] * _FP32, **awake}
        comparing = {**held, "whole weights in bfloat16": copy, **resting, "one completion": one}
    return max(learning, sampling, comparing, key=lambda phase: sum(phase.values()))


def gathered(size: Size, dtype: str, base: int, *, by_layers: bool, trained: bool) -> float:
    """Return the bytes of the weights that are gathered at once while the model learns.

    These are two layers with the gradients of one, which are whole until they are summed; a rounded copy of one layer;
    and the embedding, which is one piece with the head. If weights are gathered for a whole pass, all are there.

    Args:
        size: The model.
        dtype: The precision of the forward pass.
        base: Bytes of a number of the weights.
        by_layers: Whether they are gathered layer by layer.
        trained: Whether these weights are trained, and not only an adapter.
    """
    layer, embedding = peaks.layer_parameters(size), size["vocabulary"] * size["hidden_size"]
    whole = _GATHERED * layer + embedding if by_layers else size["parameters"]
    rounded = layer * BYTES[dtype] if base != BYTES[dtype] else 0
    return whole * base + rounded + (layer * _FP32 if trained else 0)
