"""What all training algorithms may be told, and what that means for the trainer, the tables, and `dualread plan`.

This file is read without importing an algorithm, so it imports nothing slow.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import Field

from dualread.errors import ConfigError
from dualread.schema.base import (
    AS_GIVEN,
    Above0,
    AtLeast0,
    AtLeastOne,
    BelowOne,
    Listed,
    Name,
    Positive,
    Section,
    Wire,
    settings_class,
)

# Hyperparameters that no config entry changes, under TRL's names.
OPTIMIZER = "adamw_torch_fused"
SCHEDULE = "constant_with_warmup"
WEIGHTS = "float32"  # whatever the dtype of the forward pass: an update of 1e-6 is lost in bfloat16
# Settings that say where a sharded training computes; it goes on from its checkpoints if they are changed.
LAYOUT = ("processes", "nodes", "shard", "rollout_gpus")


class Lora(Section):
    """A LoRA adapter that is trained in place of all weights."""

    rank: Positive
    """Rank of each adapted layer (peft: `r`)."""
    alpha: Annotated[Above0, AS_GIVEN]
    """The adapter's output is scaled by alpha / rank (peft: `lora_alpha`)."""
    dropout: Annotated[BelowOne, AS_GIVEN] | None = None
    """Share of the adapter's inputs that a training step drops (peft: `lora_dropout`); none by default."""
    targets: AtLeastOne[str] | None = None
    """Names of the adapted layers (peft: `target_modules`); by default all linear layers of the language model."""
    vision: bool = False
    """Whether the default targets include the linear layers outside the language model, except for the head."""


