"""Predictions of VLMEvalKit (OpenCompass): <model>_<dataset>.tsv, .csv or .json, judged or not.

Read are `index`, `question`, `answer` (the gold answer), the options `A`, `B`, ..., `prediction`, `extracted`,
`image_path`, and the scores `hit`, `score`, `eval_score`. A prediction that could not be obtained says so.
"""

import json
import string
from ast import literal_eval
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.data.logs.base import Log, LoggedSample, checked_rows, flat, image_identity
from dualread.errors import DataError

SUFFIXES = [".tsv", ".csv", ".json"]
CONFIDENCE = "VLMEvalKit logs no token probabilities; have the model state <confidence>NN</confidence>"

_FAILED = "Failed to obtain answer"


def read_log(path: Path) -> Log:
    """Read one file of predictions; DataError if it has another suffix."""
    if path.suffix not in SUFFIXES:
        listed = ", ".join(SUFFIXES)
        raise DataError(f"{path}: expected {listed}. Let VLMEvalKit write one (PRED_FORMAT=tsv), or save it as .tsv.")
    if path.suffix == ".json":
        rows = json.loads(path.read_text(encoding="utf-8"))
    else:
        rows = pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",", infer_schema=False).to_dicts()
    left_out, samples = Counter(), []
    for row in checked_rows(path, rows, ("index", "prediction"), ("index",)):
        if row["prediction"] in (None, "") or _FAILED in str(row["prediction"]):
            left_out[f"no prediction, or {_FAILED!r}"] += 1
        else:
            samples.append(_sample({key: str(value) for key, value in row.items() if value not in (None, "")}))
    return Log(samples=samples, left_out=left_out)


def _sample(row: Mapping[str, str]) -> LoggedSample:
    scores = {name: row[name] for name in ("hit", "score", "eval_score") if name in row}
    options = [*(row.get(letter, "") for letter in string.ascii_uppercase), ""]
    images = row.get("image_path", "")
    return LoggedSample(
        sample_id=row["index"],
        question=row.get("question"),
        references=[row["answer"]] if "answer" in row else [],
        completions=[row["prediction"]],
        scores=scores,
        scored_answers={name: [row.get("extracted", row["prediction"])] for name in scores},
        options=options[: options.index("")],
        image=image_identity(literal_eval(images) if images.startswith("[") else images),
        others={name: text for key, value in row.items() for name, text in flat(key, value).items()},
    )
