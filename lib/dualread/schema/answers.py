"""Actors, and what they are asked: generation, conditions, views, replay; and what the stages of answers are told."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from dualread.schema.base import (
    ActorSpec,
    Checkpoint,
    ConfiguredPlugin,
    Distinct,
    Listed,
    Name,
    Names,
    NonEmpty,
    Plugin,
    Positive,
    Prompt,
    RunSpec,
    Section,
    Share,
    Splits,
    Tokens,
    Wire,
    Word,
)
from dualread.schema.data import ClaimsSpec
from dualread.schema.groups import Groups
from dualread.schema.replay import PassReading, Replay

# A key of a YAML mapping may be a number or text: 17 and "17" are the same seed.
Seed = Annotated[int, Field(strict=False, ge=0)]
OfSeeds = Annotated[dict[Seed, Checkpoint], Field(min_length=1)]


class Requests(Section):
    """What a service is asked, besides the questions."""

    max_choices: Positive | None = None
    """The most completions that the service gives per request; without it, one request gives all."""
    body: Wire = Field(default_factory=dict)
    """What is laid over the body of every request."""


class Given(Requests):
    """Answers that are given: a service, or a file, answers in the place of a checkpoint."""

    folder: Annotated[str, Field(min_length=1)]
    """Where requests are written, and `responses` are read; relative to the repository."""


class Actor(Section):
    """Who answers: trained here, given as checkpoints or as answers, another actor that is asked otherwise, or (with
    none of it) the backbone as it comes.
    """

    label: str
    """Its name in tables and figures."""
    checkpoints: Annotated[dict[str, OfSeeds], Field(min_length=1)] | None = None
    """Where the actor comes from: backbone, then seed, then folder, repository or adapter."""
    training: Name | None = None
    """The plugin that trains it: lib/dualread/training/<name>.py."""
    reward: Name | None = None
    """The plugin that rewards it: lib/dualread/training/rewards/<name>.py."""
    settings: Wire | None = None
    """Settings of the training."""
    answers: Given | None = None
    """Where its answers are, if they are given."""
    same_as: Name | None = None
    """The actor whose checkpoint it is, asked in another way: with a prompt, or a format of completions, of its own."""
    prompt: Name | None = None
    """A prompt of its own."""
    contract: Name | None = None
    """The format of its completions: lib/dualread/grading/contracts/<name>.py. Without it, that of its reward."""
    max_completion_tokens: Tokens | None = None
    """Longest answer, in place of the decoding's."""

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        present = {"training", "reward", "settings"} & self.model_fields_set
        if len(present) in (1, 2):
            raise ValueError(f"has {sorted(present)} of `training`, `reward` and `settings`. Give all three or none.")
        return self

    @property
    def is_base(self) -> bool:
        """Whether this actor is the backbone as it comes."""
        return all(value is None for value in (self.training, self.checkpoints, self.answers, self.same_as))


class Sampling(Section):
    """How tokens are drawn, and how many completions."""

    temperature: Annotated[float, Field(ge=0, le=100)]
    """0 is greedy."""
    top_p: Annotated[float, Field(gt=0, le=1)]
    """The probability that a token is drawn from."""
    n_samples: Annotated[int, Field(ge=1, le=1000)]
    """Completions per question."""


class Decoding(Sampling):
    """How completions are drawn."""

    max_completion_tokens: Tokens
    """Longest completion."""


class ViewDecoding(Sampling):
    """How the completions of a view are drawn."""

    max_completion_tokens: Tokens | None = None
    """Longest completion; without it, that of `generation.decoding`."""


class Generation(Section):
    """How answers are generated."""

    engine: Name
    """The plugin that generates: lib/dualread/models/generation/<engine>.py."""
    settings: Wire = Field(default_factory=dict)
    """Settings of the engine."""
    decoding: Decoding
    """How answers are drawn, unless a condition or view has a decoding."""


class ChosenImage(ConfiguredPlugin):
    """An image change as specs name it."""

    role: str | None = None  # the role of the images that it changes; None for all images of a question


class ImageChange(Section):
    """An image change with its settings."""

    name: Name
    """The plugin: lib/dualread/models/images/<name>.py."""
    settings: Wire = Field(default_factory=dict)
    """Settings of the plugin, such as its `strength`."""
    role: Name | None = None
    """The role of the images that it changes, where questions show several; all of them by default."""


