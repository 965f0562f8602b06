"""What scoring returns: an answer with its confidences, or the reason why there is none."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dualread.scoring.thresholds import Decision


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """What one method says about an answer.

    Attributes:
        confidence: The probability in [0, 1] that the answer is correct.
        score: The raw score, on the method's own scale; higher is more confident.
        imputed: Whether the method has no value here, so that its confidence is 0.5.
    """

    confidence: float
    score: float
    imputed: bool


@dataclass(frozen=True, kw_only=True)
class Reading:
    """An actor's answer about one image, and how far it can be trusted.

    Attributes:
        answer: The answer; None if the completion has no valid answer block.
        completion: All that the actor said.
        parse_status: Whether answer and stated confidence are valid, see `grading.parse.Parsed.status`.
        finish_reason: "stop", or "length" if the completion was cut off at its largest number of tokens.
        confidence: The reader's probability that the answer is correct.
        psr: PSR, the part of it that is read before the answer; None if the reader has no such part.
        per: PER, the part of it that is read after the answer; None if the reader has no such part.
        methods: What each method that was asked for says, by name.
    """

    answer: str | None
    completion: str
    parse_status: str
    finish_reason: str
    confidence: float
    psr: float | None
    per: float | None
    methods: Mapping[str, Confidence]


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
        """By how much confidence is lower on the donor's image; negative if it is higher, None without a donor."""
        return None if self.donor is None else self.confidence - self.donor.confidence

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
