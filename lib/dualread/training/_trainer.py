"""What every GRPO algorithm shares: TRL's own trainer, every setting by name, the rows in our order, a log as a table.

An algorithm that changes more than the reward (`dcpo`, `vl_calibration`) gives `run` a function that subclasses the
trainer. What is rewarded is a plugin of `dualread.rewards`.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dualread.conditions import Asked
from dualread.errors import ConfigError
from dualread.progress import track
from dualread.training.order import n_steps, training_order

# Quantities of the trainer's log that are kept, under the names that the train log uses.
_LOGGED = {
    "reward": "reward",
    "reward_std": "reward_std",
    "frac_reward_zero_std": "groups_without_spread",
    "completions/mean_length": "completion_tokens",
    "completions/clipped_ratio": "truncated",
    "entropy": "entropy",
    "kl": "kl",
    "grad_norm": "gradient_norm",
    "learning_rate": "learning_rate",
    "clip_ratio/region_mean": "clipped",
}


@dataclass(frozen=True, kw_only=True)
class Job:
    """One actor to train.

    Attributes:
        checkpoint: Folder of the base checkpoint.
        questions: What to ask; text and image of each row.
        references: Accepted gold answers of each row.
        images: Folder that the rows' image files are relative to.
        backbone: The backbone's module.
        backbone_settings: Its config entry.
        reward: The reward's module.
        settings: The actor's config entry, see the algorithm's `SETTINGS`.
        seed: Seed of the actor: order, rollouts.
        out: Where the trained checkpoint goes.
        scratch: Folder for the trainer's own files.
    """

    checkpoint: Path
    questions: Sequence[Asked]
    references: Sequence[Sequence[str]]
    images: Path
    backbone: ModuleType
    backbone_settings: Mapping[str, Any]
    reward: ModuleType
    settings: Mapping[str, Any]
    seed: int
    out: Path
    scratch: Path


def run(job: Job, subclass: Callable[[type], type] = lambda trainer: trainer) -> list[dict[str, Any]]:
    """Train an actor and save it to `job.out`.

    Args:
        job: What to train on what.
        subclass: Takes TRL's GRPOTrainer, returns the class to train with.

    Returns:
        The train log, one row (step, name, value) a quantity.
    """
    from transformers import PrinterCallback
    from trl.trainer.grpo_trainer import GRPOTrainer

    settings, backbone, backbone_settings = job.settings, job.backbone, job.backbone_settings
    processor = backbone.load_processor(job.checkpoint, backbone_settings)
    # Weights are kept in float32: an update of 1e-6 is lost in bfloat16. The forward pass runs in the configured dtype.
    model = backbone.load_model(job.checkpoint, {**backbone_settings, "dtype": "float32"})
    n_rows = len(job.questions)
    steps = _steps(settings, n_rows)
    order = training_order(n_rows, steps=steps, prompts_per_step=settings["prompts_per_step"], seed=job.seed)
    forbidden = backbone.forbidden_token_ids(processor)
    trainer = subclass(GRPOTrainer)(
        model=model,
        reward_funcs=[_reward_function(job.reward)],
        args=_arguments(settings, backbone_settings["dtype"], job.seed, job.scratch, forbidden=forbidden),
        train_dataset=_dataset(job.questions, job.references, job.images, order),
        processing_class=processor,
        callbacks=[_progress_callback(steps)],
    )
    trainer.remove_callback(PrinterCallback)
    with warnings.catch_warnings():
        # trl 1.16 uses a name that transformers 5.23 renamed, and says so at every step.
        warnings.simplefilter("ignore", FutureWarning)
        trainer.train()
    model.save_pretrained(job.out)
    processor.save_pretrained(job.out)
    return _log_rows(trainer.state.log_history)


def _steps(settings: Mapping[str, Any], n_rows: int) -> int:
    if ("steps" in settings) == ("passes" in settings):
        raise ConfigError(f"training.grpo: settings {sorted(settings)}: give either `steps` or `passes`, not both.")
    return settings.get("steps") or n_steps(n_rows, settings["passes"], settings["prompts_per_step"])


def _arguments(settings: Mapping[str, Any], dtype: str, seed: int, scratch: Path, *, forbidden: Sequence[int]) -> Any:
    import torch
    from trl.trainer.grpo_config import GRPOConfig

    n_processes = int(os.environ.get("WORLD_SIZE", "1"))
    completions_per_step = settings["prompts_per_step"] * settings["group_size"]
    per_pass = min(settings["completions_per_pass"], completions_per_step // n_processes)
    if per_pass < 1 or completions_per_step % (per_pass * n_processes):
        # Rounded down, a step would silently hold fewer prompts, and the run would have more steps than asked for.
        raise ConfigError(
            f"actor settings: a step of {completions_per_step} completions (prompts_per_step x group_size) does not "
            f"divide into passes of completions_per_pass = {settings['completions_per_pass']} on {n_processes} "
            "processes. Choose a divisor."
        )
    on_cpu = not torch.cuda.is_available()
    return GRPOConfig(
        output_dir=str(scratch),
        per_device_train_batch_size=per_pass,
        gradient_accumulation_steps=completions_per_step // (per_pass * n_processes),
        num_generations=settings["group_size"],
        num_train_epochs=1,  # the rows already hold every pass
        shuffle_dataset=False,  # and their order
        max_completion_length=settings["max_completion_tokens"],
        temperature=settings["temperature"],
        top_p=settings["top_p"],
        top_k=0,
        generation_kwargs={"suppress_tokens": list(forbidden)},
        loss_type="grpo",
        scale_rewards="group",
        beta=settings["kl_coefficient"],
        epsilon=settings["clip_low"],
        epsilon_high=settings["clip_high"],
        num_iterations=1,
        learning_rate=settings["learning_rate"],
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=settings["warmup_fraction"],  # below 1 it is a fraction of all steps
        adam_beta1=settings["betas"][0],
        adam_beta2=settings["betas"][1],
        weight_decay=settings["weight_decay"],
        max_grad_norm=settings["clip_norm"],
        bf16=dtype == "bfloat16",
        activation_checkpointing=not on_cpu,
        use_cpu=on_cpu,
        seed=seed,
        logging_steps=1,
        logging_strategy="steps",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        log_multimodal=False,
        dataloader_pin_memory=not on_cpu,
    )


def _dataset(questions: Sequence[Asked], references: Sequence[Sequence[str]], images: Path, order: np.ndarray) -> Any:
    from datasets import Dataset
    from dualread.images import open_image

    rows = Dataset.from_dict({"row": order.tolist()})

    def materialize(batch: Mapping[str, list[int]]) -> dict[str, list[Any]]:
        chosen = [questions[i] for i in batch["row"]]
        return {
            "prompt": [[{"role": "user", "content": question.text}] for question in chosen],
            "image": [open_image(images / question.image_file) for question in chosen],
            "reference_answers": [list(references[i]) for i in batch["row"]],
            "sample_id": [question.sample_id for question in chosen],
        }

    # Rows are made when they are asked for: images of a whole training set do not fit in memory.
    return rows.with_transform(materialize)


def _reward_function(reward: ModuleType) -> Callable[..., list[float | None]]:
    """Wrap a reward plugin for TRL: plain texts and columns in, the reward out, its terms into the trainer's log."""

    def total(
        completions: list[Any],
        reference_answers: list[Sequence[str]],
        log_metric: Callable[[str, float], None],
        **columns: Any,
    ) -> list[float | None]:
        texts = [completion[0]["content"] for completion in completions]
        for name, values in reward.terms(texts, reference_answers, **columns).items():
            defined = np.array(values, dtype=float)
            defined = defined[~np.isnan(defined)]  # the confidence of an invalid completion
            if len(defined):
                log_metric(f"terms/{name}/mean", float(defined.mean()))
                log_metric(f"terms/{name}/std", float(defined.std()))
        return reward.reward(texts, reference_answers, **columns)

    return total


def _progress_callback(n_steps: int) -> Any:
    from transformers import TrainerCallback

    class Progress(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.bar = iter(track(range(n_steps), total=n_steps, label="training (steps)"))

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            next(self.bar, None)

    return Progress()


def _log_rows(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for entry in history:
        if "reward" not in entry:
            continue
        for key, value in entry.items():
            name = key if key.startswith("terms/") else _LOGGED.get(key)
            if name is not None and value is not None:
                rows.append({"step": entry["step"], "name": name, "value": float(value)})
    return rows
