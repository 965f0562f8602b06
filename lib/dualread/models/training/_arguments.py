"""The trainer's arguments: every setting by name, so that a release of TRL with other defaults changes nothing."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from dualread.errors import ConfigError
from dualread.models.training._checkpoints import KEPT
from dualread.models.training.constants import ADVANTAGE_SCALE, LOSS, OPTIMIZER, SCHEDULE
from dualread.models.training.job import Job


def n_processes() -> int:
    """Return how many processes train this actor together; the launcher of `worker` says it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def arguments(job: Job, forbidden: Sequence[int]) -> Any:
    """Return the GRPOConfig of `job`; no rollout contains a token of `forbidden`.

    Raises:
        ConfigError: A step does not divide into passes on this many processes.
    """
    import torch
    from trl.trainer.grpo_config import GRPOConfig

    settings = job.settings
    on_cpu = not torch.cuda.is_available()
    return GRPOConfig(
        **_batches(settings),
        **_rollouts(settings, job.max_prompt_tokens, forbidden),
        **_saving(job),
        num_generations=settings["group_size"],
        num_train_epochs=1,  # the rows already hold every pass
        shuffle_dataset=False,  # and their order
        max_completion_length=settings["max_completion_tokens"],
        temperature=settings["temperature"],
        top_p=settings["top_p"],
        top_k=0,
        loss_type=LOSS,
        scale_rewards=ADVANTAGE_SCALE,
        beta=settings["kl_coefficient"],
        epsilon=settings["clip_low"],
        epsilon_high=settings["clip_high"],
        num_iterations=1,
        learning_rate=settings["learning_rate"],
        optim=OPTIMIZER,
        lr_scheduler_type=SCHEDULE,
        warmup_steps=settings["warmup_fraction"],  # below 1 it is a fraction of all steps
        adam_beta1=settings["betas"][0],
        adam_beta2=settings["betas"][1],
        weight_decay=settings["weight_decay"],
        max_grad_norm=settings["clip_norm"],
        bf16=job.backbone_settings["dtype"] == "bfloat16",
        activation_checkpointing=not on_cpu,
        use_cpu=on_cpu,
        seed=job.seed,
        logging_steps=1,
        logging_strategy="steps",
        report_to="none",
        disable_tqdm=True,
        log_multimodal=False,
        dataloader_pin_memory=not on_cpu,
    )


def _batches(settings: Mapping[str, Any]) -> dict[str, Any]:
    completions_per_step = settings["prompts_per_step"] * settings["group_size"]
    per_pass = min(settings["completions_per_pass"], completions_per_step // n_processes())
    if per_pass < 1 or completions_per_step % (per_pass * n_processes()):
        # Rounded down, a step would silently hold fewer prompts, and the run would have more steps than asked for.
        raise ConfigError(
            f"actor settings: a step of {completions_per_step} completions (prompts_per_step x group_size) does not "
            f"divide into passes of completions_per_pass = {settings['completions_per_pass']} on {n_processes()} "
            "processes. Choose a divisor."
        )
    return {
        "per_device_train_batch_size": per_pass,
        "gradient_accumulation_steps": completions_per_step // (per_pass * n_processes()),
    }


def _rollouts(settings: Mapping[str, Any], max_prompt_tokens: int, forbidden: Sequence[int]) -> dict[str, Any]:
    """Return where completions are sampled: by the model itself, or by vLLM.

    Only the mapping is tested: vLLM pins an older torch and transformers than ours, so it has not run in this
    environment. It needs one of its own in which TRL and vLLM agree. TRL then corrects for the difference between
    vLLM's log-probabilities and the trainer's by importance sampling (its default, clipped at 3).
    """
    rollouts = settings.get("rollouts")
    if rollouts is None:
        return {"generation_kwargs": {"suppress_tokens": list(forbidden)}}
    # A server says by a flag of its own how much memory it takes.
    share = {"vllm_gpu_memory_utilization": rollouts["gpu_memory_share"]} if "gpu_memory_share" in rollouts else {}
    return {
        "use_vllm": True,
        "vllm_mode": rollouts["mode"],
        "vllm_max_model_length": max_prompt_tokens + settings["max_completion_tokens"],
        # vLLM knows no suppress_tokens; -100 is its lowest bias and leaves a probability below 1e-40.
        "generation_kwargs": {"logit_bias": dict.fromkeys(forbidden, -100.0)},
        **share,
    }


def _saving(job: Job) -> dict[str, Any]:
    if job.checkpoints is None or "save_every" not in job.settings:
        return {"output_dir": str(job.scratch), "save_strategy": "no"}
    return {
        "output_dir": str(job.checkpoints),
        "save_strategy": "steps",
        "save_steps": job.settings["save_every"],
        "save_total_limit": KEPT,
    }
