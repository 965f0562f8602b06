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

from dualread.training._lora import base_of, gathered
from dualread.training.settings import TrainingSettings

PROCESSES = "processes"  # in the trainer's log: how many took a step


def arguments(settings: TrainingSettings, *, recompute: bool, name: str) -> dict[str, Any]:
    """Return the trainer's arguments for sharding.

    Args:
        settings: The actor's settings.
        recompute: Whether layers compute their activations again in the backward pass; sharded ones always do.
        name: The trainer's name for that.
    """
    if settings.shard is None:
        return {name: recompute}
    return {
        name: False,  # `spread` does it outside of a layer's gathering
        "fsdp": True,
        "fsdp_config": {
            "version": 2,
            "reshard_after_forward": settings.shard == "full",
            "state_dict_type": "SHARDED_STATE_DICT",
        },
        # Otherwise each process keeps the whole gradients until the last pass of a step.
        "accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": True}},
    }


def opened_by_the_first(load: Callable[..., Any]) -> Any:
    """Return a model whose weights only the first process has; all processes have to call this, and later `spread`.

    Args:
        load: Returns the model; with `without_weights=True`, its weights and buffers are on the meta device.
    """
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list

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
    import torch
    from accelerate.utils.fsdp_utils import fsdp2_apply_ac, fsdp2_prepare_model
    from torch.distributed import broadcast
    from torch.distributed.tensor import distribute_tensor

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


def sharded(trainer: type, *, adapted: bool) -> type:
    """Return a subclass of a trainer that shards the model, on CPUs as on GPUs; `adapted` is whether it trains LoRA.

    The model has to come from `opened_by_the_first`.
    """
    import torch
    from accelerate import DistributedType, PartialState
    from torch.distributed.fsdp import MixedPrecisionPolicy
    from trl.trainer import grpo_trainer

    class ShardedTrainer(trainer):
        is_sampled_by_an_engine: bool
        whole: Whole

        def __init__(self, *, model: Any, **named: Any) -> None:
            of_trl: Any = grpo_trainer
            # trl would read the reference of the KL penalty in each process, and shard it in one piece, which is
            # gathered as a whole.
            of_trl.create_model_from_path = lambda *_, **__: _copied(model, torch.Tensor.detach).requires_grad_(False)
            of_trl.prepare_fsdp = lambda reference, accelerator: spread(accelerator, reference.eval())
            super().__init__(model=model, **named)
            self.whole = Whole(self.model)

        def create_optimizer(self, *arguments: Any) -> Any:
            spread(self.accelerator, self.model, recompute=True)
            made = super().create_optimizer(*arguments)
            self._optimized = [list(group["params"]) for group in made.param_groups]
            return made

        def create_scheduler(self, *arguments: Any, **named: Any) -> Any:
            # accelerate knows the weights of an optimizer by their addresses, and has now mixed up those of which this
            # process has nothing.
            for group, weights in zip(self.optimizer.param_groups, self._optimized, strict=True):
                group["params"] = weights
            return super().create_scheduler(*arguments, **named)

        def _build_accelerator_args(self, **kwargs: Any) -> dict[str, Any]:
            made = super()._build_accelerator_args(**kwargs)
            self._plugin = made["fsdp_plugin"]
            # Precision is left to autocast, as without sharding. By default, weights are rounded before they are sent,
            # gradients are summed in bfloat16, and so are log-probabilities.
            self._plugin.mixed_precision_policy = MixedPrecisionPolicy()
            return made

        def create_accelerator_and_postprocess(self) -> None:
            super().create_accelerator_and_postprocess()
            if self.accelerator.distributed_type == DistributedType.MULTI_CPU:
                # accelerate shards on GPUs alone. This is what it does there.
                self.accelerator.state.fsdp_plugin = self._plugin
                PartialState._shared_state["distributed_type"] = DistributedType.FSDP
                self.accelerator.state.distributed_type = DistributedType.FSDP
                self.is_fsdp_enabled = True

        @property
        def plain(self) -> Any:
            return self.whole.model if self.whole.is_filled else self.model

        def save(self) -> None:
            with self.whole.filled(self.model, "cpu" if self.is_world_process_zero() else None):
                super().save()

        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            # A training may go on with other processes, which changes how sums are rounded.
            self._metrics["train"][PROCESSES].append(float(self.accelerator.num_processes))
            # An adapter is added to its base by plain code.
            if self.is_sampled_by_an_engine and not (adapted or getattr(self, "reads_by_itself", False)):
                return super()._generate_and_score_completions(inputs)
            with self.whole.filled(self.model, self.accelerator.device):
                return super()._generate_and_score_completions(inputs)

        @contextlib.contextmanager
        def in_bfloat16(self) -> Iterator[Any]:
            if self.whole.is_filled:
                with super().in_bfloat16() as rounding:
                    yield rounding
                return
            with self.whole.filled(self.model, self.accelerator.device, torch.bfloat16):
                yield self.whole.model

        def _get_per_token_logps_and_entropies(self, *arguments: Any, **named: Any) -> Any:
            # Without a cache of rounded weights: it would hold all of them.
            with torch.autocast(self.accelerator.device.type, torch.bfloat16, self.args.bf16, cache_enabled=False):
                return super()._get_per_token_logps_and_entropies(*arguments, **named)

    return ShardedTrainer


class Whole:
    """A plain model of one process that has no weights until they are gathered from all processes."""

    def __init__(self, model: Any):
        """Take the structure of `model`, whose weights are neither sharded nor copied."""
        import torch

        self.model = _copied(model, lambda weight: torch.empty_like(weight, device="meta")).eval()
        base_of(self.model).__dict__.pop("forward", None)  # trl's, which would call the sharded model
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
    import torch

    weights = {
        id(weight): torch.nn.Parameter(copy_weight(weight), requires_grad=weight.requires_grad)
        for weight in model.parameters()
    }
    return copy.deepcopy(model, weights)