class ImportanceSampling(Section):
    """TRL's correction for tokens that an engine drew with slightly other probabilities than those of the loss."""

    mode: Literal["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
    """Whether ratios of probabilities are of tokens or of completions, and are cut at `clip_max` or are 0 above it
    (TRL: `vllm_importance_sampling_mode`)."""
    clip_max: Annotated[Above0, AS_GIVEN]
    """The largest ratio (TRL: `vllm_importance_sampling_clip_max`)."""


class TrainingSettings(Section):
    """How an actor is trained."""

    steps: Positive | None = None
    """Optimizer steps (TRL: `max_steps`). A training has either `steps` or `passes`."""
    passes: Annotated[Above0, AS_GIVEN] | None = None
    """Passes over the training questions (TRL: `num_train_epochs`)."""
    prompts_per_step: Positive
    """Questions per optimizer step (TRL: `generation_batch_size` / `num_generations`)."""
    group_size: Annotated[int, Field(ge=2)]
    """Completions per question, whose rewards are compared (TRL: `num_generations`)."""
    completions_per_pass: Positive
    """Completions in one forward and backward pass of a process (TRL: `per_device_train_batch_size`). A step adds up
    the gradients of several passes; their number (`gradient_accumulation_steps`) follows from the settings above."""
    rollouts_per_pass: Positive | None = None
    """Completions that the trained model samples at once, by default `completions_per_pass`. Sampling needs less memory
    than learning from as many, and a large number takes less time."""
    max_prompt_tokens: Positive | None = None
    """Most tokens of a prompt, by default the backbone's limit. A longer prompt is an error and is never truncated."""
    max_completion_tokens: Positive
    """Most tokens of a completion (TRL: `max_completion_length`)."""
    temperature: Annotated[Above0, AS_GIVEN]
    """Temperature of the rollouts."""
    top_p: Annotated[float, Field(gt=0, le=1), AS_GIVEN]
    """Smallest set of likely tokens, by probability, from which a rollout's next token is drawn."""
    clip_low: Annotated[Above0, AS_GIVEN]
    """A probability ratio below 1 - clip_low gives no gradient (TRL: `epsilon`)."""
    clip_high: Annotated[Above0, AS_GIVEN]
    """A probability ratio above 1 + clip_high gives no gradient (TRL: `epsilon_high`)."""
    loss_type: Literal["grpo", "dapo", "bnpo", "dr_grpo"] = "grpo"
    """Over what the loss of tokens is averaged (TRL: `loss_type`): over the tokens of each completion and then over
    completions (grpo), over all tokens of a step (dapo), over those of each pass, so that `completions_per_pass` counts
    (bnpo), or over completions of `max_completion_tokens` each, however long they are (dr_grpo)."""
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """By which standard deviation a reward's distance from its question's mean is divided: that of the question's
    completions, that of the step, or none (TRL: `scale_rewards`)."""
    num_iterations: Positive = 1
    """Steps that learn from the same completions (TRL: `num_iterations`); `steps` counts all of them."""
    mask_truncated_completions: bool = False
    """Whether completions that end at `max_completion_tokens` teach nothing (TRL: `mask_truncated_completions`)."""
    kl_coefficient: Annotated[AtLeast0, AS_GIVEN]
    """Weight of the divergence from the base checkpoint in the loss (TRL: `beta`)."""
    learning_rate: Annotated[Above0, AS_GIVEN]
    """Step size of AdamW after the warm-up."""
    warmup_fraction: Annotated[BelowOne, AS_GIVEN]
    """Share of the steps in which the step size rises from 0 (TRL: `warmup_steps` below 1)."""
    betas: Annotated[Listed[Annotated[float, AS_GIVEN]], Field(min_length=2, max_length=2)]
    """The two decay rates of AdamW (TRL: `adam_beta1`, `adam_beta2`)."""
    weight_decay: Annotated[AtLeast0, AS_GIVEN]
    """Decoupled weight decay of AdamW."""
    clip_norm: Annotated[Above0, AS_GIVEN]
    """Largest norm of a step's gradient (TRL: `max_grad_norm`)."""
    save_every: Positive | None = None
    """Steps between checkpoints, from which a killed training resumes (TRL: `save_steps`); by default it starts
    again."""
    processes: Positive = 1
    """Processes that train one actor together, with one GPU each. Rollouts are drawn as by one process, but sums are
    rounded in another order, so another number of processes gives an actor of its own."""
    nodes: Positive = 1
    """Machines of a SLURM cluster that share the `processes` of one actor equally, by default 1. Only a backbone's
    `training` may set this."""
    shard: Literal["optimizer", "full"] | None = None
    """Spreads gradients and Adam's moments over the `processes`, and with `full` also the weights while they are used;
    with `optimizer`, the weights are whole in each forward and backward pass, which takes less time and more memory.
    By default each process holds everything."""
    lora: Lora | None = None
    """A LoRA adapter, in place of all weights (TRL: `peft_config`)."""
    rollouts: Name | None = None
    """What samples the completions in place of the trained model: lib/dualread/training/rollouts/<name>.py (TRL:
    `use_vllm`). Only a backbone's `training` may set this and the next two, because it chooses the environment of the
    training."""
    rollout_settings: Wire | None = None
    """Settings of `rollouts`."""
    rollout_gpus: Positive | None = None
    """GPUs that do nothing but sample, for each of the `processes` (TRL: `vllm_mode: server`); by default both share a
    GPU (`colocate`)."""
    importance_sampling: ImportanceSampling | None = None
    """The correction for what `rollouts` sampled (TRL: `vllm_importance_sampling_correction`, there on by default);
    none by default."""

    draws_as: Name | None = None
    """An actor by whose name the order of the questions and the rollouts are seeded, by default the actor's own name.
    Actors with one name see the same questions and random numbers, so that they differ by what teaches them alone."""
    may_learn_nothing: bool = False
    """Whether a training may end in which no step moved a weight, or all completions of every question had the same
    reward; by default, that is an error."""

    @property
    def sampled_at_once(self) -> int:
        """The largest number of completions that the trained model samples at once."""
        return self.rollouts_per_pass or self.completions_per_pass

    @property
    def engine(self) -> Any:
        """The `Settings` of `rollouts`; None if the trained model samples."""
        if self.rollouts is None:
            return None
        return settings_class("rollouts", self.rollouts).from_spec(self.rollout_settings or {}, "rollout_settings")

    @property
    def unfit_for_an_engine(self) -> str | None:
        """Why no engine can sample for this training; None if one can."""
        if self.temperature != 1:
            return (
                f"temperature: {self.temperature}. Expected 1, because an engine gives log-probabilities before the"
                " temperature, and they are compared with those of the loss"
            )
        if self.importance_sampling is not None and self.top_p != 1:
            return f"top_p: {self.top_p}. Expected 1, because importance_sampling needs what was sampled from"
        return None

    @property
    def unfit_together(self) -> str | None:
        """Why `num_iterations`, `nodes` or `shard` cannot be followed; None if they can, or are not given."""
        for name in ("steps", "save_every"):
            if (value := getattr(self, name) or 0) % self.num_iterations:
                return f"{name}: {value}. Expected a multiple of num_iterations, {self.num_iterations}"
        if self.processes % self.nodes:
            return f"nodes: {self.nodes} cannot share {self.processes} `processes` equally. Change either"
        if self.shard is None:
            return None
        if self.processes == 1:
            return "shard: there is one process. Expected several, each of which holds a part: set `processes`"
        if self.lora is not None and self.lora.dropout:
            return (
                f"lora.dropout: {self.lora.dropout}. Expected none with `shard`, because layers that are computed again"
                " in the backward pass would drop other inputs than before. Leave it out"
            )
        return None

    def longest_prompt(self, backbone_settings: Wire) -> int:
        """Return the largest number of tokens in a prompt, image tokens included, by default that of the backbone."""
        return self.max_prompt_tokens or backbone_settings["max_prompt_tokens"]

    def steps_over(self, n_rows: int) -> int:
        """Return the number of optimizer steps: 3 passes over 4919 rows at 128 prompts per step are 117."""
        if (self.steps is None) == (self.passes is None):
            present = "both" if self.steps else "neither"
            raise ConfigError(f"actor settings: {present} of `steps` and `passes`. Expected one. Add or remove one.")
        rollouts = math.ceil((self.passes or 0) * math.ceil(n_rows / self.prompts_per_step))
        return self.steps or rollouts * self.num_iterations


def settings_on(backbone: Wire, actor: Wire) -> TrainingSettings:
    """Return the settings of an actor's training on a backbone, from their entries in a config that was checked."""
    declared = settings_class("training", actor["training"])
    assert issubclass(declared, TrainingSettings), declared
    return declared.from_spec(training_settings(actor["settings"], backbone.get("training", {})), "actor settings")


def training_settings(actor: Wire, backbone: Wire) -> dict[str, Any]:
    """Return the settings of an actor's training on a backbone: the actor's, with the backbone's laid over them.

    Of two limits on the prompt the larger one counts: an actor with its own prompt may need more room than others.
    """
    both = (actor, backbone)
    limits = [settings["max_prompt_tokens"] for settings in both if "max_prompt_tokens" in settings]
    return {**both[0], **both[1], **({"max_prompt_tokens": max(limits)} if limits else {})}
