"""What scoring the next image needs besides a reader's weights: which actor answers, and how it is asked.

Stage fit_readers records it in the provenance of every reader, under `NAME`, so that one file says all that it depends
on. The layers and positions of the states, and kappa, are beside it under `replay`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dualread.errors import ArtifactError
from dualread.readers import header
from dualread.readers.base import FittedReader

NAME = "scoring"


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt of the library, and the digest of its text (`models.prompts.template_sha256`)."""

    name: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class View:
    """What the actor is asked or shown in addition, about its own answer.

    Attributes:
        name: The entry of `views` in the config.
        image: Which image is shown, see `specs.generation.Image`; "original" is the question's own.
        prompt: The prompt.
        decoding: How completions are drawn; None where choices are scored.
        choices: The choices that are scored, see `models.generation.choices`; None where completions are drawn.
        forced: Whether the actor's answer is read again with this image, instead of a new completion.
    """

    name: str
    image: str
    prompt: Prompt
    decoding: Mapping[str, Any] | None = None
    choices: Mapping[str, Any] | None = None
    forced: bool = False


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """What a reader depends on besides its weights.

    Attributes:
        model: The settings with which it is opened: dtype, attention, pixel limits, largest number of prompt tokens.
        facts: What experiments say about the actor's checkpoint (`models.backbones.facts`).
        checkpoint: The sha256 of each file of the actor's checkpoint.
        prompt: The prompt of the question.
        decoding: How the answer is drawn.
        contract: The form of a completion, see `grading.parse`.
        views: The views that the reader reads when it scores, in the order in which it reads them.
    """

    model: Mapping[str, Any]
    facts: Mapping[str, Any]
    checkpoint: Mapping[str, str]
    prompt: Prompt
    decoding: Mapping[str, Any]
    contract: str
    views: Sequence[View] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the requirements as JSON values."""
        return asdict(self)


def requirements_of(reader: FittedReader, *, where: str) -> Requirements:
    """Return what `reader` depends on.

    Args:
        reader: A fitted reader.
        where: The file that errors name.

    Raises:
        ArtifactError: The reader does not say it, because it was fitted by an earlier version of the library; or it
            says something that no study may say.
    """
    try:
        known = dict(reader.provenance[NAME])
        header.check(known, where)
        views = tuple(View(**{**view, "prompt": Prompt(**view["prompt"])}) for view in known["views"])
        return Requirements(**{**known, "prompt": Prompt(**known["prompt"]), "views": views})
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{where}: the reader does not say how its actor has to be asked ({error!r} in its provenance). Expected a"
            f" reader whose provenance has {NAME!r}, as this version fits them. Fit it again."
        ) from error
