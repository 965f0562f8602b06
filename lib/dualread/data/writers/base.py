"""What a phantom hospital is, and what its writers share: cases, seeds, pictures, and which questions are asked how.

A writer is a module with `official_files(hospital) -> Iterator[(relative path, bytes)]` and two constants:

    SPLITS           the splits that the official files have
    MOST_QUESTIONS   how many questions about one image it can ask at most

It writes every file of the official layout; the bytes are a function of the hospital alone. What is true of an image is
said by `dualread.data.phantoms.questions.ask` and by nothing else.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from PIL import Image

from dualread.data.phantoms.questions import Question, ask
from dualread.data.phantoms.scene import Scene, Style, draw, sample_scene
from dualread.seeding import generator

_SPLITS = ("train", "validation", "test")  # in this order; a mapping's order is not part of a config

T = TypeVar("T")

# (content family, answer type) of a phantom question -> its words in a format; None keeps the words that SLAKE's writer
# has. A question that is not named is not asked.
Wording = Mapping[tuple[str, str], str | None]


@dataclass(frozen=True, kw_only=True)
class Hospital:
    """How many phantoms to write, and of which kind.

    Attributes:
        name: Part of every seed.
        seed: Part of every seed.
        images: Number of images of each split; a split that is not named has none.
        size: Width and height in pixels.
        questions_per_image: How many of the format's questions are asked about an image, at random.
        style: What the images look like.
    """

    name: str
    seed: int
    images: Mapping[str, int]
    size: int = 64
    questions_per_image: int = 8
    style: Style = field(default_factory=Style)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One image with its number in the official files."""

    image_id: int
    split: str
    scene: Scene


def cases(hospital: Hospital) -> list[Case]:
    """Sample all scenes; the numbers of the images are spread over the splits, as in the real files."""
    splits = [split for split in _SPLITS for _ in range(hospital.images.get(split, 0))]
    image_ids = random(hospital, "image ids").permutation(len(splits))
    return [
        Case(image_id=int(i), split=split, scene=sample_scene(random(hospital, "scene", int(i)), hospital.style))
        for i, split in zip(image_ids, splits, strict=True)
    ]


def random(hospital: Hospital, *names: str | int) -> np.random.Generator:
    """Return a generator seeded by the hospital and `names`."""
    return generator("phantom", hospital.name, hospital.seed, *names)


def picture(case: Case, hospital: Hospital, *view: int) -> Image.Image:
    """Draw the case as 8-bit RGB; another `view` shows the same scene with other jitter and noise."""
    return Image.fromarray(draw(case.scene, random(hospital, "pixels", case.image_id, *view), hospital.size))


def jpeg(image: Image.Image, **options) -> bytes:
    """Return `image` as a JPEG file of quality 95; `options` are Pillow's."""
    return _file(image, format="JPEG", quality=95, **options)


def png(image: Image.Image) -> bytes:
    """Return `image` as a PNG file."""
    return _file(image, format="PNG")


def questions(case: Case, wording: Wording) -> list[Question]:
    """Return the questions about the case that `wording` names, in its words, in the order of `ask`."""
    asked = [question for question in ask(case.scene) if _kind(question) in wording]
    return [replace(question, question=wording[_kind(question)] or question.question) for question in asked]


def some(asked: Sequence[T], n: int, rng: np.random.Generator) -> list[T]:
    """Draw `n` of the questions at random, in their order."""
    return [asked[i] for i in sorted(rng.choice(len(asked), n, replace=False))]


def written(answer: str) -> str:
    """Return an answer as the choices of a test have it: CT, MRI, other words capitalized."""
    return answer.upper() if answer in ("ct", "mri") else answer.capitalize()


def _kind(question: Question) -> tuple[str, str]:
    return question.content_family, question.answer_type


def _file(image: Image.Image, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()
