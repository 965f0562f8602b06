"""The trainer's arguments. All that matter are set explicitly, so that other defaults of a new TRL change nothing."""

import dataclasses
import os
from typing import Any

from dualread.errors import ConfigError
from dualread.training import _sharding
from dualread.training._checkpoints import KEPT
from dualread.training._watched import tracking
from dualread.training.job import Job
from dualread.training.settings import ADVANTAGE_SCALE, LOSS, OPTIMIZER, SCHEDULE, TrainingSettings


def n_processes() -> int:
    """Return how many processes train this actor together, as set by the launcher of `worker`."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def arguments(job: Job) -> Any:
    """Return the GRPOConfig of `job`.

    Raises:
        ConfigError: The completions of a step cannot be divided into equal passes on this number of processes.
    """
    import torch
    from trl.trainer.grpo_config import GRPOConfig

    settings = job.settings
    on_cpu = not torch.cuda.is_available()
    # transformers 5.19, which vLLM needs, knows the older name alone.
    known = {field.name for field in dataclasses.fields(GRPOConfig)}
    recompute = "activation_checkpointing" if "activation_checkpointing" in known else "gradient_checkpointing"
    return GRPOConfig(
        **_batches(settings),
        chat_template_kwargs=dict(job.backbone_settings.get("chat_template", {})),
        **_saving(job),
        **_correction(settings),
        num_generations=settings.group_size,
        num_train_epochs=1,  # the rows already contain every pass over the data
        shuffle_dataset=False,  # and are already in order
        max_completion_length=settings.max_completion_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=0,
        loss_type=LOSS,
        scale_rewards=ADVANTAGE_SCALE,
        beta=settings.kl_coefficient,
        epsilon=settings.clip_low,
        epsilon_high=settings.clip_high,
        num_iterations=1,
        importance_sampling_level="token",
        # The divergence counts p / p_old times, as by TRL's default: this changes its gradient, and not its value.
        use_bias_correction_kl=True,
        mask_truncated_completions=False,
        top_entropy_quantile=1.0,  # all tokens count
        entropy_coef=0.0,
        sync_ref_model=False,
        learning_rate=settings.learning_rate,
        optim=OPTIMIZER,
        lr_scheduler_type=SCHEDULE,
        warmup_steps=settings.warmup_fraction,  # TRL takes a number below 1 as a fraction of all steps
        adam_beta1=settings.betas[0],
        adam_beta2=settings.betas[1],
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip_norm,
        bf16=job.backbone_settings["dtype"] == "bfloat16",
        **_sharding.arguments(settings, recompute=not on_cpu, name=recompute),
        use_cpu=on_cpu,
        seed=job.seed,
        logging_steps=1,
        logging_strategy="steps",
        **tracking(job.name),
        disable_tqdm=True,
        log_multimodal=False,
        dataloader_pin_memory=not on_cpu,
    )


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


def _correction(settings: TrainingSettings) -> dict[str, Any]:
    """Return the correction for the difference between engine and trainer; `trainer.run` switches it on."""
    if (wanted := settings.importance_sampling) is None:
        return {}
    return {"vllm_importance_sampling_mode": wanted.mode, "vllm_importance_sampling_clip_max": wanted.clip_max}


def _saving(job: Job) -> dict[str, Any]:
    if job.checkpoints is None or job.settings.save_every is None:
        return {"output_dir": str(job.scratch), "save_strategy": "no"}
    return {
        "output_dir": str(job.checkpoints),
        "save_strategy": "steps",
        "save_steps": job.settings.save_every,
        "save_total_limit": KEPT,
    }
