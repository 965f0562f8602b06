"""ReXVQA (Pal et al. 2025): multiple choice on chest X-rays; metadata/*_vqa_data.json and the images of ReXGradient.

Each file is an object that maps ids to questions. A question has one or more views, of which the first is used; their
paths are relative to metadata/ ("../deid_png/<patient>/<accession>/studies/..."). Findings, Impression and the
explanation contain the answer, so of the texts a row takes the question, the options and the gold letter only.

The images are those of rajpurkarlab/ReXGradient-160K: run `cat deid_png.part* | tar --zstd -xf -` beside metadata/. If
deid_png/ lies deeper in the source folder, the setting `images` names the folder that holds it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread import limits
from dualread.data.datasets import base
from dualread.errors import ConfigError
from dualread.schema.base import Section

HUB_FILES = {
    "train": ("metadata/train_vqa_data.json",),
    "validation": ("metadata/valid_vqa_data.json",),
    "test": ("metadata/test_vqa_data.json",),
}
DOWNLOAD_GB = 150  # the images of all splits
TERMS = (
    "Non-commercial research only. Accept the terms on huggingface.co/datasets/rajpurkarlab/ReXVQA (questions) and on"
    " huggingface.co/datasets/rajpurkarlab/ReXGradient-160K (images, ten parts of 15 GB); the token is that of"
    " `hf auth login` or HF_TOKEN. Unpack the images beside metadata/ (cat deid_png.part* | tar --zstd -xf -)."
    " Pal et al. 2025 (arXiv:2506.04353), Zhang et al. 2025 (arXiv:2505.00228)."
)


_FIELDS = {
    **dict.fromkeys(("question", "correct_answer"), base.TEXT),
    "task_name": base.MAYBE_TEXT,
    "options": base.Allowed(base.is_texts, "a list of texts"),
    "ImagePath": base.Allowed(
        lambda views: base.is_texts(views) and views and not limits.leaves_folder(views[0].removeprefix("../")),
        "a list of one or more paths, the first of them inside ../deid_png",
    ),
}


class Settings(Section):
    """Where the images are."""

    images: str = "."
    """The folder that holds deid_png/, inside the source folder."""


def load_rows(folder: Path, split: str, settings: Settings) -> base.Loaded:
    """Return the rows of `split` that have four different options, one of them gold, in the order of the file."""
    if limits.leaves_folder(images := settings.images):
        raise ConfigError(f"rexvqa: settings.images is {images!r}, expected a folder inside the source folder.")
    file = folder / HUB_FILES[split][0]
    records = base.read_json(file, dict, "metadata/*_vqa_data.json and deid_png/")
    base.check_records(((file, key, record) for key, record in records.items()), _FIELDS)
    root = folder.absolute() / images
    rows = [_row(root, i, key, record) for i, (key, record) in enumerate(records.items())]
    kept, audit = base.askable(rows, "correct_answer is not the letter of an option")
    return base.Loaded(file=file, rows=kept, audit=audit)


def _row(root: Path, source_row: int, key: str, record: Mapping[str, Any]) -> base.Row:
    options = base.unlabeled(record["options"])
    gold = dict(zip("ABCD", options, strict=False)).get(record["correct_answer"].strip())
    image = record["ImagePath"][0].removeprefix("../")
    return base.Row(
        official_id=key,
        question=record["question"],
        reference_answers=() if gold is None else (gold,),
        answer_type="closed",
        content_family=base.lower(record.get("task_name")),
        options=tuple(options),
        modality="x-ray",
        location="chest",
        images=(base.Picture(root / image, image),),
        source_row=source_row,
        patient=image.split("/")[1] if image.startswith("deid_png/") else None,
    )
