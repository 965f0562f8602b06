"""Peak memory of one GPU by stage and backbone: computed from sizes, not measured.

Batches are as long as their longest row: every prompt is taken to have the largest image, and every completion to use
its whole budget.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dualread.commands.plan.models import Large
from dualread.study.training import training_settings

_BF16, _FP32 = 2, 4
# Arrays of the size of a layer's input that exist while one layer is computed again for its gradient: the projections
# of attention and feed-forward, their activations, and their gradients.
_LAYER_COPIES = 24
_LOGIT_COPIES = 3  # the logits, their log-softmax, and the gradient
_PIXEL_COPIES = 2  # the trainer shuffles the rows of a step, which copies them
_REPLAY_CHUNK = 2048  # tokens whose float64 log-probabilities are in memory at once


@dataclass(frozen=True, kw_only=True)
class Need:
    """What one GPU needs at most.

    Attributes:
        stage: The stage, and the actor where it matters.
        backbone: The backbone.
        parts: Bytes by what they hold.
        advice: What to change where it does not fit.
    """

    stage: str
    backbone: str
    parts: Mapping[str, float]
    advice: str

    @property
    def total(self) -> float:
        """All bytes."""
        return sum(self.parts.values())


def needs(config: Mapping[str, Any], name: str, model: Large) -> Iterator[Need]:
    """Yield what training, generation and replay with one backbone need."""
    for actor, entry in config["actors"].items():
        if "training" in entry:
            yield _training(config, name, model, actor)
    yield _replay(config, name, model)
    if "batch_size" in config["generation"].get("settings", {}):  # vLLM takes the share of the GPU that it is told to
        yield _generation(config, name, model)


def _training(config: Mapping[str, Any], name: str, model: Large, actor: str) -> Need:
    backbone, entry = config["backbones"][name], config["actors"][actor]
    settings = training_settings(entry["settings"], backbone.get("training", {}))
    n, size, processes = model.size["parameters"], model.size, settings.get("processes", 1)
    rows = min(settings["completions_per_pass"], settings["prompts_per_step"] * settings["group_size"] // processes)
    made = settings["max_completion_tokens"]
    limit = settings.get("max_prompt_tokens", backbone["settings"]["max_prompt_tokens"])
    tokens = min(limit, model.longest_prompt(entry.get("prompt", "shared"))) + made
    generated = rows * (tokens * _key_values(model, _FP32) + size["vocabulary"] * _FP32 * 2)
    vision = rows * model.patches * size["vision_width"] * _FP32
    states = rows * tokens * size["hidden_size"] * _FP32
    learned = states * size["layers"] + vision * size["vision_layers"]
    learned += max(states, vision) * _LAYER_COPIES + rows * made * size["vocabulary"] * _FP32 * _LOGIT_COPIES
    of_step = settings["prompts_per_step"] * settings["group_size"] // processes
    return Need(
        stage=f"train_actor ({actor})",
        backbone=name,
        parts={
            "weights and gradients": 2 * n * _FP32,
            "Adam": 2 * n * _FP32,
            "reference model": n * _FP32 if settings["kl_coefficient"] else 0,
            "bfloat16 copies": n * _BF16 if backbone["settings"]["dtype"] == "bfloat16" else 0,
            "pixels of a step": of_step * model.pixels[1] * 3 * _FP32 * _PIXEL_COPIES,
            "one pass": max(generated, learned),
        },
        advice=f"lower backbones.{name}.training.completions_per_pass ({settings['completions_per_pass']}) or raise"
        f" processes ({processes})",
    )


def _generation(config: Mapping[str, Any], name: str, model: Large) -> Need:
    dtype = _bytes_of(config, name)
    tokens = model.longest_prompt("shared") + config["generation"]["decoding"]["max_completion_tokens"]
    return Need(
        stage="generate",
        backbone=name,
        parts={
            "weights": model.size["parameters"] * dtype,
            "one pass": model.at_once * (tokens * _key_values(model, dtype) + model.size["vocabulary"] * 3 * 8),
        },
        advice=f"lower generation.settings.batch_size ({model.at_once})",
    )


def _replay(config: Mapping[str, Any], name: str, model: Large) -> Need:
    size, rows = model.size, config["replay"]["settings"]["batch_size"]
    tokens = model.longest_prompt("shared") + config["generation"]["decoding"]["max_completion_tokens"]
    states = rows * max(tokens * size["hidden_size"], model.patches * size["vision_width"]) * _FP32
    return Need(
        stage="replay",
        backbone=name,
        parts={
            "weights": size["parameters"] * _FP32,  # for a while, also in bfloat16 (models/replay/agreement.py)
            "output head": size["vocabulary"] * size["hidden_size"] * _FP32,
            "one pass": states * _LAYER_COPIES / 2 + _REPLAY_CHUNK * size["vocabulary"] * (_FP32 + 2 * 8),
        },
        advice=f"lower replay.settings.batch_size ({rows})",
    )


def _key_values(model: Large, bytes_each: int) -> float:
    return 2 * model.size["layers"] * model.size["key_value_width"] * bytes_each


def _bytes_of(config: Mapping[str, Any], name: str) -> int:
    return _BF16 if config["backbones"][name]["settings"]["dtype"] == "bfloat16" else _FP32
