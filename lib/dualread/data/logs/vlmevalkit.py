"""Predictions of VLMEvalKit (OpenCompass): <model>_<dataset>.xlsx, .tsv, .csv or .json, and the judged files beside it.

The bare file has `index`, `question`, `answer` (the gold answer), perhaps the options A, B, ..., and `prediction`. The
judged file, such as <model>_<dataset>_exact_matching_result.xlsx, has the same and a score. Where there are options,
the gold letter and the text of its option are both accepted. A prediction that could not be obtained says so; an .xlsx
cell holds at most 32,767 characters, and a longer prediction is missing in it. Images are in the file only by path.
"""

import json
import string
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dualread.data.foreign_tables.read import read_records
from dualread.data.logs._files import read_text
from dualread.data.logs._workbook import check_workbook
from dualread.data.logs.base import Log, LoggedSample, Score, flat, image_identity, need, refuse_repeated, texts
from dualread.errors import DataError
from dualread.grading.options import accepted

SUFFIXES = [".xlsx", ".tsv", ".csv", ".json"]
FIELDS = []
CONFIDENCE = "VLMEvalKit logs no token probabilities; have the model state <confidence>NN</confidence>"

_SCORES = ("hit", "score", "eval_score")
_FAILED = "Failed to obtain answer"


def read_log(path: Path) -> Log:
    """Read one file of predictions, judged or not.

    Raises:
        DataError: The file is damaged, in another format, or has no predictions, or an index occurs twice.
        ModuleNotFoundError: It is an .xlsx, and the package fastexcel is not installed.
    """
    records = _records(path)
    if not records:
        raise DataError(f"{path}: has no rows. Expected one row per question.")
    need(path, records, ("index", "prediction"), "VLMEvalKit")
    refuse_repeated(path, (str(record["index"]) for record in records))
    left_out, samples = Counter(), []
    for record in records:
        if record["prediction"] in (None, ""):
            left_out["no prediction"] += 1
        elif _FAILED in str(record["prediction"]):
            left_out[f"the model gave no answer ({_FAILED!r})"] += 1
        else:
            samples.append(_sample(record))
    return Log(samples=samples, left_out=left_out)


def _records(path: Path) -> list[dict[str, Any]]:
    if (read := _READERS.get(path.suffix.lower())) is None:
        raise DataError(
            f"{path}: expected predictions of VLMEvalKit as {', '.join(_READERS)}. A .pkl runs the code that is in it,"
            " and is not read: let VLMEvalKit write another format (PRED_FORMAT=tsv)."
        )
    try:
        return [{key: None if value != value else value for key, value in one.items()} for one in read(path)]
    except (DataError, ModuleNotFoundError):
        raise
    except Exception as error:  # fastexcel has errors of its own
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: cannot be read ({first}). Is the file complete? Copy it again.") from error


def _read_xlsx(path: Path) -> list[dict[str, Any]]:
    import fastexcel  # noqa: F401  (here, for an error that names it; polars imports it)

    check_workbook(path)
    return pl.read_excel(path, infer_schema_length=0).to_dicts()


def _read_json(path: Path) -> list[dict[str, Any]]:
    content = json.loads(read_text(path, "a JSON list"))
    if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
        raise ValueError("it holds no list of rows")
    return content


def _read_cells(path: Path) -> list[dict[str, Any]]:
    return [record for _, record in read_records(path).rows]


_READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    ".xlsx": _read_xlsx,
    ".tsv": _read_cells,
    ".csv": _read_cells,
    ".json": _read_json,
}


def _sample(record: Mapping[str, Any]) -> LoggedSample:
    prediction = str(record["prediction"])
    golds = texts(record.get("answer"))
    options = _options(record)
    read = record.get("extracted") or prediction
    return LoggedSample(
        sample_id=str(record["index"]),
        question=None if record.get("question") is None else str(record["question"]),
        references=accepted(golds, options),
        completions=(prediction,),
        scores={name: Score(value=record[name], answer=str(read)) for name in _SCORES if record.get(name) is not None},
        options=options,
        image=image_identity(texts(record.get("image_path"))),
        others={name: text for key, value in record.items() for name, text in flat(key, value).items()},
    )


def _options(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options A, B, ... up to the last that is filled; none without A and B."""
    found = ["" if record.get(letter) is None else str(record[letter]) for letter in string.ascii_uppercase]
    while found and not found[-1].strip():
        found.pop()
    return tuple(found) if len(found) > 1 and found[0] and found[1] else ()
