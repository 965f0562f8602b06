"""Pretraining corpora, one file per corpus: images, and questions about them with right and wrong answers.

Entry points of a plugin:
    open_corpus(settings, manifest, seed) -> Corpus: Makes the corpus; `manifest` is the folder of the training split.
    Settings: What `pool.settings` may set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question about one image, with its right answer and plausible wrong ones, which may be none.

    There are four options, one of which is the answer, or none. `findings` describe the whole image in a few words,
    which become the reasoning; `evidence` are those of them that decide this question. `difficulty` is assumed, in [0,
    1]; the higher it is, the lower the stated confidence.
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
    """One image, in one or more augmented views, with the questions about it."""

    views: Sequence["Image"]
    items: Sequence[Item]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The subjects to train on, and those for the report on valid formats."""

    training: Sequence[Subject]
    held_out: Sequence[Subject]