# An image change; its name alone if it has no settings.
Image = Annotated[
    Annotated[Name, Tag("name")] | Annotated[ImageChange, Tag("mapping")],
    Discriminator(lambda value: "mapping" if isinstance(value, Mapping | ImageChange) else "name"),
]


def name_and_settings(image: Image) -> tuple[str, Wire]:
    """Return the plugin of an image change, and its settings."""
    return (image, {}) if isinstance(image, str) else (image.name, image.settings)


class Measure(Section):
    """A further pass over each completion."""

    name: Name
    """The plugin: lib/dualread/models/measures/<name>.py."""
    settings: Wire = Field(default_factory=dict)
    """Settings of the plugin."""


class Condition(Section):
    """Under what an answer is committed. Without `datasets`, `splits` or `actors` it holds for all of them."""

    image: Image
    """Which image is shown: `original`, or another plugin of lib/dualread/models/images."""
    prompt: Name | None = None
    """A prompt of its own."""
    contract: Name | None = None
    """The format of the completions that this prompt asks for; without it, a contract of the prompt's name, if any."""
    decoding: Decoding | None = None
    """A decoding of its own."""
    completions: Name | None = None
    """The condition whose completions are forced here."""
    control: Literal[True] | None = None
    """Set where this is a control, no part of the main results."""
    datasets: Names | None = None
    """The data sets that are asked."""
    splits: Splits | None = None
    """The splits that are asked."""
    actors: Names | None = None
    """The actors that are asked."""

    @model_validator(mode="after")
    def _forces_under_control(self) -> Self:
        if self.completions is not None and self.control is None:
            raise ValueError("has `completions` and no `control`. Add `control: true`, or give both or neither.")
        return self


class Choices(NonEmpty):
    """Completions whose likelihood is computed: words, a range of integers, or the choices of each question."""

    words: Annotated[Distinct[Annotated[Word, Field(min_length=1)]], Field(min_length=2, max_length=100)] | None = None
    """The words; every spelling that is one token counts."""
    integers: Annotated[list[Annotated[int, Field(ge=0, le=10_000)]], Field(min_length=2, max_length=2)] | None = None
    """The first and the last integer."""
    options: Literal[True] | None = None
    """Each question's options in place of its answer; yes and no for a closed question without options."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if len(present := sorted(name for name, value in self if value is not None)) != 1:
            raise ValueError(f"has {present}. Expected one of `words`, `integers` and `options`.")
        return self


class View(Section):
    """What an actor is asked or shown about its answers (further completions, choices, or states beside an image), or
    which of its answers mean the same.
    """

    prompt: Name | None = None
    """A prompt in place of the answer's."""
    image: Image | None = None
    """What is done to the image that the condition shows, or the image in its place: a plugin of
    lib/dualread/models/images. Without decoding and choices, the view gives the states of the same completion."""
    draws: Annotated[int, Field(ge=2, le=1000)] | None = None
    """How often the image change is drawn; each draw is asked for as many completions as the decoding says."""
    layers: Annotated[Distinct[Share], Field(min_length=1)] | None = None
    """Depths of layers, from 0 to 1, of which the states of the answer are given; in a view of states alone."""
    measure: Measure | None = None
    """What a further pass over the same completion measures, in place of states."""
    decoding: ViewDecoding | None = None
    """Further completions, drawn in this way."""
    choices: Choices | None = None
    """Completions whose likelihood is computed."""
    groups: Groups | None = None
    """Which completions of other views mean the same; nothing is asked."""

    @model_validator(mode="after")
    def _gives_one(self) -> Self:
        if self.groups is not None and len(self.model_fields_set) > 1:
            raise ValueError(f"has `groups` and {sorted(self.model_fields_set - {'groups'})}. Expected `groups` alone.")
        present = [name for name in ("decoding", "choices", "groups") if getattr(self, name) is not None]
        if len(present) > 1 or not (present or self.image):
            what = present or "nothing"
            raise ValueError(f"has {what}. Expected `decoding`, `choices` or `groups`, or else an `image`.")
        if self.draws is not None and not (self.image and self.decoding):
            raise ValueError("has `draws`. Expected an `image` that is drawn, and the `decoding` of its completions.")
        if self.layers is not None and present:
            raise ValueError("has `layers`. Expected an `image` without `decoding` and `choices`.")
        if self.measure is not None and (present or self.layers):
            raise ValueError("has `measure`. Expected an `image` without `decoding`, `choices` and `layers`.")
        return self

    @property
    def gives_states(self) -> bool:
        """Whether it gives the states of the committed completion beside another image."""
        return self.decoding is None and self.choices is None and self.groups is None


