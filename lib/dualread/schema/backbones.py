"""Backbones, which actors start from: checkpoints or recipes; and what the stages that make checkpoints are told."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dualread.schema.base import (
    Above0,
    ActorSpec,
    AtLeast0,
    ConfiguredPlugin,
    DatasetSplit,
    ModelSpec,
    Name,
    OnHub,
    Pixels,
    Place,
    Plugin,
    Positive,
    Prompt,
    Repository,
    Section,
    Seeds,
    Share,
    Tokens,
    Wire,
    Word,
)


class Size(Section):
    """How large a checkpoint is, for `dualread plan` and rehearsals with random weights. No result depends on it."""

    parameters: Above0
    """Parameters."""
    hidden_size: Positive
    """Width of a hidden state."""
    feed_forward: Positive
    """Width of the feed-forward layers of the language model."""
    layers: Positive
    """Layers of the language model."""
    attention_width: Positive
    """Width of the queries of one token in one layer, of all heads."""
    key_value_width: Positive
    """Width of a key, and of a value, of one token in one layer."""
    vocabulary: Positive
    """Entries of the vocabulary."""
    pixels_per_token: Positive
    """Pixels that become one image token."""
    patches_per_token: Positive
    """Patches of the vision tower that become one image token."""
    values_per_pixel: Positive
    """Numbers that the vision tower reads per pixel."""
    vision_width: Positive
    """Width of a state of the vision tower."""
    vision_feed_forward: Positive
    """Width of the feed-forward layers of the vision tower."""
    vision_layers: Positive
    """Layers of the vision tower."""
    vision_rotary: bool
    """Whether the vision tower rotates queries and keys by their positions."""


class Pool(Section):
    """The images and questions that a base is pretrained on."""

    name: Name
    """The plugin that makes them: lib/dualread/training/corpora/<name>.py."""
    dataset: Name | None = None
    """The data set whose training split it reads, where it reads one."""
    settings: Wire = Field(default_factory=dict)
    """Settings of the plugin."""


class Architecture(Section):
    """The architecture of a base that is trained from scratch."""

    name: Name
    """The plugin that builds it: lib/dualread/models/backbones/<name>.py."""
    vocabulary: Positive
    """Tokens of the tokenizer."""
    hidden_size: Positive
    """Width of a hidden state."""
    layers: Positive
    """Layers of the language model."""
    heads: Positive
    """Attention heads."""
    key_value_heads: Positive
    """Heads of keys and values."""
    feed_forward: Positive
    """Width of the feed-forward layers."""
    vision_hidden_size: Positive
    """Width of the vision tower."""
    vision_layers: Positive
    """Layers of the vision tower."""
    vision_heads: Positive
    """Attention heads of the vision tower."""
    patch_size: Positive
    """Width and height of a patch in pixels."""
    image_size: Positive
    """Width and height of an image in pixels."""
    max_positions: Positive
    """The longest sequence in tokens."""


class Pretraining(Section):
    """How a base is pretrained."""

    steps: Positive
    """Optimizer steps."""
    images_per_step: Positive
    """Images in a step."""
    questions_per_image: Positive
    """Questions about each image of a step."""
    learning_rate: Above0
    """Peak learning rate of the weight matrices; the rest has half of it."""
    warmup_steps: Positive
    """Steps until the peak."""
    weight_decay: AtLeast0
    """Weight decay of the weight matrices."""
    clip_norm: Above0
    """Largest norm of a gradient."""
    mixture: dict[str, Share]
    """The share of each prompt."""


class PretrainingReport(Section):
    """What is printed and logged about a pretrained base."""

    questions: Positive
    """Held-out questions that it answers."""
    max_completion_tokens: Positive
    """Longest answer in tokens."""


class Pretrain(Section):
    """The recipe of a base: a small model of the real architecture, trained from scratch."""

    seed: int
    """The seed of weights and batches."""
    pool: Pool
    """What it is trained on."""
    architecture: Architecture
    """Its architecture."""
    training: Pretraining
    """How it is trained."""
    report: PretrainingReport
    """What is reported about it."""


class BackboneSource(OnHub):
    """Where a backbone comes from: a checkpoint on the hub or in a folder, an adapter, a recipe, or a service."""

    folder: str | None = None
    """The folder of a checkpoint, relative to the repository."""
    adapter: Place | None = None
    """A LoRA adapter of peft, in place of a whole checkpoint."""
    base: Place | None = None
    """What the adapter was trained on."""
    pretrain: Pretrain | None = None
    """The recipe."""
    service: Annotated[str, Field(min_length=1)] | None = None
    """The name by which a service knows the model; its answers are given."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        sources = (self.hub, self.folder, self.adapter, self.pretrain, self.service)
        if sum(source is not None for source in sources) != 1 or (self.adapter is None) != (self.base is None):
            raise ValueError(
                f"has {sorted(self.model_fields_set)}. Expected one of `pretrain`, `hub`, `folder`, `service`, and"
                " `adapter` with its `base`."
            )
        return self


