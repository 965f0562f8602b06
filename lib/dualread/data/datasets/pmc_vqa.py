"""PMC-VQA (Zhang et al. 2023): multiple choice on figures of PubMed Central; test_clean.csv, train.csv and images/.

This is version 1 of the release: test_clean.csv holds the 2,000 rows of test.csv that the authors checked by hand.
Version 2 (test_2.csv, with an index column) has other columns and unchecked questions. Every field is read as text:
"NA" is an answer. The release has no ids; the id of a row is its number in the file.

Options have a label (" A:Focal uptake "), which is removed. Some have the label of another option, some have none. Only
a capital letter with a colon is a label: "C. difficile" has none.
"""

import csv
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread import limits
from dualread.data.datasets.base import AuditStep, Loaded, Picture, Row, askable
from dualread.errors import DataError, refuse
from dualread.grading.canonical import canonical
from dualread.schema.base import NoSettings

HUB_FILES = {"train": ("train.csv", "images.zip"), "test": ("test_clean.csv", "images.zip")}
DOWNLOAD_GB = 19
TERMS = (
    "CC BY-SA, figures CC0 or CC BY; Zhang et al. 2024 (doi:10.1038/s43856-024-00709-2). Official files:"
    " huggingface.co/datasets/xmcmic/PMC-VQA; images.zip has 19 GB for all splits together."
)

_COLUMNS = ("Figure_path", "Question", "Answer", "Choice A", "Choice B", "Choice C", "Choice D", "Answer_label")
_LABEL = re.compile(r"\s*([A-D])\s*:")


def load_rows(folder: Path, split: str, settings: NoSettings) -> Loaded:
    """Return the rows of `split` that have four different options and one gold answer, in the order of the file.

    The file gives the gold answer twice, as a letter and as a text; a row is kept only if both agree.
    """
    file = folder / HUB_FILES[split][0]
    records = _read(file)
    refuse(
        f"{file}: row {i}: {problem}. Correct the row."
        for i, record in enumerate(records)
        if (problem := _problem(record)) is not None
    )
    rows = [_row(folder.absolute(), i, record) for i, record in enumerate(records)]
    kept, audit = askable(rows, "Answer_label names no option, or an option whose text differs from Answer")
    return Loaded(file=file, rows=kept, audit=[_labels(records), *audit])


def _read(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        raise DataError(f"{file}: no such file. Expected the official files: {file.name} beside images/.")
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            records, columns = list(reader), reader.fieldnames or []
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{file}: not CSV ({error}). Restore it from the official archive.") from error
    if missing := [column for column in _COLUMNS if column not in columns]:
        raise DataError(
            f"{file}: no column {', '.join(missing)}. Found: {', '.join(columns)}. Expected the file of version 1."
        )
    return records


def _problem(record: Mapping[Any, Any]) -> str | None:
    # DictReader fills missing fields with None and keeps surplus ones under the key None.
    if None in record or None in record.values():
        return "has too few or too many fields, expected one per column"
    path = record["Figure_path"]
    return f"Figure_path is {path!r}, expected a file in images/" if limits.leaves_folder(path) else None


def _labels(records: list[dict[str, Any]]) -> AuditStep:
    labels = Counter()
    for record in records:
        for letter in "ABCD":
            match = _LABEL.match(record[f"Choice {letter}"])
            labels["none" if match is None else "own" if match[1] == letter else "another"] += 1
    reason = f"labels are removed; {labels['another']} options have that of another option, {labels['none']} have none"
    return AuditStep(step="option labels", kept=len(records), dropped=0, reason=reason)


def _row(folder: Path, source_row: int, record: Mapping[str, str]) -> Row:
    options = {letter: _unlabeled(record[f"Choice {letter}"]) for letter in "ABCD"}
    gold = options.get(record["Answer_label"].strip())
    if gold is not None and canonical(gold) != canonical(_unlabeled(record["Answer"])):
        gold = None
    return Row(
        official_id=str(source_row),
        question=record["Question"],
        reference_answers=() if gold is None else (gold,),
        answer_type="closed" if gold and canonical(gold) in ("yes", "no") else "open",
        options=tuple(options.values()),
        images=(Picture(folder / "images" / record["Figure_path"], record["Figure_path"]),),
        source_row=source_row,
    )


def _unlabeled(text: str) -> str:
    label = _LABEL.match(text)
    return text[label.end() if label else 0 :].strip()
