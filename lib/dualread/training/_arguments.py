"""The trainer's arguments. All that matter are set explicitly, so that other defaults of a new TRL change nothing."""

import dataclasses
import os
import sys
from typing import Any

from dualread.errors import ConfigError
from dualread.training.job import KEPT, Job
from dualread.training.settings import OPTIMIZER, SCHEDULE, TrainingSettings


def n_processes() -> int:
    """Return how many processes train this actor together, as set by the launcher of `worker`."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def arguments(job: Job) -> Any:
    """Return the GRPOConfig of `job`."""
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy
    from trl.trainer.grpo_config import GRPOConfig

    settings, correction = job.settings, {}
    if (wanted := settings.importance_sampling) is not None:  # `_grpo_trainer` switches it on
        correction = {
            "vllm_importance_sampling_mode": wanted.mode,
            "vllm_importance_sampling_clip_max": wanted.clip_max,
        }
    on_cpu = not torch.cuda.is_available()
    # transformers 5.19, which vLLM needs, knows the older name alone.
    known = {field.name for field in dataclasses.fields(GRPOConfig)}
    recompute = "activation_checkpointing" if "activation_checkpointing" in known else "gradient_checkpointing"
    made: Any = GRPOConfig(
        num_train_epochs=1,  # the rows already contain every pass over the data
        shuffle_dataset=False,  # and are already in order
        num_generations=settings.group_size,
        max_completion_length=settings.max_completion_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=0,
        loss_type=settings.loss_type,
        scale_rewards=settings.scale_rewards,
        num_iterations=settings.num_iterations,
        mask_truncated_completions=settings.mask_truncated_completions,
        importance_sampling_level="token",
        beta=settings.kl_coefficient,
        # The divergence counts p / p_old times, as by TRL's default: this changes its gradient, and not its value.
        use_bias_correction_kl=True,
        epsilon=settings.clip_low,
        epsilon_high=settings.clip_high,
        top_entropy_quantile=1.0,  # all tokens count
        entropy_coef=0.0,
        sync_ref_model=False,
        optim=OPTIMIZER,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=SCHEDULE,
        warmup_steps=settings.warmup_fraction,  # TRL takes a number below 1 as a fraction of all steps
        weight_decay=settings.weight_decay,
        adam_beta1=settings.betas[0],
        adam_beta2=settings.betas[1],
        max_grad_norm=settings.clip_norm,
        logging_steps=1,
        logging_strategy="steps",
        disable_tqdm=True,
        log_multimodal=False,
        **_batches(settings),
        **_saving(job),
        **_sharding(settings, {recompute: not on_cpu}),
        **tracking(job.name),
        **correction,
        chat_template_kwargs=dict(job.backbone_settings.get("chat_template", {})),
        bf16=job.backbone_settings["dtype"] == "bfloat16",
        use_cpu=on_cpu,
        dataloader_pin_memory=not on_cpu,
        seed=job.seed,
    )
    if settings.shard:
        # Precision is left to autocast, as without sharding. By default, weights are rounded before they are sent,
        # gradients are summed in bfloat16, and so are log-probabilities.
        made.fsdp_plugin_args["mixed_precision_policy"] = MixedPrecisionPolicy()
    return made


def _batches(settings: TrainingSettings) -> dict[str, Any]:
    completions_per_step = settings.prompts_per_step * settings.group_size
    per_pass = min(settings.completions_per_pass, completions_per_step // n_processes())
    if per_pass < 1 or completions_per_step % (per_pass * n_processes()):
        # If this were rounded down, a step would have fewer prompts and the run more steps than configured.
        raise ConfigError(
            f"actor settings: a step of {completions_per_step} completions (prompts_per_step x group_size) does not "
            f"divide into passes of completions_per_pass = {settings.completions_per_pass} on {n_processes()} "
            "processes. Expected completions_per_pass x processes to divide the completions of a step. Change "
            "completions_per_pass or processes."
        )
    return {
        "per_device_train_batch_size": per_pass,
        "gradient_accumulation_steps": completions_per_step // (per_pass * n_processes()),
    }


def _saving(job: Job) -> dict[str, Any]:
    if job.checkpoints is None or job.settings.save_every is None:
        return {"output_dir": str(job.scratch), "save_strategy": "no"}
    return {
        "output_dir": str(job.checkpoints),
        "save_strategy": "steps",
        "save_steps": job.settings.save_every,
        "save_total_limit": KEPT,
    }


def _sharding(settings: TrainingSettings, recompute: dict[str, bool]) -> dict[str, Any]:
    """Return the arguments of sharding; `recompute` is that of layers which are computed again in backward passes."""
    if settings.shard is None:
        return recompute
    return {
        **dict.fromkeys(recompute, False),  # `_sharding.spread` does it outside of a layer's gathering
        "fsdp": True,
        "fsdp_config": {
            "version": 2,
            "reshard_after_forward": settings.shard == "full",
            "state_dict_type": "SHARDED_STATE_DICT",
        },
        # Otherwise each process keeps the whole gradients until the last pass of a step.
        "accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": True}},
    }


def tracking(run: str) -> dict[str, Any]:
    """Return the trainer's arguments for the trackers that the environment names; `run` is the run's name there.

    Specs do not name them, so that an actor is not trained again to be watched (`machine.report_to`).
    """
    if not (trackers := [name for name in os.environ.get("DUALREAD_REPORT_TO", "").split(",") if name]):
        return {"report_to": "none"}
    from transformers.integrations.integration_utils import get_available_reporting_integrations

    installed = get_available_reporting_integrations()
    if missing := [name for name in trackers if name not in installed]:
        raise ConfigError(
            f"machine.report_to: {missing[0]!r} is not installed in the environment of this training, {sys.prefix}."
            f" Installed: {', '.join(installed) or 'none'}. Install it there with pip, or leave it out."
        )
    results = os.environ.get("DUALREAD_RESULTS", "results")
    os.environ.setdefault("TENSORBOARD_LOGGING_DIR", f"{results}/logs/tensorboard/{run}")
    project = os.path.basename(results)
    os.environ.setdefault("WANDB_PROJECT", project)
    return {"report_to": trackers, "run_name": run, "project": project}