class Shard(Section):
    """The answers to one split under one condition."""

    dataset: str
    split: str
    condition: str  # the condition; for a view of its answers, the condition and the view: "original/p_true"

    @property
    def name(self) -> str:
        """The shard in names of inputs and in messages."""
        return f"{self.dataset}/{self.split}/{self.condition}"


class ShardSpec(Shard):
    """What an actor is shown and asked; generation and replay of a shard have it in common."""

    image: ChosenImage  # what is shown: the image change of the condition, or of a view that has one
    prompt: Prompt
    decoding: Decoding | None = None  # how completions are drawn; None where choices are scored
    choices: Choices | None = None  # the completions whose likelihood is computed
    # The condition whose committed completions are forced here; None if the shard has its own.
    completions: str | None = None
    # For a view with an image change of its own, that of its condition, to which the view's is applied.
    shows: ChosenImage | None = None
    draws: int | None = None  # how often the image change is drawn for each question; None for once
    # Depths of the layers whose states a view gives; None for the states that a replay gives.
    layers: Listed[Share] | None = None
    measure: ConfiguredPlugin | None = None  # what a view measures in place of states
    # How the committed completions are parsed, for a prompt that contains the answer. Questions whose completion has no
    # answer are not asked.
    answer_contract: Plugin | None = None
    # What ends the thinking of the committed completions before their answer; None where they do not think.
    thinking_ends: str | None = None

    @property
    def is_greedy(self) -> bool:
        """Whether each question has one answer of its own here, of the most probable tokens."""
        if self.decoding is None or self.completions is not None:
            return False
        return self.decoding.temperature == 0 and self.n_completions == 1

    @property
    def n_completions(self) -> int:
        """The completions per question; 1 where choices are scored."""
        return 1 if self.decoding is None else self.decoding.n_samples * (self.draws or 1)

    @property
    def images(self) -> tuple[ChosenImage, ...]:
        """The image changes in their order: that of the condition, and that of the view."""
        return (self.image,) if self.shows is None else (self.shows, self.image)


class GenerateSpec(ActorSpec):
    """An actor's answers to a shard, or a view of them."""

    shard: ShardSpec
    engine: ConfiguredPlugin  # the plugin that generates
    states: PassReading | None = None  # what is read of the answers' states while they are made; None for nothing


class ReplaySpec(ActorSpec):
    """The hidden states of a shard's completions."""

    shard: ShardSpec
    replay: Replay
    optional_tensors: Listed[str] | None = None  # those of `OPTIONAL_TENSORS` that are stored; None for none
    # What the generation has read, so that a sample alone is replayed; None if all of them are.
    states: PassReading | None = None
    # What divides completions into claims, whose states are stored; None for the states of whole answers.
    spans: ConfiguredPlugin | None = None


class GradeSpec(Shard, RunSpec):
    """The grades of one shard."""

    contract: Plugin  # the format of the completions
    image: ConfiguredPlugin  # which image was shown; its reference answers count
    completions: str | None = None  # the condition whose completions are forced here; None if the shard has its own
    claims: ClaimsSpec | None = None  # how claims are graded in the place of answers; None where answers are


class Service(Requests):
    """The service that answers."""

    model: str  # the name by which it knows the model
    log_probs: bool  # whether it is asked for the log-probabilities of the tokens of its answers


class DescribeServiceSpec(RunSpec):
    """An actor whose answers are given."""

    model: str  # the name by which the service knows the model
    # The reason for each method that the study leaves out, because given answers lack what it reads.
    left_out: dict[str, str]


class ReadAnswersSpec(RunSpec):
    """The given answers to a shard, or a view of them."""

    service: Service
    shard: ShardSpec


class ReadLikelihoodsSpec(RunSpec):
    """The likelihood of each given answer of a shard."""

    shard: ShardSpec
