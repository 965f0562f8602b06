"""Seconds of work with a model: measured for tiny models, computed from sizes for all others.

- A layer takes two operations per weight and token, and its attention four per token, column and channel. The vision
  tower does the same with patches; an image is encoded once for all rows of a pass that show it. Training reads every
  row with an image of its own.
- Generation token by token is limited by memory bandwidth or by operations, whichever takes longer: a step reads all
  weights and the keys and values of all rows, and gives one token of each row.
- Batches are padded to their longest row, except by vLLM. The longest of n rows is longer than the mean, the more so
  the larger n is: lengths are taken to be spread evenly around their mean, up to the longest possible one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

from dualread import plugins
from dualread.commands.plan.peaks import BYTES, layer_parameters, patches
from dualread.declared.answers import ShardSpec
from dualread.errors import ConfigError
from dualread.models import prompts
from dualread.models.replay.agreement import SAMPLE
from dualread.models.training.settings import TrainingSettings

_FP32 = 4
# Rows that are computed per row that has not ended: a batch drops the others when they are a quarter of it.
_COMPUTED = (1 + 4 / 3) / 2
_BLOCK = 16  # tokens of a block of vLLM's prefix cache


class Model(Protocol):
    """How long work with a model takes."""

    @property
    def device(self) -> str:
        """The device that the seconds are for: "cpu" (one core) or "gpu" (one GPU)."""
        ...

    def start(self, *, training: bool) -> float:
        """Return the seconds until a job has loaded its model."""
        ...

    def train(self, algorithm: str, settings: TrainingSettings, steps: int, prompt: str) -> float:
        """Return the seconds to train an actor, summed over its GPUs, those that only sample included."""
        ...

    def generate(self, kind: str, asked: ShardSpec, n_questions: int, n_images: int) -> float:
        """Return the seconds to generate the answers, or score the choices, of what `shard_spec` describes."""
        ...

    def replay(self, asked: ShardSpec, n_answers: int, n_images: int) -> float:
        """Return the seconds to replay the answers of a shard, which are about `n_images` images."""
        ...


@dataclass(frozen=True, kw_only=True)
class Tiny:
    """A model of the size of those in config.yaml; `unit` is the section `tiny` of the costs."""

    unit: Mapping[str, Any]
    device: str = "cpu"

    def start(self, *, training: bool) -> float:
        """See `Model`."""
        return self.unit["start"]["training" if training else "model"]

    def train(self, algorithm: str, settings: TrainingSettings, steps: int, prompt: str) -> float:
        """See `Model`."""
        seconds = self.unit["train_completion"] + _extra_passes(algorithm) * self.unit["extra_pass"]
        return steps * settings.prompts_per_step * settings.group_size * seconds

    def generate(self, kind: str, asked: ShardSpec, n_questions: int, n_images: int) -> float:
        """See `Model`."""
        return n_questions * asked.n_completions * self.unit["generate"][kind]

    def replay(self, asked: ShardSpec, n_answers: int, n_images: int) -> float:
        """See `Model`."""
        return n_answers * self.unit["replay_answer"]


def reading(size: Mapping[str, Any], tokens: float, columns: float) -> float:
    """Return the operations to read `tokens` tokens of a row, each of which sees `columns` tokens."""
    return size["layers"] * tokens * (2 * layer_parameters(size) + 4 * size["attention_width"] * columns)


def encoding(size: Mapping[str, Any], pixels: float) -> float:
    """Return the operations to encode one image; its patches all see each other."""
    n, width = patches(size, pixels), size["vision_width"]
    weights = 4 * width**2 + 2 * width * size["vision_feed_forward"]
    return size["vision_layers"] * n * (2 * weights + 4 * width * n)


def longest_of(n: float, mean: float, longest: float) -> float:
    """Return the expected length of the longest of `n` rows."""
    return longest - (longest - mean) * 2 / (n + 1)


@dataclass(frozen=True, kw_only=True)
class Large:
    """A model that is downloaded or brought as a checkpoint.

    Attributes:
        size: `backbones.*.size`.
        dtype: The precision of the forward pass.
        pixels: Smallest and largest number of pixels of an image that the model is given.
        at_once: Number of sequences that are generated together.
        padded: Whether generation pads its batches and reads each prompt by itself; vLLM does neither.
        replayed: Number of answers in a batch of the replay.
        committed: Longest answer that a view can ask about, in tokens.
        least_step: Minimum seconds of one generation step.
        least_training_step: The same for rollouts during training.
        gpu: The section `gpu` of the costs.
        text: The section `text` of the costs.
    """

    size: Mapping[str, Any]
    dtype: str
    pixels: tuple[int, int]
    at_once: int
    padded: bool
    replayed: int
    committed: int
    least_step: float
    least_training_step: float
    gpu: Mapping[str, Any]
    text: Mapping[str, Any]
    device: str = "gpu"

    def start(self, *, training: bool) -> float:
        """See `Model`."""
        return self.gpu["start"]

    def train(self, algorithm: str, settings: TrainingSettings, steps: int, prompt: str) -> float:
        """See `Model`."""
        processes, group = settings.processes, settings.group_size
        n, apart = settings.prompts_per_step * group // processes, settings.rollout_gpus or 0
        rows = min(settings.completions_per_pass, n)
        if settings.rollouts is not None:
            rollouts = self._by_an_engine(settings, ceil(n / max(1, apart)), prompt)
        else:
            sampled = min(settings.sampled_at_once, n)
            rollouts = ceil(n / sampled) * self._rollouts(settings, sampled, prompt)
        learning = self._learning(algorithm, settings, n, rows, prompt)
        if settings.shard is not None:
            learning = max(learning, ceil(n / rows) * self._sent(settings))
        return steps * processes * (1 + apart) * (rollouts + learning)

    def _sent(self, settings: TrainingSettings) -> float:
        """Return the seconds to send weights and gradients of a sharded model for one pass, while others are computed.

        Weights are gathered for the forward pass, layer by layer again for the backward pass, and once more for the
        reference of a KL penalty; gradients are as many as what is trained.
        """
        gathered = (2 if settings.shard == "full" else 1) + (settings.kl_coefficient != 0)
        each, gradients = (_FP32, 1) if settings.lora is None else (BYTES[self.dtype], 0)
        rate = self.gpu["network" if settings.nodes > 1 else "link"] * self.gpu["bandwidth_share"]
        return (gathered + gradients) * each * self.size["parameters"] / rate

    def _rollouts(self, settings: TrainingSettings, rows: int, prompt: str) -> float:
        """Return the seconds to sample one piece of a process's completions."""
        n_prompts, budget = ceil(rows / settings.group_size), settings.max_completion_tokens
        read = self._longest_prompt_of(n_prompts, prompt)
        seconds = self._seconds(n_prompts * (reading(self.size, read, read) + self._encoded()))
        # Keys are kept in float32 while the model is trained, values in the precision of the forward pass.
        key_values = _FP32 + BYTES[self.dtype]
        return seconds + self._batch(rows, read, budget, key_values, least=self.least_training_step)

    def _by_an_engine(self, settings: TrainingSettings, n: int, prompt: str) -> float:
        """Return the seconds in which an engine gets new weights and samples `n` completions."""
        at_once, budget = settings.engine.max_num_seqs, settings.max_completion_tokens
        own, mean = self.prompt_tokens(prompt), self.completion_tokens(budget)
        read = ceil(n / settings.group_size) * (reading(self.size, own, own) + self._encoded())
        # The longest row of those that begin together; more of them begin as others end.
        steps = max(n * mean / at_once, longest_of(min(n, at_once), mean, budget))
        each, least = BYTES[self.dtype], self.gpu["least_step_seconds"].get(settings.rollouts, self.least_training_step)
        pushed = self.size["parameters"] * (_FP32 + each) / (self.gpu["bandwidth"] * self.gpu["bandwidth_share"])
        sampled = self._steps(steps, n * mean, own + mean / 2, 2 * each, least=least)
        return self._seconds(read) + pushed + sampled

    def _learning(self, algorithm: str, settings: TrainingSettings, n: int, rows: int, prompt: str) -> float:
        """Return the seconds to learn from the completions of a step on one process; all are as long as the longest."""
        budget = settings.max_completion_tokens
        made = longest_of(n, self.completion_tokens(budget), budget)
        columns = self._longest_prompt_of(n // settings.group_size, prompt) + made
        head = 2 * self.size["vocabulary"] * self.size["hidden_size"] * self.completion_tokens(budget)
        forward = reading(self.size, columns, columns) + self._encoded()
        passes = self.gpu["train_passes"] + (1 if settings.kl_coefficient else 0)
        passes -= settings.lora is not None  # the backward pass computes no gradients of weights
        shared = reading(self.size, columns, columns) + self._encoded() / min(rows, settings.group_size)
        return self._seconds(n * (passes * (forward + head) + _extra_passes(algorithm) * (shared + head)))

    def generate(self, kind: str, asked: ShardSpec, n_questions: int, n_images: int) -> float:
        """See `Model`."""
        name, budget, before, scored = asked.prompt.name, _budget(asked), 0.0, 0
        if asked.choices is not None and asked.choices.integers is not None:
            first, last = asked.choices.integers
            before, scored = self.completion_tokens(self.committed), last - first + 1  # behind a committed answer
        if not self.padded:
            return self._unpadded(
                name, n_questions, n_images, n_questions * asked.n_completions, budget, before, scored
            )
        n_prompts = min(n_questions, max(1, self.at_once // asked.n_completions))
        if not n_prompts:
            return 0.0
        columns = self._longest_prompt_of(n_prompts, name) + before
        read = n_prompts * reading(self.size, columns + scored, columns + scored)
        seconds = self._seconds(read + _distinct(n_prompts, n_images) * self._encoded())
        if budget:
            rows = n_prompts * asked.n_completions
            seconds += self._batch(rows, columns, budget, 2 * BYTES[self.dtype], least=self.least_step)
        return n_questions / n_prompts * seconds

    def _unpadded(
        self, prompt: str, n: int, n_images: int, completions: int, budget: int, before: float, scored: int
    ) -> float:
        """Return the seconds of vLLM, which reads once what the prompts about one image share.

        It asks for one token after each of `scored` prefixes, and then reads the tokens of an incomplete block again.
        """
        own, image = self.prompt_tokens(prompt), self._image_tokens(self._mean_pixels)
        again = scored * _BLOCK / 2
        read = n * reading(self.size, own - image + before + again, own + before)
        read += n_images * (reading(self.size, image, image) + self._encoded())
        mean = self.completion_tokens(budget)
        tokens = completions * mean + n * scored
        context = own + before + mean / 2
        steps = self._steps(tokens / self.at_once, tokens, context, 2 * BYTES[self.dtype], least=self.least_step)
        return self._seconds(read) + steps

    def replay(self, asked: ShardSpec, n_answers: int, n_images: int) -> float:
        """See `Model`."""
        budget = _budget(asked)
        own, made = self.prompt_tokens(asked.prompt.name), self.completion_tokens(budget)
        image = self._image_tokens(self._mean_pixels)
        # Rows are sorted by image. What an image's rows share is read once, and again if a batch ends among them.
        n_read = min(n_answers, n_images + n_answers / self.replayed)
        shared = n_read * (reading(self.size, image, image) + self._encoded())
        seconds = self._seconds(shared + n_answers * reading(self.size, own - image + made, own + made))
        head = 2 * self.size["vocabulary"] * self.size["hidden_size"] * made
        seconds += self._seconds(n_answers * head, "float32")
        if self.dtype == "float32":
            return seconds
        n = min(n_answers, SAMPLE)
        rows = min(n, self.replayed)
        columns = self._longest_prompt_of(rows, asked.prompt.name) + longest_of(rows, made, budget)
        whole = n * (reading(self.size, columns, columns) + head) + _distinct(n, n_images) * self._encoded()
        return seconds + self._seconds(whole) + self._seconds(whole, "float32")

    def prompt_tokens(self, prompt: str) -> float:
        """Return the number of tokens of a prompt with its question and image."""
        return self._text_tokens(prompt) + self._image_tokens(self._mean_pixels)

    def longest_prompt(self, prompt: str) -> float:
        """Return the number of tokens of a prompt with the largest image."""
        return self._text_tokens(prompt) + self._image_tokens(self.pixels[1])

    @property
    def patches(self) -> float:
        """The number of patches that the vision tower reads of the largest image."""
        return patches(self.size, self.pixels[1])

    def completion_tokens(self, budget: int) -> float:
        """Return the expected number of tokens of a completion of at most `budget` tokens."""
        return budget * self.text["completion_share"]

    @property
    def _mean_pixels(self) -> float:
        return self._resized(self.text["image_pixels"])

    def _resized(self, pixels: float) -> float:
        return min(max(pixels, self.pixels[0]), self.pixels[1])

    def _text_tokens(self, prompt: str) -> float:
        return len(prompts.template(prompt)) / self.text["characters_per_token"] + self.text["question_tokens"]

    def _image_tokens(self, pixels: float) -> float:
        return pixels / self.size["pixels_per_token"]

    def _longest_prompt_of(self, n: float, prompt: str) -> float:
        largest = self._image_tokens(self._resized(self.text["largest_image_pixels"]))
        mean = self._image_tokens(self._mean_pixels)
        return self._text_tokens(prompt) + longest_of(max(n, 1), mean, largest)

    def _encoded(self) -> float:
        return encoding(self.size, self._mean_pixels)

    def _seconds(self, operations: float, dtype: str | None = None) -> float:
        flops = self.gpu["flops" if (dtype or self.dtype) == "bfloat16" else "float32_flops"]
        return operations / (flops * self.gpu["flops_share"])

    def _batch(self, rows: float, read: float, budget: int, key_values: float, *, least: float) -> float:
        """Return the seconds to generate one padded batch, which goes on until its longest row has ended."""
        mean = self.completion_tokens(budget)
        steps = longest_of(rows, mean, budget)
        tokens = rows * min(steps, mean * _COMPUTED)
        return self._steps(steps, tokens, read + mean / 2, key_values, least=least)

    def _steps(self, steps: float, tokens: float, context: float, key_values: float, *, least: float) -> float:
        """Return the seconds of `steps` steps that give `tokens` tokens; `key_values` bytes per number of both."""
        size = self.size
        moved = steps * size["parameters"] * BYTES[self.dtype]
        moved += tokens * context * size["layers"] * size["key_value_width"] * key_values
        operations = reading(size, tokens, context) + 2 * tokens * size["vocabulary"] * size["hidden_size"]
        bandwidth = self.gpu["bandwidth"] * self.gpu["bandwidth_share"]
        return max(steps * least, moved / bandwidth, self._seconds(operations))


def _distinct(n: float, n_images: float) -> float:
    """Return the expected number of distinct images of `n` questions, if each is about any of `n_images` images."""
    return n_images * (1 - (1 - 1 / n_images) ** n) if n_images else 0


def model_of(config: Mapping[str, Any], backbone: str, costs: Mapping[str, Any]) -> Model:
    """Return the model that estimates how long work with a backbone takes.

    Raises:
        ConfigError: The backbone is a checkpoint and has no `size`, or no limits of image sizes.
    """
    entry, generation = config["backbones"][backbone], config["generation"]
    settings = generation.get("settings", {})
    if "pretrain" in entry["source"]:
        return Tiny(unit=costs["tiny"])
    if "size" not in entry:
        raise ConfigError(
            f"backbones.{backbone}.size: missing. A plan needs it for every backbone that is not pretrained by the"
            " workflow: copy the entry of a backbone in workflow/studies/paper.yaml, and put in the numbers of the"
            " checkpoint's config.json."
        )
    if "max_pixels" not in entry["settings"]:
        raise ConfigError(
            f"backbones.{backbone}.settings.max_pixels: missing. A plan needs min_pixels and max_pixels to know how"
            " long prompts are: set the limits of the image sizes that the model's image processor makes."
        )
    least = costs["gpu"]["least_step_seconds"]
    return Large(
        size=entry["size"],
        dtype=entry["settings"]["dtype"],
        pixels=(entry["settings"]["min_pixels"], entry["settings"]["max_pixels"]),
        at_once=settings.get("batch_size", settings.get("max_num_seqs", costs["gpu"]["sequences"])),
        padded="batch_size" in settings,
        replayed=config["replay"]["settings"]["batch_size"],
        committed=generation["decoding"]["max_completion_tokens"],
        least_step=least.get(generation["engine"], least["other"]),
        least_training_step=least["other"],
        gpu=costs["gpu"],
        text=costs["text"],
    )


def _extra_passes(algorithm: str) -> int:
    """Return how often the training algorithm reads each completion beyond what GRPO itself does."""
    return plugins.declared("training", algorithm, "EXTRA_PASSES") or 0


def _budget(asked: ShardSpec) -> int:
    return asked.decoding.max_completion_tokens if asked.decoding is not None else 0
