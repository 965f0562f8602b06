"""Backbones: the models that actors start from, as checkpoints or as recipes."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dualread.study.sections.kinds import Name, OnHub, Place, Positive, Section, Seeds, Settings, Share

Above0 = Annotated[float, Field(gt=0)]


class Size(Section):
    """How large a checkpoint is. Only `dualread plan` reads this; no result depends on it."""

    parameters: Above0 = Field(description="Parameters.")
    hidden_size: Positive = Field(description="Width of a hidden state.")
    feed_forward: Positive = Field(description="Width of the feed-forward layers of the language model.")
    layers: Positive = Field(description="Layers of the language model.")
    attention_width: Positive = Field(description="Width of the queries of one token in one layer, of all heads.")
    key_value_width: Positive = Field(description="Width of a key, and of a value, of one token in one layer.")
    vocabulary: Positive = Field(description="Entries of the vocabulary.")
    pixels_per_token: Positive = Field(description="Pixels that become one image token.")
    patches_per_token: Positive = Field(description="Patches of the vision tower that become one image token.")
    values_per_pixel: Positive = Field(description="Numbers that the vision tower reads per pixel.")
    vision_width: Positive = Field(description="Width of a state of the vision tower.")
    vision_feed_forward: Positive = Field(description="Width of the feed-forward layers of the vision tower.")
    vision_layers: Positive = Field(description="Layers of the vision tower.")
    vision_rotary: bool = Field(description="Whether the vision tower rotates queries and keys by their positions.")


class Pool(Section):
    """The images and questions that a base is pretrained on."""

    name: Name = Field(description="The plugin that makes them: lib/dualread/data/corpora/<name>.py.")
    dataset: Name | None = Field(None, description="The data set whose training split it reads, where it reads one.")
    settings: Settings = Field(default_factory=dict, description="Settings of the plugin.")


class Architecture(Section):
    """The architecture of a base that is trained from scratch."""

    name: Name = Field(description="The plugin that builds it: lib/dualread/models/backbones/<name>.py.")
    vocabulary: Positive = Field(description="Tokens of the tokenizer.")
    hidden_size: Positive = Field(description="Width of a hidden state.")
    layers: Positive = Field(description="Layers of the language model.")
    heads: Positive = Field(description="Attention heads.")
    key_value_heads: Positive = Field(description="Heads of keys and values.")
    feed_forward: Positive = Field(description="Width of the feed-forward layers.")
    vision_hidden_size: Positive = Field(description="Width of the vision tower.")
    vision_layers: Positive = Field(description="Layers of the vision tower.")
    vision_heads: Positive = Field(description="Attention heads of the vision tower.")
    patch_size: Positive = Field(description="Width and height of a patch in pixels.")
    image_size: Positive = Field(description="Width and height of an image in pixels.")
    max_positions: Positive = Field(description="The longest sequence in tokens.")


class PretrainTraining(Section):
    """How a base is pretrained."""

    steps: Positive = Field(description="Optimizer steps.")
    images_per_step: Positive = Field(description="Images in a step.")
    questions_per_image: Positive = Field(description="Questions about each image of a step.")
    learning_rate: Above0 = Field(description="Peak learning rate of the weight matrices; the rest has half of it.")
    warmup_steps: Positive = Field(description="Steps until the peak.")
    weight_decay: Annotated[float, Field(ge=0)] = Field(description="Weight decay of the weight matrices.")
    clip_norm: Above0 = Field(description="Largest norm of a gradient.")
    mixture: dict[str, Share] = Field(description="The share of each prompt.")


class PretrainReport(Section):
    """What is printed and logged about a pretrained base."""

    questions: Positive = Field(description="Held-out questions that it answers.")
    max_completion_tokens: Positive = Field(description="Longest answer in tokens.")


class Pretrain(Section):
    """The recipe of a base: a small model of the real architecture, trained from scratch."""

    seed: int = Field(description="The seed of weights and batches.")
    pool: Pool = Field(description="What it is trained on.")
    architecture: Architecture = Field(description="Its architecture.")
    training: PretrainTraining = Field(description="How it is trained.")
    report: PretrainReport = Field(description="What is reported about it.")


class BackboneSource(OnHub):
    """Where a backbone comes from: a checkpoint on the hub or in a folder, an adapter, a recipe, or a service."""

    folder: str | None = Field(None, description="The folder of a checkpoint, relative to the repository.")
    adapter: Place | None = Field(None, description="A LoRA adapter of peft, in place of a whole checkpoint.")
    base: Place | None = Field(None, description="What the adapter was trained on.")
    pretrain: Pretrain | None = Field(None, description="The recipe.")
    service: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="The name by which a service knows the model; its answers are given."
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = (self.hub, self.folder, self.adapter, self.pretrain, self.service)
        if sum(one is not None for one in given) != 1 or (self.adapter is None) != (self.base is None):
            raise ValueError(
                f"has {sorted(self.model_fields_set)}. Expected one of `pretrain`, `hub`, `folder`, `service`, and"
                " `adapter` with its `base`."
            )
        return self


class Quantization(Section):
    """Weights that bitsandbytes rounds when a checkpoint is opened, for generation and replay."""

    bits: Literal[4, 8] = Field(description="Bits per weight: 8 (LLM.int8) or 4 (NF4).")


class Opening(Section):
    """How a checkpoint is opened, and how its prompts are encoded."""

    dtype: Literal["float32", "bfloat16"] = Field(description="Type of the weights in memory.")
    attention: Literal["sdpa", "eager", "flash_attention_2"] = Field(description="Implementation of attention.")
    max_prompt_tokens: Positive = Field(description="The longest prompt in tokens, with its image.")
    min_pixels: Positive | None = Field(None, description="The least pixels that an image is resized to.")
    max_pixels: Positive | None = Field(None, description="The most pixels that an image is resized to.")
    quantization: Quantization | None = Field(None, description="Round the weights when answers are given.")
    chat_template: dict[str, bool | int | str] | None = Field(None, description="Arguments of the chat template.")
    forbidden_tokens: list[str] | None = Field(None, description="Tokens of the vocabulary that no answer may contain.")

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
        # With its module, the code and the version of its package are in the key.
        return {**self.given(), "quantization": {"module": "models.quantized", "bits": self.quantization.bits}}


class Backbone(Section):
    """A model that actors start from."""

    label: str = Field(description="Its name in tables and figures.")
    source: BackboneSource = Field(description="Where it comes from.")
    settings: Opening | None = Field(None, description="How it is opened, the same in every stage.")
    seeds: Seeds | None = Field(None, description="Its own seeds in place of the study's.")
    training: Settings = Field(default_factory=dict, description="Laid over the settings of actors trained on it.")
    size: Size | None = Field(None, description="How large it is, for `dualread plan`.")

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
