"""GRPO: group-relative policy optimization with TRL's trainer (paper, section A); used for RLVR and RLCR."""

from typing import Any

from dualread.models.training.job import Job
from dualread.models.training.trainer import run

# An actor sets exactly one of `steps` and `passes`, the length of the training.
SETTINGS = {
    "steps": {"type": "integer", "minimum": 1, "optional": True},
    "passes": {"type": "number", "exclusiveMinimum": 0, "optional": True},
    "prompts_per_step": {"type": "integer", "minimum": 1},
    "group_size": {"type": "integer", "minimum": 2},
    "completions_per_pass": {"type": "integer", "minimum": 1},
    # Completions that the trained model samples at once, which needs less memory than learning from as many. Default:
    # completions_per_pass. A large number takes less time.
    "rollouts_per_pass": {"type": "integer", "minimum": 1, "optional": True},
    # A longer prompt is an error and is never truncated. Default: the backbone's limit.
    "max_prompt_tokens": {"type": "integer", "minimum": 1, "optional": True},
    "max_completion_tokens": {"type": "integer", "minimum": 1},
    "temperature": {"type": "number", "exclusiveMinimum": 0},
    "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "clip_low": {"type": "number", "exclusiveMinimum": 0},
    "clip_high": {"type": "number", "exclusiveMinimum": 0},
    "kl_coefficient": {"type": "number", "minimum": 0},
    "learning_rate": {"type": "number", "exclusiveMinimum": 0},
    "warmup_fraction": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    "betas": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    "weight_decay": {"type": "number", "minimum": 0},
    "clip_norm": {"type": "number", "exclusiveMinimum": 0},
    # Steps between checkpoints, from which a killed training resumes. By default there are none, and it starts again.
    "save_every": {"type": "integer", "minimum": 1, "optional": True},
    # Processes that train one actor together, with one GPU each. Default: 1. Rollouts are drawn as by one process, but
    # sums are rounded in another order, so another number of processes gives an actor of its own.
    "processes": {"type": "integer", "minimum": 1, "optional": True},
    # Who samples the completions: a plugin of dualread.models.rollouts, such as vllm, and its settings. Default: the
    # trained model itself. Only a backbone's `training` may set it, because it chooses the environment of the training.
    "rollouts": {"type": "string", "optional": True},
    "rollout_settings": {"type": "object", "optional": True},
    # GPUs that do nothing but sample, for each of the `processes`. Default: none, so that both share a GPU.
    "rollout_gpus": {"type": "integer", "minimum": 1, "optional": True},
    # Weigh tokens by their probability in the loss over that in the engine that sampled them, as TRL's
    # vllm_importance_sampling_correction: cut at clip_max (truncate), or 0 above it (mask), per token or completion.
    "importance_sampling": {
        "type": "object",
        "properties": {
            "mode": {"enum": ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]},
            "clip_max": {"type": "number", "exclusiveMinimum": 0},
        },
        "required": ["mode", "clip_max"],
        "additionalProperties": False,
        "optional": True,
    },
    # Train a LoRA adapter in place of all weights. Default targets: all linear layers of the language model; with
    # `vision`, those of the rest, too, except for the head.
    "lora": {
        "type": "object",
        "properties": {
            "rank": {"type": "integer", "minimum": 1},
            "alpha": {"type": "number", "exclusiveMinimum": 0},
            "dropout": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
            "targets": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
            "vision": {"type": "boolean"},
        },
        "required": ["rank", "alpha"],
        "additionalProperties": False,
        "optional": True,
    },
}


def train(job: Job) -> list[dict[str, Any]]:
    """Train an actor from `job.checkpoint`, save it to `job.out`, and return its log."""
    return run(job)
