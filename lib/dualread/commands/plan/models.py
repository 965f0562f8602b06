"""Seconds of work with a model: measured for tiny models, computed from parameters and tokens for all others.

N is the number of parameters, including the vision tower; every parameter is assumed to process every token.

- A forward pass (prompts, replays) takes 2 N operations per token, the backward pass 4 N more, and recomputing
  activations another 2 N.
- Generation is limited by memory bandwidth: one step reads all weights and the keys and values of all sequences that
  are generated together, and gives one token of each sequence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dualread import plugins
from dualread.errors import ConfigError
from dualread.models import prompts
from dualread.specs.generation import ShardSpec
from dualread.specs.parts import Settings

_BF16, _FP32 = 2, 4  # bytes; training keeps its weights in float32


class Model(Protocol):
    """How long work with a model takes."""

    @property
    def device(self) -> str:
        """The device that the seconds are for: "cpu" (one core) or "gpu" (one GPU)."""
        ...

    def start(self, *, training: bool) -> float:
        """Return the seconds until a job has loaded its model."""
        ...

    def train(self, algorithm: str, settings: Settings, steps: int, prompt: str) -> float:
        """Return the seconds to train an actor, summed over its processes."""
        ...

    def generate(self, kind: str, asked: ShardSpec, n_questions: int) -> float:
        """Return the seconds to generate the answers, or score the choices, of what `StudyShards.asked` describes."""
        ...

    def replay(self, asked: ShardSpec, n_answers: int) -> float:
        """Return the seconds to replay the answers of a shard."""
        ...


@dataclass(frozen=True, kw_only=True)
class Tiny:
    """A model of the size of those in config.yaml; `unit` is the section `tiny` of the costs."""

    unit: Mapping[str, Any]
    device: str = "cpu"

    def start(self, *, training: bool) -> float:
        """See `Model`."""
        return self.unit["start"]["training" if training else "model"]

    def train(self, algorithm: str, settings: Settings, steps: int, prompt: str) -> float:
        """See `Model`."""
        seconds = self.unit["train_completion"] + _extra_passes(algorithm) * self.unit["extra_pass"]
        return steps * settings["prompts_per_step"] * settings["group_size"] * seconds

    def generate(self, kind: str, asked: ShardSpec, n_questions: int) -> float:
        """See `Model`."""
        return n_questions * _samples(asked) * self.unit["generate"][kind]

    def replay(self, asked: ShardSpec, n_answers: int) -> float:
        """See `Model`."""
        return n_answers * self.unit["replay_answer"]


@dataclass(frozen=True, kw_only=True)
class Large:
    """A model that is downloaded or brought as a checkpoint.

    Attributes:
        size: `backbones.*.size`: parameters, layers, key_value_width (heads x width of a key), pixels_per_token.
        pixels: Smallest and largest number of pixels of an image that the model is given.
        at_once: Number of sequences that are generated together.
        least_step: Minimum seconds of one generation step.
        least_training_step: The same for rollouts during training.
        gpu: The section `gpu` of the costs.
        text: The section `text` of the costs.
    """

    size: Mapping[str, Any]
    pixels: tuple[int, int]
    at_once: int
    least_step: float
    least_training_step: float
    gpu: Mapping[str, Any]
    text: Mapping[str, Any]
    device: str = "gpu"

    def start(self, *, training: bool) -> float:
        """See `Model`."""
        return self.gpu["start"]

    def train(self, algorithm: str, settings: Settings, steps: int, prompt: str) -> float:
        """See `Model`."""
        processes = settings.get("processes", 1)
        at_once = settings["prompts_per_step"] * settings["group_size"] // processes
        read, made = self.prompt_tokens(prompt), self.completion_tokens(settings["max_completion_tokens"])
        operations = self.gpu["train_flops"] + _extra_passes(algorithm) * self.gpu["extra_pass_flops"]
        operations += self.gpu["reference_flops"] if settings["kl_coefficient"] else 0
        n = steps * settings["prompts_per_step"] * settings["group_size"]
        rollouts = self._read(2, n * read)
        rollouts += self._made(n * made, read + made, at_once, weight_bytes=_FP32, least=self.least_training_step)
        return rollouts + self._read(operations, n * (read + made))

    def generate(self, kind: str, asked: ShardSpec, n_questions: int) -> float:
        """See `Model`."""
        read = self.prompt_tokens(asked.prompt.name)
        if asked.choices is not None:
            first, last = asked.choices.integers or (0, 0)
            return self._read(2, n_questions * (read + last - first))
        made = self.completion_tokens(_budget(asked))
        tokens = n_questions * _samples(asked) * made
        step = self._made(tokens, read + made, self.at_once, weight_bytes=_BF16, least=self.least_step)
        return self._read(2, n_questions * read) + step

    def replay(self, asked: ShardSpec, n_answers: int) -> float:
        """See `Model`."""
        made = self.completion_tokens(_budget(asked))
        return self._read(2, n_answers * (self.prompt_tokens(asked.prompt.name) + made))

    def prompt_tokens(self, prompt: str) -> float:
        """Return the number of tokens of a prompt with its question and image."""
        text = len(prompts.template(prompt)) / self.text["characters_per_token"] + self.text["question_tokens"]
        pixels = min(max(self.text["image_pixels"], self.pixels[0]), self.pixels[1])
        return text + pixels / self.size["pixels_per_token"]

    def longest_prompt(self, prompt: str) -> float:
        """Return the number of tokens of a prompt with the largest image."""
        text = len(prompts.template(prompt)) / self.text["characters_per_token"] + self.text["question_tokens"]
        return text + self.pixels[1] / self.size["pixels_per_token"]

    @property
    def patches(self) -> float:
        """The number of patches that the vision tower reads of the largest image."""
        return self.pixels[1] / self.size["pixels_per_token"] * self.size["patches_per_token"]

    def completion_tokens(self, budget: int) -> float:
        """Return the expected number of tokens of a completion of at most `budget` tokens."""
        return budget * self.text["completion_share"]

    def _read(self, operations: float, tokens: float) -> float:
        return operations * self.size["parameters"] * tokens / (self.gpu["flops"] * self.gpu["flops_share"])

    def _made(self, tokens: float, context: float, at_once: int, *, weight_bytes: int, least: float) -> float:
        keys_and_values = 2 * self.size["layers"] * self.size["key_value_width"] * _BF16
        moved = weight_bytes * self.size["parameters"] + at_once * context * keys_and_values
        return tokens / at_once * max(least, moved / (self.gpu["bandwidth"] * self.gpu["bandwidth_share"]))


def model_of(config: Mapping[str, Any], backbone: str, costs: Mapping[str, Any]) -> Model:
    """Return the model that estimates how long work with a backbone takes.

    Raises:
        ConfigError: The backbone is a checkpoint and has no `size`.
    """
    entry, generation = config["backbones"][backbone], config["generation"]
    settings = generation.get("settings", {})
    if "pretrain" in entry["source"]:
        return Tiny(unit=costs["tiny"])
    if "size" not in entry:
        raise ConfigError(
            f"backbones.{backbone}.size: missing. A plan needs it for every backbone that is not pretrained by the"
            " workflow: add parameters, layers, key_value_width, hidden_size and pixels_per_token."
        )
    least = costs["gpu"]["least_step_seconds"]
    return Large(
        size=entry["size"],
        pixels=(entry["settings"]["min_pixels"], entry["settings"]["max_pixels"]),
        at_once=settings.get("batch_size", settings.get("max_num_seqs", costs["gpu"]["sequences"])),
        least_step=least.get(generation["engine"], least["other"]),
        least_training_step=least["other"],
        gpu=costs["gpu"],
        text=costs["text"],
    )


def _extra_passes(algorithm: str) -> int:
    """Return how often the training algorithm reads each completion beyond what GRPO itself does."""
    return plugins.declared("training", algorithm, "EXTRA_PASSES") or 0


def _samples(asked: ShardSpec) -> int:
    return asked.decoding.n_samples if asked.decoding is not None else 1


def _budget(asked: ShardSpec) -> int:
    return asked.decoding.max_completion_tokens if asked.decoding is not None else 0
