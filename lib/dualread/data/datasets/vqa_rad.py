"""VQA-RAD (Lau et al. 2018): questions of clinicians on radiology images; VQA_RAD Dataset Public.json and its images.

The official list has 2,248 questions. The 451 with `phrase_type` test_... are the official test split; 202 of its 203
images occur in the training split too. So nothing is ever fitted on VQA-RAD: this loader has one split, "test", with
all questions or with those of the setting `official_splits`. Four rows repeat image, question and answer of another
row, one of them across the official splits, where the test row is kept. This leaves 2,244. No modality is recorded.

Known defects: "CLOSED " with a space, answers that are integers, a qid that is text, misspelled question types, and
tabs. A tab stands for a lost comma, so an answer with tabs is also accepted with commas. All other text stays verbatim.

If the official list is missing, the hub's tables (data/<split>-*.parquet) are read. They have no ids, answer types or
families: see `dualread.data.datasets._hub_tables`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dualread.data.datasets import base
from dualread.data.datasets._hub_tables import read_rows
from dualread.errors import DataError
from dualread.schema.base import Listed, Section

HUB_FILES = {"test": ("data/train-*.parquet", "data/test-*.parquet")}
DOWNLOAD_GB = 0.03
TERMS = (
    "CC0 1.0, Lau et al. 2018 (doi:10.1038/sdata.2018.251). Official files: osf.io/89kps (VQA_RAD Dataset Public.json "
    "and VQA_RAD Image Folder). The hub's flaviagiammarino/vqa-rad has neither ids nor answer types."
)

NEVER_FITTED = (
    " VQA-RAD is never fitted on: 202 of the 203 images of its official test split occur in its train split too. To"
    " choose among the questions, set settings.official_splits."
)

_LISTS = ("VQA_RAD Dataset Public.json", "VQA_RAD_Dataset_Public.json")
_IMAGE_FOLDERS = ("VQA_RAD Image Folder", "VQA_RAD_Image_Folder", "images")
_FAMILIES = ("abn", "attrib", "color", "count", "modality", "organ", "other", "plane", "pos", "pres", "size")
_MISSPELLED = {"atrib": "attrib", "prse": "pres"}
_CASE = re.compile(r"[?&]id=([^&#]+)")  # of image_case_url: a case of MedPix is about one patient
_FIELDS = {
    "qid": base.Allowed(lambda value: str(value).isdecimal(), "an integer"),
    **dict.fromkeys(("question", "image_organ"), base.TEXT),
    "answer": base.Allowed(lambda value: type(value) in (str, int), "text or an integer"),
    "answer_type": base.word_of("open", "closed"),
    "phrase_type": base.Allowed(
        lambda value: str(value).removeprefix("test_") in ("freeform", "para"), "[test_]freeform|para"
    ),
    "question_type": base.Allowed(
        lambda value: isinstance(value, str) and _family(value) in _FAMILIES, ", ".join(_FAMILIES).upper()
    ),
    "image_name": base.path_below("a file in the image folder"),
}


class Settings(Section):
    """Which questions are read."""

    official_splits: Annotated[Listed[Literal["train", "test"]], Field(min_length=1)] = ("train", "test")
    """Official splits whose questions are read."""


def load_rows(folder: Path, split: str, settings: Settings) -> base.Loaded:
    """Return the questions of the setting `official_splits`, in the order of the official list."""
    wanted = settings.official_splits
    file = next((folder / name for name in _LISTS if (folder / name).is_file()), None)
    if file is None and not any((folder / "data").glob("*.parquet")):
        raise DataError(f"{folder}: no {_LISTS[0]} and no data/*.parquet. Expected the files of osf.io/89kps.")
    rows, layout = _from_tables(folder) if file is None else _from_list(folder, file)
    distinct: dict[tuple, tuple[int, str, base.Row]] = {}
    for official, row in sorted(rows, key=lambda pair: pair[0] != "test"):  # test rows first, otherwise in file order
        distinct.setdefault((row.image_name, row.question, row.reference_answers), (row.source_row, official, row))
    chosen = [row for _, official, row in sorted(distinct.values()) if official in wanted]
    repeated = "image, question and answer are those of another row, in the same case; a test row is kept before others"
    audit = [
        base.AuditStep(step="layout", kept=len(rows), dropped=0, reason=layout),
        base.AuditStep(
            step="exact repetitions", kept=len(distinct), dropped=len(rows) - len(distinct), reason=repeated
        ),
        base.AuditStep(
            step="official splits",
            kept=len(chosen),
            dropped=len(distinct) - len(chosen),
            reason=f"official_splits is {', '.join(wanted)}",
        ),
    ]
    return base.Loaded(file=file or folder / "data", rows=chosen, audit=audit)


def _from_tables(folder: Path) -> tuple[list[tuple[str, base.Row]], str]:
    rows = [
        (official, replace(row, reference_answers=_accepted(row.reference_answers[0])))
        for official, row in read_rows(folder, ("train", "test"))
    ]
    return rows, "the hub's tables have no ids and no answer types: ids are digests; closed means answered yes or no"


def _from_list(folder: Path, file: Path) -> tuple[list[tuple[str, base.Row]], str]:
    """Return the rows of the official list, each with its official split, and a description of the defects found."""
    images = next((folder / name for name in _IMAGE_FOLDERS if (folder / name).is_dir()), None)
    if images is None:
        raise DataError(f"{folder}: no image folder. Expected {_IMAGE_FOLDERS[0]} of osf.io/89kps beside {file.name}.")
    records = base.read_json(file, list, "those of osf.io/89kps")
    base.check_records(((file, i, record) for i, record in enumerate(records)), _FIELDS, "qid")
    splits = ["test" if record["phrase_type"].startswith("test_") else "train" for record in records]
    rows = [_row(images.absolute(), i, record) for i, record in enumerate(records)]
    return list(zip(splits, rows, strict=True)), f"{file.name}: {_defects(records)}"


def _defects(records: Sequence[Mapping[str, Any]]) -> str:
    texts = [text for record in records for text in (record["question"], record["answer"]) if isinstance(text, str)]
    first = [_lower(record["question_type"].split(",")[0]) for record in records]
    counts = {
        "answer types with white space around": sum(r["answer_type"] != r["answer_type"].strip() for r in records),
        "answers that are integers": sum(isinstance(record["answer"], int) for record in records),
        "questions or answers with a tab": sum("\t" in text for text in texts),
        "with white space around": sum(text != text.strip() for text in texts),
        "misspelled question types": sum(family in _MISSPELLED for family in first),
        "rows with several question types (the first counts)": sum("," in r["question_type"] for r in records),
    }
    return ", ".join(f"{n} {what}" for what, n in counts.items())


def _row(images: Path, source_row: int, record: Mapping[str, Any]) -> base.Row:
    return base.Row(
        official_id=str(record["qid"]),
        question=record["question"],
        reference_answers=_accepted(str(record["answer"])),
        answer_type=_lower(record["answer_type"]),
        content_family=_family(record["question_type"]),
        location=_lower(record["image_organ"]) or None,
        images=(base.Picture(images / record["image_name"], record["image_name"]),),
        source_row=source_row,
        patient=case[1] if (case := _CASE.search(str(record.get("image_case_url")))) else None,
    )


def _accepted(answer: str) -> tuple[str, ...]:
    return (answer, re.sub(r" *\t", ", ", answer)) if "\t" in answer else (answer,)


def _family(question_type: str) -> str:
    first = _lower(question_type.split(",")[0])
    return _MISSPELLED.get(first, first)


def _lower(text: str) -> str:
    return text.strip().lower()
