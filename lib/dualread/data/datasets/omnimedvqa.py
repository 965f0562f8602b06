"""OmniMedVQA (Hu et al. 2024): multiple choice on 42 open data sets; QA_information/Open-access/*.json and Images/.

Each file is a list of questions on one of the data sets. `gt_answer` is the text of an option, not a letter; case and a
trailing dot are ignored when the option is looked up. Many questions have fewer than four options. One question has its
modality under `modality` instead of `modality_type`. The questions on restricted data sets come without images and are
not read. The archive unpacks into a folder OmniMedVQA/; the source folder may be this folder or the one that holds it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread.data.datasets import base
from dualread.errors import DataError
from dualread.schema.base import NoSettings

HUB_FILES = {"test": ("OmniMedVQA.zip",)}
DOWNLOAD_GB = 10.7
TERMS = (
    "Hu et al. 2024 (arXiv:2402.09181); the images keep the licenses of the data sets that they come from. Official"
    " files: huggingface.co/datasets/foreverbeliever/OmniMedVQA, one archive of 10.7 GB."
)

_QUESTIONS = Path("QA_information", "Open-access")
_OPTIONS = ("option_A", "option_B", "option_C", "option_D")
_FIELDS = {
    **dict.fromkeys(("question_id", "question", "gt_answer"), base.TEXT),
    "image_path": base.path_below("a path below Images/"),
    **dict.fromkeys((*_OPTIONS, "question_type", "modality_type", "modality"), base.MAYBE_TEXT),
}


def load_rows(folder: Path, split: str, settings: NoSettings) -> base.Loaded:
    """Return the questions with four different options of which `gt_answer` is one, in the order of the file names.

    `source_row` counts the rows of all files together.
    """
    root = (folder if (folder / _QUESTIONS).is_dir() else folder / "OmniMedVQA").absolute()
    files = sorted((root / _QUESTIONS).glob("*.json"))
    if not files:
        raise DataError(f"{folder}: no {_QUESTIONS}/*.json. Expected the official files: QA_information/ and Images/.")
    records = [(file, i, record) for file in files for i, record in enumerate(base.read_json(file, list, "Images/"))]
    base.check_records(records, _FIELDS, "question_id")
    rows = [_row(root, source_row, record) for source_row, (_, _, record) in enumerate(records)]
    kept, audit = base.askable(rows, "gt_answer is none of the options")
    return base.Loaded(file=root / _QUESTIONS, rows=kept, audit=audit)


def _row(root: Path, source_row: int, record: Mapping[str, Any]) -> base.Row:
    options = tuple((record.get(key) or "").strip() for key in _OPTIONS)
    gold = next((option for option in options if _loose(option) == _loose(record["gt_answer"])), None)
    return base.Row(
        official_id=record["question_id"],
        question=record["question"],
        reference_answers=() if gold is None else (gold,),
        answer_type="closed",
        content_family=base.lower(record.get("question_type")),
        options=options,
        modality=base.lower(record.get("modality_type") or record.get("modality")),
        images=(base.Picture(root / record["image_path"], record["image_path"]),),
        source_row=source_row,
    )


def _loose(answer: str) -> str:
    return answer.strip().removesuffix(".").rstrip().lower()
