"""What the files of states and of readers record about how they were made.

A reader needs states that are read as those that it was fitted on, and an actor that is opened and asked in the same
way. Such a file may come from anybody, so each value has the type and the bounds that a study's own value has.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from dualread.errors import DataError
from dualread.schema.answers import Choices, Decoding, Image, Measure
from dualread.schema.backbones import OpenedModel
from dualread.schema.base import MOST_IMAGES, Listed, Name, Positive, Section, Sha256, Share, Wire, Word
from dualread.schema.data import PluginChoice
from dualread.schema.groups import GroupedBy
from dualread.schema.replay import Kappa

# What is read once for all rows that share it; the last one shares nothing and caches nothing. The fastest comes first.
Shared = Literal["image prefix", "prompt", "nothing"]
READS: tuple[Shared, ...] = get_args(Shared)


class Facts(Section):
    """What experiments say about a checkpoint (`models/probe.py`)."""

    completion_type: Literal[0, 1] = 0  # token type of a completion; of no effect where a model has no token types
    # One of `READS`: the prompt up to and with its last image token, the whole prompt, or nothing.
    shared: Shared = READS[0]
    images_once: bool = True  # whether an image may be encoded once for all prompts about it, apart from them
    tree: bool = True  # whether many continuations of a prompt may be read in one pass

    @classmethod
    def read(cls, file: Path) -> Self:
        """Return the facts that the stage `probe_checkpoint` wrote to `file`."""
        return cls(**json.loads(file.read_bytes())["facts"])


USUAL = Facts()  # of most models


class PromptText(Section):
    """A prompt of the library, and the digest of its text (`models.prompts.template_sha256`)."""

    name: Name
    sha256: Sha256


class States(Section):
    """How the hidden states of an actor's answers were read; None where there are likelihoods alone."""

    backbone: str
    actor: str
    seed: int
    actor_digest: str  # the digest of the actor's artifact
    final_layer: int | None
    middle_layer: int | None
    kappa: Kappa | None  # temperature of the visual pooling
    positions: Any  # the rules of `models.replay.rules`
    example: dict[str, list[float]] | None  # what is read of the completions of `models.replay.rules.read_of_example`
    prompt: PromptText

    @model_validator(mode="after")
    def _are_all_or_none(self) -> Self:
        if len({value is None for value in (self.final_layer, self.middle_layer, self.kappa, self.example)}) != 1:
            raise ValueError("has some of final_layer, middle_layer, kappa and example. Expected all of them, or none.")
        return self

    def others(self, fitted: "States", *, of_another: bool = False) -> list[str]:
        """Return the fields that are not as in `fitted`. The prompt may differ: multiple choice shows its options.

        With `of_another`, the reader is applied to another actor, or to another seed, and these may differ, too.
        """
        may_differ = {"prompt", *(("actor", "seed", "actor_digest") if of_another else ())}
        return [
            name
            for name in States.model_fields
            if name not in may_differ and getattr(self, name) != getattr(fitted, name)
        ]


class ShardStates(States):
    """The header of features.safetensors: the states of one shard."""

    dataset: str
    split: str
    condition: str


class RequiredView(Section):
    """What the actor is asked or shown in addition, about its own answer."""

    name: Name  # the entry of `views` in the config
    image: Image  # which image is shown, or what is done to it; "original" is the question's own
    draws: Positive | None = None  # how often the image change is drawn; None for once, and then it is not recorded
    # Depths of the layers whose states the view gives; not recorded where there are none.
    layers: Listed[Share] | None = None
    measure: Measure | None = None  # what the view measures in place of states; not recorded where that is nothing
    groups: GroupedBy | None = None  # by what the view groups answers, in place of asking; not recorded where it asks
    prompt: PromptText
    decoding: Decoding | None = None  # how completions are drawn; None where choices are scored
    # The choices that are scored, see `models.generation.choices`; None where completions are drawn.
    choices: Choices | None = None
    forced: bool = False  # whether the actor's answer is read again with this image, instead of a new completion

    @model_serializer(mode="wrap")
    def _as_before(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write what views could always have; what they can have since then only where they have it."""
        return {
            name: value
            for name, value in write(self).items()
            if name not in ("draws", "layers", "measure", "groups") or value is not None
        }


_Roles = Annotated[Listed[Word], Field(min_length=1, max_length=MOST_IMAGES)]


class Requirements(Section):
    """What scoring the next image needs besides a reader's weights: which actor answers, and how it is asked."""

    model: Wire  # the settings with which the actor is opened; those of `OpenedModel` if it has a checkpoint
    facts: Wire  # what experiments say about its checkpoint: `Facts` if it has one
    checkpoint: dict[Word, Sha256]  # the sha256 of each file of its checkpoint; none if its answers were given
    prompt: PromptText  # the prompt of the question
    decoding: Decoding  # how the answer is drawn
    contract: Name  # the format of a completion, see `grading.contracts`
    # How many images the questions showed when the reader was fitted: per number, the role of each image, or `-` where
    # images had none. None means one image; an empty list, that no question was needed to fit it.
    images: Annotated[Listed[_Roles], Field(max_length=100)] | None = None
    # The views that the reader reads when it scores, in the order in which it reads them.
    views: Annotated[Listed[RequiredView], Field(max_length=100)] = ()
    # How reports are divided into claims, which the reader judges; not recorded where it judges whole answers.
    spans: PluginChoice | None = None

    def roles(self, n_images: int) -> Sequence[str]:
        """Return the role of each of so many images.

        Raises:
            DataError: The reader was not fitted on questions about so many.
        """
        if not self.fits(n_images):
            raise DataError(f"{n_images} images: expected {self.numbers}, as in the questions that the reader knows.")
        return next((roles for roles in self._images if len(roles) == n_images), ("-",) * n_images)

    def fits(self, n_images: int) -> bool:
        """Return whether the reader was fitted on questions about so many images."""
        return n_images > 0 and (not self._images or n_images in map(len, self._images))

    @property
    def numbers(self) -> str:
        """On how many images the reader was fitted, in words."""
        return " or ".join("one" if n == 1 else str(n) for n in sorted(set(map(len, self._images))))

    @property
    def _images(self) -> Sequence[Sequence[str]]:
        return (("-",),) if self.images is None else self.images

    @model_serializer(mode="wrap")
    def _as_before(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write `images` only where there are several, and `spans` only of claims."""
        written = write(self).items()
        return {name: value for name, value in written if name not in ("images", "spans") or value is not None}

    @model_validator(mode="after")
    def _can_be_opened(self) -> Self:
        if self.checkpoint:
            OpenedModel.from_spec(self.model, "scoring.model")
            Facts.from_spec(self.facts, "scoring.facts")
            # A file that leaves out a fact does not mean the usual one.
            if missing := sorted(Facts.model_fields.keys() - self.facts):
                raise ValueError(f"facts lacks {missing}")
        return self
