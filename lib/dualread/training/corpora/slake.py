"""The training split of a real data set, with augmented views of its images.

The reasoning consists of what the data set records about the image: its modality, its location, and its plane if a
question of the split asks for it. Augmentation never flips an image, because answers name left and right.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from PIL import Image
from pydantic import Field

from dualread.artifacts.tables import read_table
from dualread.data.images import open_image
from dualread.grading.canonical import canonical
from dualread.schema.base import Positive, Section
from dualread.schema.columns import MANIFEST
from dualread.seeding import generator
from dualread.training.corpora import Corpus, Item, Subject

_LONGEST_ANSWER = 60  # characters; longer ones are sentences that a tiny model cannot learn to spell


class Settings(Section):
    """How many views of the images are made."""

    size: Annotated[int, Field(ge=16)]
    """Height and width, in pixels, of the image that the backbone sees; views are made at up to twice this size."""
    augmentations: Annotated[int, Field(ge=0)]
    """Augmented views per image, in addition to the plain one."""
    held_out: Positive
    """Images for the report on formats; they are trained on, too, because the split is small."""


def open_corpus(settings: Settings, manifest: Path | None, seed: int) -> Corpus:
    """Read the questions of `manifest`, the folder of the training split, and draw augmented views of each image."""
    assert manifest is not None, "the slake corpus needs the manifest of the training split"
    rows = read_table(manifest / "manifest.parquet", MANIFEST).sort("sample_id").to_dicts()
    planes = {r["image_id"]: _plane(r) for r in rows if r["content_family"] == "plane" and _plane(r)}
    answers: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for row in rows:
        answers[row["question_key"], row["modality"]].add(_clean(row["reference_answers"][0]))
    subjects = []
    of_images: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        of_images[row["image_id"]].append(row)
    for image_id, group in of_images.items():
        rng, [file] = generator("slake pool", seed, image_id), group[0]["image_files"]
        small = open_image(manifest / file).convert("L")
        small.thumbnail((2 * settings.size, 2 * settings.size), Image.Resampling.LANCZOS)
        views = [small.convert("RGB"), *(_augment(small, rng) for _ in range(settings.augmentations))]
        items = [_item(row, planes.get(image_id, ""), answers) for row in group]
        subjects.append(Subject(views=views, items=[item for item in items if item is not None]))
    subjects = [subject for subject in subjects if subject.items]
    return Corpus(training=subjects, held_out=subjects[: settings.held_out])


def _item(row: Mapping[str, Any], plane: str, answers: Mapping[tuple[str, str | None], set[str]]) -> Item | None:
    answer = _clean(row["reference_answers"][0])
    if not answer or len(answer) > _LONGEST_ANSWER:
        return None
    others = answers[row["question_key"], row["modality"]] - {answer}
    wrong = tuple(sorted(o for o in others if 0 < len(o) <= _LONGEST_ANSWER and canonical(o) != canonical(answer)))
    words = [row["modality"] or "", (row["location"] or "").replace("_", " "), plane]
    findings = " ".join(word.lower() for word in words if word)
    options = (answer, *wrong[:3]) if len(wrong) >= 3 else ()
    return Item(
        question=row["question"],
        answer=answer,
        wrong_answers=wrong,
        options=options,
        findings=findings,
        evidence=findings,
        difficulty=min(len(wrong), 6) / 6,  # the more answers the question has elsewhere, the harder
    )


def _plane(row: Mapping[str, Any]) -> str:
    answer = _clean(row["reference_answers"][0])
    return answer.removesuffix(" plane") if answer.endswith(" plane") else ""


def _clean(text: str) -> str:
    return " ".join(text.lower().split())


def _augment(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Rotate by up to 6 degrees, scale and shift by up to a tenth, change contrast and brightness, add noise."""
    # The size does not change, so that the backbone's image processor treats a view exactly like the image itself.
    size = np.array(image.size)
    half = size * rng.uniform(0.9, 1.08) / 2
    center = size * (0.5 + rng.uniform(-0.05, 0.05, 2))
    turned = image.rotate(rng.uniform(-6, 6), Image.Resampling.BILINEAR)
    box = (*(center - half), *(center + half))
    moved = turned.transform(image.size, Image.Transform.EXTENT, box, Image.Resampling.BILINEAR)
    pixels = np.asarray(moved, np.float32) / 255
    pixels = pixels ** rng.uniform(0.8, 1.25) * rng.uniform(0.88, 1.1) + rng.normal(0, 0.015, pixels.shape)
    return Image.fromarray((np.clip(pixels, 0, 1) * 255).astype(np.uint8)).convert("RGB")
