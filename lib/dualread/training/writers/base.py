"""What describes a phantom hospital, and what all writers share: cases, seeds, pictures, and the choice of questions.

A writer is a module with `official_files(hospital) -> Iterator[(relative path, bytes)]` and two constants:

    SPLITS           the splits that the official files have
    MOST_QUESTIONS   the largest number of questions that it can ask about one image

and, optionally,

    IMAGE_NAME       the name of an image in the loader's rows, with {} for `Case.image_id`

It writes every file of the official layout, and the bytes depend on the hospital only. All answers come from
`dualread.training.phantoms.questions.ask`.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl
from PIL import Image

from dualread.schema.base import Split
from dualread.seeding import generator
from dualread.training.phantoms import reports
from dualread.training.phantoms.questions import SceneQuestion, ask
from dualread.training.phantoms.scene import SIZES, Scene, Style, draw, sample_scene

_SPLITS = ("train", "validation", "test")  # a fixed order, because the order of the keys in a config must not matter

T = TypeVar("T")

# Maps (content family, answer type) of a phantom question to its wording in a format; None keeps the wording of `ask`,
# which the SLAKE writer uses. Questions without an entry are not asked.
Wording = Mapping[tuple[str, str], str | None]


@dataclass(frozen=True, kw_only=True)
class Hospital:
    """A phantom hospital: how many phantoms to write, and of which kind.

    Hospitals with different names or seeds have different images, of `size` x `size` pixels; a split without an entry
    in `images` has none. `questions_per_image` of the questions of the format, chosen at random, are asked about each.
    """

    name: str
    seed: int
    images: Mapping[Split, int]
    size: int = 64
    questions_per_image: int = 8
    style: Style = field(default_factory=Style)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One image: its number in the official files, its split, and what it shows."""

    image_id: int
    split: str
    scene: Scene


def cases(hospital: Hospital) -> list[Case]:
    """Return all cases of a hospital. Their numbers are in random order over the splits, as in the real files."""
    splits = [split for split in _SPLITS for _ in range(hospital.images.get(split, 0))]
    image_ids = random(hospital, "image ids").permutation(len(splits))
    return [
        Case(image_id=int(i), split=split, scene=sample_scene(random(hospital, "scene", int(i)), hospital.style))
        for i, split in zip(image_ids, splits, strict=True)
    ]


def of_splits(hospital: Hospital) -> Iterator[tuple[str, list[Case]]]:
    """Yield the splits that a hospital has, and the cases of each."""
    everyone = cases(hospital)
    for split in (split for split in _SPLITS if split in hospital.images):
        yield split, [case for case in everyone if case.split == split]


def random(hospital: Hospital, *names: str | int) -> np.random.Generator:
    """Return a random generator whose seed depends on the hospital's name and seed and on `names`."""
    return generator("phantom", hospital.name, hospital.seed, *names)


def picture(case: Case, hospital: Hospital, view: int = 0) -> Image.Image:
    """Draw the case as an 8-bit RGB image; another `view` shows the same scene with other jitter and noise."""
    names = [case.image_id, view] if view else [case.image_id]
    return Image.fromarray(draw(case.scene, random(hospital, "pixels", *names), hospital.size))


def radiographs(case: Case, hospital: Hospital, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield one file per view of a case, in one channel."""
    for view, path in enumerate(paths):
        yield path, png(picture(case, hospital, view).convert("L"))


# VQA-RAD and VQA-Med 2019 share four images, because both data sets take theirs from MedPix. So every phantom hospital
# in one of these formats has four additional phantoms, the twins, which have the names of these images and are the
# same, byte for byte. The report on leakage counts them.
TWINS = (35155, 39301, 43433, 47964)
_MEDPIX = Hospital(name="medpix", seed=0, images={"test": len(TWINS)})


def cases_of(hospital: Hospital, first: int) -> list[Case]:
    """Return the cases of the hospital, numbered from `first`, followed by the twins."""
    originals = [replace(case, image_id=first + case.image_id) for case in cases(hospital)]
    return [*originals, *(replace(case, image_id=TWINS[case.image_id]) for case in cases(_MEDPIX))]


def picture_of(case: Case, hospital: Hospital) -> Image.Image:
    """Draw a case. The picture of a twin does not depend on the hospital."""
    return picture(case, _MEDPIX if case.image_id in TWINS else hospital)


def jpeg(image: Image.Image, **options) -> bytes:
    """Return `image` as a JPEG file of quality 95; `options` are Pillow's."""
    return _file(image, format="JPEG", quality=95, **options)


def png(image: Image.Image) -> bytes:
    """Return `image` as a PNG file."""
    return _file(image, format="PNG")


def json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a .jsonl file."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def csv_table(columns: Sequence[str], rows: Iterable[Sequence[str | int]]) -> bytes:
    """Return a .csv file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue().encode()


def parquet(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], features: Mapping[str, Any]) -> bytes:
    """Return a .parquet file as the hub has it; `features` are what its metadata say of columns."""
    buffer, metadata = io.BytesIO(), {"huggingface": json.dumps({"info": {"features": features}})}
    pl.DataFrame(rows, schema=schema).write_parquet(buffer, compression="snappy", metadata=metadata)
    return buffer.getvalue()


def sentences(case: Case, hospital: Hospital) -> list[str]:
    """Return the sentences of the report on a case."""
    return reports.sentences(case.scene, hospital.name, hospital.seed, case.image_id)


def resized(scene: Scene) -> Scene:
    """Return a scene whose lesions have the other size."""
    return replace(scene, lesion_size=SIZES[1 - SIZES.index(scene.lesion_size)])


def change(first: Scene, last: Scene, words: tuple[str, str, str, str]) -> str:
    """Return which of the words says what becomes of the lesions: grown, shrunk, the same, or none there."""
    grown = SIZES.index(last.lesion_size) - SIZES.index(first.lesion_size)
    return words[3] if last.lesion_count == 0 else {1: words[0], -1: words[1], 0: words[2]}[grown]


def questions(case: Case, wording: Wording) -> list[SceneQuestion]:
    """Return the questions about the case that `wording` has an entry for, so worded, in the order of `ask`."""
    asked = [question for question in ask(case.scene) if _kind(question) in wording]
    return [replace(question, question=wording[_kind(question)] or question.question) for question in asked]


def drawn(
    cases: Iterable[Case], hospital: Hospital, wording: Wording, rng: np.random.Generator
) -> Iterator[tuple[Case, SceneQuestion]]:
    """Yield the questions that are asked about each case."""
    for case in cases:
        for question in pick(questions(case, wording), hospital.questions_per_image, rng):
            yield case, question


def pick(asked: Sequence[T], n: int, rng: np.random.Generator, shares: Sequence[float] | None = None) -> list[T]:
    """Return `n` of the items of `asked`, chosen at random, in their order; `shares` says which ones more often."""
    p = None if shares is None else np.array(shares) / sum(shares)
    return [asked[i] for i in sorted(rng.choice(len(asked), n, replace=False, p=p))]


def written(answer: str) -> str:
    """Return an answer as the options of multiple choice spell it: CT and MRI in capitals, others capitalized."""
    return answer.upper() if answer in ("ct", "mri") else answer.capitalize()


def _kind(question: SceneQuestion) -> tuple[str, str]:
    return question.content_family, question.answer_type


def _file(image: Image.Image, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()
