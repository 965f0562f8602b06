"""Write a phantom hospital in the hub's PathVQA format (flaviagiammarino/path-vqa), with the quirks of the real files.

The files are data/<split>-00000-of-00001.parquet with the columns image {bytes, path}, question and answer. Images have
neither names nor ids, and each row holds its own copy. Questions and answers are in lower case. Planted defects: CMYK
images, rows that repeat another row exactly, and a row that repeats another except for letter case.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from dualread.training.writers import base

WORDING: base.Wording = {
    ("organ", "open"): "what organ is shown?",
    ("organ", "closed"): "is liver present?",
    ("abnormality", "closed"): "is a lesion present?",
    ("abnormality", "open"): "what kind of lesion is present?",
    ("position", "open"): None,
    ("position", "closed"): None,
    ("size", "open"): "what is the lesion's size?",
    ("size", "closed"): None,
}
SPLITS = ("train", "validation", "test")
MOST_QUESTIONS = len(WORDING)

_CMYK = 4  # every fourth image is CMYK
_REPEATED = 2  # the first rows of each split, which are repeated
_COLUMNS = {"image": pl.Struct({"bytes": pl.Binary, "path": pl.String}), "question": pl.String, "answer": pl.String}
_FEATURES = {
    "image": {"_type": "Image"},
    "question": {"dtype": "string", "_type": "Value"},
    "answer": {"dtype": "string", "_type": "Value"},
}


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    for split, cases in base.of_splits(hospital):
        table = base.parquet(_rows(cases, hospital, split), _COLUMNS, _FEATURES)
        yield f"data/{split}-00000-of-00001.parquet", table


def _rows(chosen: list[base.Case], hospital: base.Hospital, split: str) -> list[dict[str, Any]]:
    rng = base.random(hospital, "rows", split)
    rows = []
    for case in chosen:
        image = {"bytes": _image(case, hospital), "path": None}
        for question in base.pick(base.questions(case, WORDING), hospital.questions_per_image, rng):
            rows.append({"image": image, "question": question.question.lower(), "answer": question.answer})
    up_to_case = {**rows[0], "answer": rows[0]["answer"].upper()}
    return [*rows, *rows[:_REPEATED], up_to_case]


def _image(case: base.Case, hospital: base.Hospital) -> bytes:
    image = base.picture(case, hospital)
    return base.jpeg(image.convert("CMYK") if case.image_id % _CMYK == 0 else image)
