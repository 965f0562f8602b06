"""Actors, and what they are asked: generation, conditions, views, replay."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dualread.study.sections.kinds import (
    Distinct,
    Name,
    Names,
    NonEmpty,
    Place,
    Positive,
    Section,
    Settings,
    Share,
    Splits,
)

Contract = Literal["single", "dual"]  # the forms of a completion that lib/dualread/grading/parse.py reads
# A key of a YAML mapping may be a number or text: 17 and "17" are the same seed.
Seed = Annotated[int, Field(strict=False, ge=0)]
AtLeast0 = Annotated[float, Field(ge=0)]


class Given(Section):
    """Answers that are given: a service, or a file, answers in the place of a checkpoint."""

    folder: Annotated[str, Field(min_length=1)] = Field(
        description="Where requests are written, and `responses` are read; relative to the repository."
    )
    max_choices: Positive | None = Field(
        None, description="The most completions that the service gives per request; without it, one request gives all."
    )
    body: Settings = Field(default_factory=dict, description="What is laid over the body of every request.")


class Actor(Section):
    """Who answers: trained here, given as checkpoints or as answers, or (with none of it) the backbone as it comes."""

    label: str = Field(description="Its name in tables and figures.")
    checkpoints: Annotated[dict[str, Annotated[dict[Seed, Place], Field(min_length=1)]], Field(min_length=1)] | None = (
        Field(None, description="Where the actor comes from: backbone, then seed, then folder or repository.")
    )
    training: Name | None = Field(
        None, description="The plugin that trains it: lib/dualread/models/training/<name>.py."
    )
    reward: Name | None = Field(None, description="The plugin that rewards it: lib/dualread/models/rewards/<name>.py.")
    settings: Settings | None = Field(None, description="Settings of the training.")
    answers: Given | None = Field(None, description="Where its answers are, if they are given.")
    prompt: Name | None = Field(None, description="A prompt of its own.")
    contract: Contract | None = Field(None, description="The form of its completions; without it, that of its reward.")
    max_completion_tokens: Positive | None = Field(None, description="Longest answer, in place of the decoding's.")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        given = {"training", "reward", "settings"} & self.model_fields_set
        if len(given) in (1, 2):
            raise ValueError(f"has {sorted(given)} of `training`, `reward` and `settings`. Give all three or none.")
        return self

    @property
    def is_base(self) -> bool:
        """Whether this actor is the backbone as it comes."""
        return self.training is None and self.checkpoints is None and self.answers is None


class Decoding(Section):
    """How completions are drawn."""

    temperature: AtLeast0 = Field(description="0 is greedy.")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(description="The probability that a token is drawn from.")
    n_samples: Positive = Field(description="Completions per question.")
    max_completion_tokens: Positive = Field(description="Longest completion.")


class Generation(Section):
    """How answers are generated."""

    engine: Name = Field(description="The plugin that generates: lib/dualread/models/generation/<engine>.py.")
    settings: Settings = Field(default_factory=dict, description="Settings of the engine.")
    decoding: Decoding = Field(description="How answers are drawn, unless a condition or view has a decoding.")


class Condition(Section):
    """Under what an answer is committed. Without `datasets`, `splits` or `actors` it holds for all of them."""

    image: Literal["original", "donor", "shuffled"] = Field(description="Which image is shown.")
    prompt: Name | None = Field(None, description="A prompt of its own.")
    decoding: Decoding | None = Field(None, description="A decoding of its own.")
    completions: Name | None = Field(None, description="The condition whose completions are forced here.")
    control: Literal[True] | None = Field(None, description="Set where this is a control, no part of the main results.")
    datasets: Names | None = Field(None, description="The data sets that are asked.")
    splits: Splits | None = Field(None, description="The splits that are asked.")
    actors: Names | None = Field(None, description="The actors that are asked.")

    @model_validator(mode="after")
    def _forces_under_control(self) -> Self:
        if self.completions is not None and self.control is None:
            raise ValueError("has `completions` and no `control`. Add `control: true`, or give both or neither.")
        return self


class Choices(NonEmpty):
    """Completions whose likelihood is computed: words, or a range of integers."""

    words: Annotated[Distinct[Annotated[str, Field(min_length=1)]], Field(min_length=2)] | None = Field(
        None, description="The words; every spelling that is one token counts."
    )
    integers: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)] | None = Field(
        None, description="The first and the last integer."
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"has {sorted(self.model_fields_set)}. Expected either `words` or `integers`.")
        return self


class View(Section):
    """What an actor is asked or shown about its answers: further completions, choices, or an image."""

    prompt: Name | None = Field(None, description="A prompt in place of the answer's.")
    image: Literal["black"] | None = Field(None, description="States of the same completion beside this image.")
    decoding: Decoding | None = Field(None, description="Further completions, drawn in this way.")
    choices: Choices | None = Field(None, description="Completions whose likelihood is computed.")

    @model_validator(mode="after")
    def _gives_one(self) -> Self:
        if len(given := self.model_fields_set - {"prompt"}) != 1:
            raise ValueError(f"has {sorted(given) or 'nothing'}. Expected one of `decoding`, `choices` and `image`.")
        return self


class ReplaySettings(Section):
    """How replay is run."""

    batch_size: Positive = Field(description="Answers in one pass.")


class Agreement(Section):
    """How far a replay may differ from the generation that it replays."""

    max_mean_log_prob_difference: AtLeast0 = Field(description="Mean absolute difference of token log-probabilities.")
    max_argmax_mismatch_share: Share = Field(description="Share of greedy tokens that are not the replay's best.")
    argmax_tolerance: AtLeast0 = Field(description="Log-probability by which such a token may be worse and not count.")


class Replay(Section):
    """The teacher-forced pass over generated tokens that gives hidden states."""

    settings: ReplaySettings = Field(description="How it is run.")
    kappa: Annotated[float, Field(gt=0)] = Field(description="Temperature of the visual pooling.")
    agreement: Agreement = Field(description="How far it may differ from the generation.")
