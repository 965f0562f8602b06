"""MedFrameQA (Yu et al. 2025): multiple choice about two to five frames of a video, as the hub's parquet tables.

The tables are data/test-*.parquet, with a row per question: question_id, question, options (a list of texts),
correct_answer (a letter), image_1 to image_5 ({bytes, path}, null where there are fewer), system, organ, modality, and
video_id. All frames of a video are one cluster. reasoning_chain contains the answer and is not read.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread.data.datasets import base
from dualread.data.datasets._hub_tables import bytes_in, records_of
from dualread.grading.canonical import canonical
from dualread.schema.base import NoSettings
from dualread.schema.columns import FEWEST_OPTIONS, MOST_OPTIONS

HUB_FILES = {"test": ("data/test-*.parquet",)}
MOST_SHOWN = 5  # images of a question
SIZES = {"test": {"open": 0, "closed": 2851, "images": 9237}}
DOWNLOAD_GB = 0.6
TERMS = "CC BY 4.0; the frames are those of public teaching videos. huggingface.co/datasets/SuhaoYu1020/MedFrameQA."

_IMAGES = tuple(f"image_{k}" for k in range(1, 6))
_LETTERS = "ABCDEFGHIJ"
_FIELDS = {
    "question": base.TEXT,
    "options": base.Allowed(
        lambda value: base.is_texts(value) and FEWEST_OPTIONS <= len(value) <= MOST_OPTIONS,
        f"a list of {FEWEST_OPTIONS} to {MOST_OPTIONS} texts",
    ),
    "correct_answer": base.TEXT,
    "video_id": base.TEXT,
    "frames": base.Allowed(
        lambda value: len(value) > 1 and all(value), "bytes of at least two images, image_1 and image_2, without a gap"
    ),
}


def load_rows(folder: Path, split: str, settings: NoSettings) -> base.Loaded:
    """Return the rows that have different options, one of them gold, in the order of the tables."""
    records = [(table, i, {**record, "frames": _frames(record)}) for table, i, record in records_of(folder, split)]
    base.check_records(records, _FIELDS, "question_id")
    images: dict[str, bytes] = {}  # equal images are one object
    rows = [_row(i, record, images) for i, (_, _, record) in enumerate(records)]
    kept = [row for row in rows if row.reference_answers]
    reason = "correct_answer is the letter of an option, and no two options have the same canonical form"
    audit = base.AuditStep(step="gold option", kept=len(kept), dropped=len(rows) - len(kept), reason=reason)
    return base.Loaded(file=records[0][0], rows=kept, audit=[audit])


def _frames(record: Mapping[str, Any]) -> list[bytes | None]:
    """Return the bytes of the images of a row, without the empty columns after the last one."""
    shown = [bytes_in(record.get(name)) for name in _IMAGES]
    while shown and shown[-1] is None:
        shown.pop()
    return shown


def _row(source_row: int, record: Mapping[str, Any], images: dict[str, bytes]) -> base.Row:
    options = base.unlabeled(record["options"])
    gold = dict(zip(_LETTERS, options, strict=False)).get(record["correct_answer"].strip().upper())
    unclear = gold is None or len(set(map(canonical, options))) < len(options) or not all(map(canonical, options))
    digests = [hashlib.sha256(content).hexdigest() for content in record["frames"]]
    frames = zip(digests, record["frames"], strict=True)
    return base.Row(
        official_id=str(record["question_id"] or source_row),
        question=record["question"],
        reference_answers=() if unclear or gold is None else (gold,),
        answer_type="closed",
        content_family=base.lower(record["system"]),
        options=tuple(options),
        modality=base.lower(record["modality"]),
        location=base.lower(record["organ"]),
        images=tuple(base.Picture(images.setdefault(digest, content), digest[:16]) for digest, content in frames),
        source_row=source_row,
        patient=record["video_id"].strip() or None,
    )
