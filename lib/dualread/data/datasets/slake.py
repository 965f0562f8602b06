"""SLAKE (Liu et al. 2021): bilingual medical visual questions; train/validate/test.json and imgs/xmlabN/source.jpg.

The validation split is validation.json on the hub and validate.json in the authors' archive. The order of the keys
varies between rows. Rows are filtered by language first, because the Chinese rows of one split ask about images of
another.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread.data.datasets import base
from dualread.errors import DataError
from dualread.schema.base import Section

FAMILIES = ("abnormality", "color", "knowledge", "modality", "organ", "plane", "position", "quantity", "shape", "size")
HUB_FILES = {
    "train": ("train.json", "imgs.zip"),
    "validation": ("validation.json", "validate.json", "imgs.zip"),
    "test": ("test.json", "imgs.zip"),
}
SIZES = {  # of the English questions
    "train": {"open": 2976, "closed": 1943, "images": 450},
    "validation": {"open": 631, "closed": 422, "images": 96},
    "test": {"open": 645, "closed": 416, "images": 96},
}
DOWNLOAD_GB = 0.21
TERMS = "CC BY 4.0, Liu et al. 2021 (doi:10.1109/ISBI48211.2021.9434010). Official files: www.med-vqa.com/slake."


_FIELDS = {
    "qid": base.INTEGER,
    **dict.fromkeys(("question", "answer", "modality", "location"), base.TEXT),
    "answer_type": base.word_of("open", "closed"),
    "content_type": base.word_of("kg", *FAMILIES),
    "img_name": base.path_below("xmlabN/source.jpg"),
}


class Settings(Section):
    """Which questions are read."""

    language: str = "en"
    """Value of `q_lang` that a question has to have."""


def load_rows(folder: Path, split: str, settings: Settings) -> base.Loaded:
    """Return the rows of `split` whose `q_lang` is the setting `language`, in the order of the file."""
    file, language = _find(folder, split), settings.language
    records = base.read_json(file, list, "*.json beside imgs/")
    base.check_records(
        ((file, i, record) for i, record in enumerate(records)), {"q_lang": base.Allowed(base.TEXT.holds, "en or zh")}
    )
    chosen = [(i, record) for i, record in enumerate(records) if record["q_lang"] == language]
    if not chosen:
        languages = ", ".join(sorted({record["q_lang"] for record in records})) or "none, the file is empty"
        raise DataError(f"{file}: no row has q_lang {language!r}. Languages in the file: {languages}.")
    base.check_records(((file, i, record) for i, record in chosen), _FIELDS, "qid")
    audit = base.AuditStep(
        step="language",
        kept=len(chosen),
        dropped=len(records) - len(chosen),
        reason=f"q_lang is {language}; the official file has {len(records)} rows",
    )
    return base.Loaded(file=file, rows=[_row(folder, i, record) for i, record in chosen], audit=[audit])


def _find(folder: Path, split: str) -> Path:
    names = [name for name in HUB_FILES[split] if name.endswith(".json")]
    files = [folder / name for name in names if (folder / name).is_file()] or [folder / names[0]]
    if len(files) > 1 and len({file.read_bytes() for file in files}) > 1:
        raise DataError(
            f"{folder}: {' and '.join(f.name for f in files)} differ, expected one of them or two equal files."
            " Delete the wrong one."
        )
    return files[0]


def _row(folder: Path, source_row: int, record: Mapping[str, Any]) -> base.Row:
    family = record["content_type"].strip().lower()
    return base.Row(
        official_id=str(record["qid"]),
        question=record["question"],
        reference_answers=(record["answer"],),
        answer_type=record["answer_type"].strip().lower(),
        content_family="knowledge" if family == "kg" else family,
        modality=record["modality"].strip().lower() or None,
        location=record["location"].strip().lower() or None,
        images=(base.Picture((folder / "imgs" / record["img_name"]).absolute(), record["img_name"].split("/")[0]),),
        source_row=source_row,
    )
