"""Weights, gradients and Adam's moments of one training, spread over its processes by FSDP2 of torch and accelerate.

Each process holds an equal part of every tensor. A layer's weights are gathered while the layer is computed. Nothing is
computed in another precision or order than without sharding, except for the sums over processes.

The trained model samples, and an algorithm may read rows, by plain code, whose number of passes differs between the
processes: one has longer completions than another. So in each step all weights are gathered once, into a `Whole` model
of each process, which needs no other process. An engine gets them one by one instead, and what is compared with the
loss in the first step is then read by the sharded model itself: as many rows by each process.

The first process alone reads the model, and sends the others their parts, tensor by tensor (`opened_by_the_first`,
`spread`). Checkpoints are written by all processes, each of which writes its own part, and can be read by any number of
them.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from accelerate import DistributedType, PartialState
from accelerate.utils import FullyShardedDataParallelPlugin, broadcast_object_list
from accelerate.utils.fsdp_utils import fsdp2_apply_ac, fsdp2_prepare_model
from torch.distributed import broadcast
from torch.distributed.tensor import distribute_tensor
from trl.trainer.utils import add_fused_lm_head

from dualread.training._grpo_trainer import ActorTrainer
from dualread.training._lora import base_of, gathered
from dualread.training.job import Job
from dualread.training.trainer import PROCESSES


def opened_by_the_first(load: Callable[..., Any]) -> Any:
    """Return a model whose weights only the first process has; all processes have to call this, and later `spread`.

    `load` returns the model; with `without_weights=True`, its weights and buffers are on the meta device.
    """
    model = load(without_weights=not PartialState().is_main_process)
    [buffers] = broadcast_object_list([dict(model.named_buffers(remove_duplicate=False))])  # no checkpoint has them
    for name, buffer in buffers.items():
        owner, _, local_name = name.rpartition(".")
        model.get_submodule(owner)._buffers[local_name] = buffer
    return model


def spread(accelerator: Any, model: Any, *, recompute: bool = False) -> Any:
    """Shard a model in place, of which the first process has the weights, and send each process its part; return it.

    Beside the parts, the other processes hold one whole tensor at a time. With `recompute`, layers compute their
    activations again in the backward pass.
    """
    plugin, kinds = accelerator.state.fsdp_plugin, {type(module).__name__ for module in model.modules()}
    # accelerate refuses a model that names kinds of layers which it does not have, as Gemma 3 does.
    plugin.transformer_cls_names_to_wrap = sorted(kinds & set(model._no_split_modules))
    plugin.set_auto_wrap_policy(model)
    if recompute:
        fsdp2_apply_ac(accelerator, model)
    is_first, device = accelerator.is_main_process, accelerator.device
    weights = {name: weight.detach() for name, weight in model.named_parameters()} if is_first else {}
    fsdp2_prepare_model(accelerator, model)
    with torch.no_grad():
        model._apply(lambda tensor: torch.empty_like(tensor, device=device) if tensor.is_meta else tensor)
        for name, weight in model.named_parameters():
            kind = {"dtype": weight.dtype, "device": device}
            full = weights.pop(name).to(**kind) if is_first else torch.empty(weight.shape, **kind)
            broadcast(full, 0)
            part = distribute_tensor(full, weight.device_mesh, weight.placements, src_data_rank=None)
            weight.to_local().copy_(part.to_local())
    return model


class ShardedTrainer(ActorTrainer):
    """Shards the model that it trains, on CPUs as on GPUs; the model has to come from `opened_by_the_first`."""

    def __init__(self, *, job: Job, args: Any, **named: Any):
        # trl would read the reference of the KL penalty in each process, and shard it in one piece, which is gathered
        # as a whole. The reference of an adapter is its base.
        is_penalized, beta = job.settings.lora is None and args.beta > 0, args.beta
        args.beta = 0.0 if is_penalized else beta
        super().__init__(job=job, args=args, **named)
        if is_penalized:
            reference = _copied(self.model, torch.Tensor.detach).requires_grad_(False).eval()
            add_fused_lm_head(reference, temperature=self.temperature)
            self.ref_model = spread(self.accelerator, reference)
            self.beta = args.beta = beta
        self.whole = Whole(self.model)
        # A training may go on with other processes, which changes how sums are rounded.
        self.measured[PROCESSES] = float(self.accelerator.num_processes)

    def create_optimizer(self, *arguments: Any) -> Any:
        spread(self.accelerator, self.model, recompute=True)
        made = super().create_optimizer(*arguments)
        self._optimized = [list(group["params"]) for group in made.param_groups]
        return made

    def create_scheduler(self, *arguments: Any, **named: Any) -> Any:
        # accelerate knows the weights of an optimizer by their addresses, and has now mixed up those of which this
        # process has nothing.
        optimizer: Any = self.optimizer
        for group, weights in zip(optimizer.param_groups, self._optimized, strict=True):
            group["params"] = weights
        return super().create_scheduler(*arguments, **named)

    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()
        options: Any = self.args
        if self.accelerator.distributed_type == DistributedType.MULTI_CPU:
            # accelerate shards on GPUs alone. This is what it does there.
            self.accelerator.state.fsdp_plugin = FullyShardedDataParallelPlugin(**options.fsdp_plugin_args)
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP
            self.accelerator.state.distributed_type = DistributedType.FSDP
            self.is_fsdp_enabled = True

    @property
    def plain(self) -> Any:
        return self.whole.model if self.whole.is_filled else self.model

    def save(self) -> None:
        with self.whole.filled(self.model, "cpu" if self.is_world_process_zero() else None):
            super().save()

    @contextlib.contextmanager
    def in_bfloat16(self) -> Iterator[Any]:
        if self.whole.is_filled:
            with super().in_bfloat16() as rounding:
                yield rounding
            return
        with self.whole.filled(self.model, self.accelerator.device, torch.bfloat16):
            yield self.whole.model

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        # An adapter is added to its base by plain code.
        is_read = self.engine is None or self.job.settings.lora is not None or self.algorithm.reads_rows
        with self.whole.filled(self.model, self.accelerator.device) if is_read else contextlib.nullcontext():
            return super()._generate_and_score_completions(inputs)

    def _get_per_token_logps_and_entropies(self, *arguments: Any, **named: Any) -> Any:
        # Without a cache of rounded weights: it would hold all of them.
        with torch.autocast(self.accelerator.device.type, torch.bfloat16, self.args.bf16, cache_enabled=False):
            return super()._get_per_token_logps_and_entropies(*arguments, **named)


class Whole:
    """A plain model of one process that has no weights until they are gathered from all processes."""

    def __init__(self, model: Any):
        """Take the structure of `model`, whose weights are neither sharded nor copied."""
        self.model = _copied(model, lambda weight: torch.empty_like(weight, device="meta")).eval()
        self._empty = dict(self.model.state_dict())
        self.is_filled = False

    @contextlib.contextmanager
    def filled(self, sharded: Any, device: Any, dtype: Any = None) -> Iterator[None]:
        """Give `model` the weights of `sharded` on a device, for a while; all processes have to call this.

        They are cast to `dtype` if one is given. A process whose device is None keeps an empty model, and only takes
        part in the gathering.
        """
        once: dict[int, Any] = {}  # a tied weight has two names
        weights: dict[str, Any] = {}
        for name, weight in sharded.state_dict(keep_vars=True).items():
            if id(weight) not in once:
                values = gathered(weight.detach())
                kind = dtype if values.is_floating_point() else None
                once[id(weight)] = None if device is None else values.to(device=device, dtype=kind)
            weights[name] = once[id(weight)]
        del once
        try:
            if device is not None:
                self.model.load_state_dict(weights, assign=True)
                weights.clear()
                self.model.to(device)  # the buffers
                self.is_filled = True
            yield
        finally:
            self.is_filled = False
            # After the last step, an adapter may have been merged into its base, which changes the names.
            self.model.load_state_dict(self._empty, strict=False, assign=True)


def _copied(model: Any, copy_weight: Callable[[Any], Any]) -> Any:
    """Return a copy of a model, of whose weights each is what `copy_weight` makes of the one in `model`."""
    weights = {
        id(weight): torch.nn.Parameter(copy_weight(weight), requires_grad=weight.requires_grad)
        for weight in model.parameters()
    }
    copied = copy.deepcopy(model, weights)
    base_of(copied).__dict__.pop("forward", None)  # trl's, which would call the one in `model`
    return copied