class Quantization(Section):
    """Weights that bitsandbytes rounds when a checkpoint is opened, for generation and replay."""

    bits: Literal[4, 8]
    """Bits per weight: 8 (LLM.int8) or 4 (NF4)."""


class QuantizedBy(Quantization):
    """The same in specs and files. With the module, its code and the version of its package are in the key."""

    module: Literal["models.quantized"] = "models.quantized"


class Opening(Section):
    """How a checkpoint is opened, and how its prompts are encoded."""

    dtype: Literal["float32", "bfloat16"]
    """Type of the weights in memory."""
    attention: Literal["sdpa", "eager", "flash_attention_2"]
    """Implementation of attention."""
    max_prompt_tokens: Tokens
    """The longest prompt in tokens, with its image."""
    min_pixels: Pixels | None = None
    """The least pixels that an image is resized to."""
    max_pixels: Pixels | None = None
    """The most pixels that an image is resized to."""
    quantization: Quantization | None = None
    """Round the weights when answers are given."""
    chat_template: Annotated[dict[Word, bool | int | Word], Field(max_length=100)] | None = None
    """Arguments of the chat template."""
    forbidden_tokens: Annotated[list[Word], Field(max_length=1000)] | None = None
    """Tokens of the vocabulary that no answer may contain."""
    shown_tokens: Annotated[list[Word], Field(max_length=1000)] | None = None
    """Special tokens of the vocabulary that stay in the text of answers, such as those that end thinking."""

    @model_validator(mode="after")
    def _has_both_limits(self) -> Self:
        if (self.min_pixels is None) != (self.max_pixels is None) or (self.min_pixels or 0) > (self.max_pixels or 0):
            raise ValueError(
                f"min_pixels is {self.min_pixels}, max_pixels is {self.max_pixels}. Expected both or neither, and the"
                " first not to be larger."
            )
        return self

    def given(self) -> dict[str, Any]:
        """Return what is set, as the specs of stages have it that read the weights as they are."""
        return self.model_dump(exclude_none=True, exclude={"quantization"})

    def answering(self) -> dict[str, Any]:
        """Return what is set, as the specs of stages have it in which the model answers, or answers are replayed."""
        if self.quantization is None:
            return self.given()
        return {**self.given(), "quantization": QuantizedBy(bits=self.quantization.bits).model_dump()}


class OpenedModel(Opening):
    """How a checkpoint was opened, as specs and files have it."""

    quantization: QuantizedBy | None = None


class Backbone(Section):
    """A model that actors start from."""

    label: str
    """Its name in tables and figures."""
    source: BackboneSource
    """Where it comes from."""
    settings: Opening | None = None
    """How it is opened, the same in every stage."""
    seeds: Seeds | None = None
    """Its own seeds in place of the study's."""
    training: Wire = Field(default_factory=dict)
    """Laid over the settings of actors trained on it."""
    size: Size | None = None
    """How large it is, for `dualread plan`."""

    @model_validator(mode="after")
    def _can_be_opened(self) -> Self:
        if self.settings is None and self.source.service is None:
            raise ValueError("has no `settings`. Expected how it is opened: dtype, attention, max_prompt_tokens, ...")
        return self

    def opening(self) -> dict[str, Any]:
        """Return how it is opened, as in the specs of stages that read its weights; nothing for a service's model."""
        return {} if self.settings is None else self.settings.given()

    def answering(self) -> dict[str, Any]:
        """Return how it is opened where the model answers, or answers are replayed; nothing for a service's model."""
        return {} if self.settings is None else self.settings.answering()


class PretrainBaseSpec(ModelSpec):
    """A base that is pretrained from scratch."""

    seed: int  # the seed of weights and batches
    pool: ConfiguredPlugin  # what it is trained on
    architecture: ConfiguredPlugin  # what it is built of: the module, and the sizes that its `create` needs
    training: Pretraining
    reported: PretrainingReport


class AdapterSpec(Section):
    """An adapter that was trained elsewhere."""

    repository: Repository | None = None  # where it is on the hub; None if the folder is an input
    base: str | None = None  # the repository that its base comes from; None if it comes from none


class CopyCheckpointSpec(Section):
    """A checkpoint that was trained elsewhere."""

    model: Wire  # the settings with which it is opened
    repository: Repository | None = None  # where it is on the hub; None if the folder is an input
    adapter: AdapterSpec | None = None  # what is merged into it; None if nothing is


class ProbeCheckpointSpec(ModelSpec):
    """Experiments with a checkpoint."""

    # What samples for the trainings that read the facts, where that has an environment of its own.
    rollouts: Plugin | None = None


class TrainActorSpec(ActorSpec):
    """An actor that is trained from a base."""

    examples: DatasetSplit  # the questions that it learns from
    training: Plugin
    reward: Plugin
    contract: Plugin  # the format of the completions that the reward judges
    prompt: Prompt
    settings: Wire
    rollouts: Plugin | None = None  # what samples the completions in place of the trained model's own loop
