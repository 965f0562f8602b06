"""What a pretraining pool offers: images, and questions about them with right and wrong answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question about one subject.

    Attributes:
        question: The question.
        answer: The right answer.
        wrong_answers: Plausible other answers to the same question; may be empty.
        options: Four options that include the answer, or nothing.
        findings: A few words on everything in the image; becomes the reasoning.
        evidence: The words among them that decide this question.
        difficulty: How hard the question is held to be on this image, in [0, 1]; stated confidence falls with it.
    """

    question: str
    answer: str
    wrong_answers: tuple[str, ...]
    options: tuple[str, ...]
    findings: str
    evidence: str
    difficulty: float


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One image, perhaps in several augmented views, with the questions about it."""

    views: Sequence["Image"]
    items: Sequence[Item]


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Subjects to learn from, and subjects held out for the report on valid formats."""

    training: Sequence[Subject]
    held_out: Sequence[Subject]
