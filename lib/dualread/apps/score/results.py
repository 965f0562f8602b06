"""A question about images, and what scoring returns: an answer with its confidences, or why there is none.

A question is checked before an actor sees it. The threshold that travels with a reader decides whether to keep an
answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, get_args

from dualread.data.given_images import read
from dualread.data.images import Decoded, content_sha256
from dualread.data.questions.markup import Markup, control_tokens
from dualread.errors import DataError
from dualread.evaluation.thresholds import Decision
from dualread.grading.options import choices_by_name
from dualread.schema.base import TOGETHER, AnswerType
from dualread.schema.columns import FEWEST_OPTIONS, MOST_OPTIONS

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from dualread.models.backbones.encode import Encoder
    from dualread.schema.data import CtWindows
    from dualread.schema.recorded import Requirements

    GivenImage = Path | str | bytes | BinaryIO | Image | np.ndarray | Decoded


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about an image, or about several.

    Attributes:
        image: The image's file (`stack.tif#2` for its second frame), its bytes, a file object open for reading bytes, a
            Pillow image, or an array of 8-bit values [height, width] or [height, width, 3]; or a list of them, in the
            order in which the reader's study shows them.
        question: The question, verbatim.
        options: The two to ten options of a multiple-choice question; empty for other questions.
        answer_type: "closed" for a question without options whose choices are yes and no, for methods that read the
            probabilities of a question's choices; "open" or None for others. The actor is asked in the same way.
        donor: Another image, or a list of as many, about which the same question is asked as well.
    """

    image: "GivenImage | Sequence[GivenImage]"
    question: str
    options: Sequence[str] = ()
    answer_type: str | None = None
    donor: "GivenImage | Sequence[GivenImage] | None" = None


@dataclass(frozen=True, kw_only=True)
class ShownQuestion:
    """One question as it is put to an actor.

    `images` are files or decoded pictures, with the digest of the content of each, and its role. `choices` are its
    options by their letters, or yes and no; there are none of other questions. `notes` are what a person has to know
    about how the image is shown.
    """

    images: "Sequence[Path | Image]"
    contents: Sequence[str]
    roles: Sequence[str]
    question: str
    options: tuple[str, ...]
    choices: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What errors name; samples are drawn by it, so that they depend on the image's content, never on its name."""
        return f"image {TOGETHER.join(content[:12] for content in self.contents)}, {self.question!r}"


def shown(
    asked: Question,
    image: "GivenImage | Sequence[GivenImage]",
    encoder: "Encoder",
    required: "Requirements",
    *,
    bits: int | None = None,
    ct_windows: "CtWindows | None" = None,
) -> ShownQuestion:
    """Return `asked` about `image`, which is the question's own or its donor, as the reader's study would ask it.

    A DataError says what is wrong with the question, its options, its answer type or an image, or that the reader's
    study shows more images, or fewer.
    """
    options = asked.options
    if isinstance(options, str) or not all(isinstance(text, str) for text in (asked.question, *options)):
        raise DataError(f"question {asked.question!r}, options {options!r}: expected a text and a list of texts.")
    if not asked.question.strip():
        raise DataError("the question is empty. Expected a text such as 'Is there a lesion?'.")
    if options and not FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS:
        raise DataError(f"{len(options)} options, expected none, or {FEWEST_OPTIONS} to {MOST_OPTIONS}.")
    if asked.answer_type not in (None, *get_args(AnswerType)):
        raise DataError(f"answer_type {asked.answer_type!r:.100}: expected {' or '.join(get_args(AnswerType))}.")
    check_texts([asked.question, *options], encoder.tokenizer)
    sources: list[Any] = list(image) if isinstance(image, list | tuple) else [image]
    roles, images, notes = required.roles(len(sources)), [], []
    for source in sources:
        decoded = source if isinstance(source, Decoded) else read(source, bits=bits, ct_windows=ct_windows)
        images.append(Path(source) if isinstance(source, str | Path) and decoded.own else decoded.image)
        notes += [*decoded.notes, *decoded.doubts]
    return ShownQuestion(
        images=images,
        contents=[content_sha256(picture) for picture in images],
        roles=roles,
        question=asked.question,
        options=tuple(asked.options),
        choices=choices_by_name(asked.options, asked.answer_type),
        notes=tuple(notes),
    )


