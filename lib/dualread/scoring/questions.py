"""What a user asks: a question about an image, checked before an actor sees it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from dualread.data.datasets.base import FEWEST_OPTIONS, MOST_OPTIONS
from dualread.data.given_images import read
from dualread.data.images import Decoded, content_sha256
from dualread.data.questions.markup import Markup, control_tokens
from dualread.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from dualread.models.backbones.encode import Encoder

    Given = Path | str | bytes | BinaryIO | Image | np.ndarray | Decoded


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about an image.

    Attributes:
        image: The image's file, its bytes, or a picture in memory; see `given_images.read`.
        question: The question, verbatim.
        options: The two to ten options of a multiple-choice question; empty for other questions.
        donor: Another image, about which the same question is asked as well.
    """

    image: "Given"
    question: str
    options: Sequence[str] = ()
    donor: "Given | None" = None


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One question as it is put to an actor, with one image.

    Attributes:
        image: The image's file, or a decoded picture.
        content: The digest of the image's content.
        question: The question.
        options: The options of a multiple-choice question, or none.
        notes: What a person has to know about how the image is shown.
    """

    image: "Path | Image"
    content: str
    question: str
    options: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What errors name; samples are drawn by it, so that they depend on the image's content, never on its name."""
        return f"image {self.content[:12]}, {self.question!r}"


def shown(asked: Question, image: "Given", encoder: "Encoder", *, bits: int | None = None) -> Shown:
    """Return `asked` about `image`, which is the question's own or its donor; `bits` is as in `given_images.read`.

    Raises:
        DataError: The question is no text, empty, or contains a control token of the model or other markup of
            chats; there are one option or more than ten; or the image cannot be read.
    """
    _check_text(asked, encoder.tokenizer)
    found = image if isinstance(image, Decoded) else read(image, bits=bits)
    picture = Path(image) if isinstance(image, str | Path) and found.own else found.image
    return Shown(
        image=picture,
        content=content_sha256(picture),
        question=asked.question,
        options=tuple(asked.options),
        notes=(*found.notes, *found.doubts),
    )


def _check_text(asked: Question, tokenizer: Any) -> None:
    options = asked.options
    if isinstance(options, str) or not all(isinstance(text, str) for text in (asked.question, *options)):
        raise DataError(f"question {asked.question!r}, options {options!r}: expected a text and a list of texts.")
    if any("\ud800" <= character <= "\udfff" for text in (asked.question, *options) for character in text):
        raise DataError("the text holds half of a character (a lone surrogate), which no file can hold. Correct it.")
    if not asked.question.strip():
        raise DataError("the question is empty. Expected a text such as 'Is there a lesion?'.")
    if options and not FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS:
        raise DataError(f"{len(options)} options, expected none, or {FEWEST_OPTIONS} to {MOST_OPTIONS}.")
    if problem := Markup(control_tokens(tokenizer)).problem("the question", [asked.question, *options]):
        raise DataError(problem)