def check_texts(texts: Sequence[str], tokenizer: Any) -> None:
    """Refuse texts of people with a control token of the model, other markup of chats, or half of a character."""
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        raise DataError("the text holds half of a character (a lone surrogate), which no file can hold. Correct it.")
    if problem := Markup(control_tokens(tokenizer)).problem("the question", texts):
        raise DataError(problem)


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """What one method says about an answer.

    Attributes:
        confidence: The probability in [0, 1] that the answer is correct; None where the reading has none.
        score: The raw score, on the method's own scale; higher is more confident. None where the reading has none.
        imputed: Whether the method has no value here, so that its confidence is 0.5.
    """

    confidence: float | None
    score: float | None
    imputed: bool


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of a report, and how far it can be trusted; `per` and `methods` are as in `Reading`.

    Attributes:
        start: Its first character in the completion.
        end: The character after its last one.
        text: What stands there.
        confidence: The reader's probability that it is supported; None where there is none, see `reason`.
        psr: As in `Reading`, read at the token before the claim.
        reason: Why there is no confidence; None if there is one.
        keep: Whether to keep it, by the threshold that travels with the reader; None without a threshold.
    """

    start: int
    end: int
    text: str
    confidence: float | None
    psr: float | None
    per: float | None
    methods: Mapping[str, Confidence]
    reason: str | None
    keep: bool | None


@dataclass(frozen=True, kw_only=True)
class SetOption:
    """A choice of a question: its text, its probability among all of them, and whether it is in the answer set."""

    text: str
    probability: float
    in_set: bool | None


@dataclass(frozen=True, kw_only=True)
class AnswerSet:
    """Which choices of a question are likely enough for the right one to be among them (`evaluation.answer_sets`).

    Attributes:
        method: The method whose probabilities these are.
        miss_percent: In how many of 100 new images of the validation questions' source a set misses the right choice,
            at most.
        threshold: The smallest probability in a set; None if there is none, and then `in_set` is None, too.
        n_clusters: The number of images or patients that chose it.
        options: The question's options, or yes and no, in their order; none of other questions.
        reason: Why there is no set; None if there is one, which may be empty.
    """

    method: str
    miss_percent: int
    threshold: float | None
    n_clusters: int
    options: Sequence[SetOption]
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """An actor's answer about one image, and how far it can be trusted.

    Attributes:
        answer: The answer; None if the completion has no valid answer block.
        completion: All that the actor said.
        parse_status: Whether answer and stated confidence are valid, see `grading.parse.Parsed.status`.
        finish_reason: "stop", or "length" if the completion was cut off at its largest number of tokens.
        confidence: The reader's probability that the answer is correct; None where there is none, see `reason`.
        psr: PSR, the part of it that is read before the answer; None without such a part, or without a finite state.
        per: PER, the part of it that is read after the answer; None without such a part, or without a confidence.
        methods: What each method that was asked for says, by name.
        reason: Why there is no confidence: no answer, or numbers of the model that are not finite.
        distance_percentile: How unlike the validation questions this one is to the model, from 0 to 100 (see
            `distance`); None where the readers bring nothing to tell it, or a state is not finite.
        answer_sets: A set for each threshold of such sets that travels with the methods; it does not depend on the
            answer.
        claims: The claims of a report, where the reader judges claims, and not the report as a whole; otherwise None.
    """

    answer: str | None
    completion: str
    parse_status: str
    finish_reason: str
    confidence: float | None
    psr: float | None
    per: float | None
    methods: Mapping[str, Confidence]
    reason: str | None = None
    distance_percentile: float | None = None
    answer_sets: Sequence[AnswerSet] = ()
    claims: Sequence[Claim] | None = None


@dataclass(frozen=True, kw_only=True)
class Scored(Reading):
    """A scored question.

    Attributes:
        decision: Whether to keep the answer, by the threshold that travels with the reader.
        donor: The same question about the donor's image; None if no donor was given.
        notes: What differs from what the reader was fitted on, and how an image is shown where there was a choice or
            little can be seen of it; mostly empty.
    """

    decision: Decision
    donor: Reading | None = None
    notes: tuple[str, ...] = ()

    @property
    def drop(self) -> float | None:
        """By how much confidence is lower on the donor's image; negative if it is higher, None without both."""
        if self.donor is None or self.confidence is None or self.donor.confidence is None:
            return None
        return self.confidence - self.donor.confidence

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {**asdict(self), "drop": self.drop, "notes": list(self.notes)}


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A question without a result, and why."""

    error: str

    def to_json(self) -> dict[str, Any]:
        """Return the reason as JSON values."""
        return {"error": self.error}
