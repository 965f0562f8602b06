"""The model card of a bundle, in the form of the Hugging Face hub; its numbers are those of the study's metrics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from dualread.evaluation.answer_metrics import NOISE_FLOOR
from dualread.evaluation.metrics.calibration_chance import is_by_chance
from dualread.readers.base import FittedReader
from dualread.readers.declarations import declared
from dualread.scoring.bundle import METRICS, Bundle

_TEMPLATE = Path(__file__).with_name("card.md.jinja")
_TAGS = ["dualread", "visual-question-answering", "medical", "confidence-estimation", "selective-prediction"]
# The metrics of a card: their headings, and their names on the hub.
_SHOWN = {
    "accuracy": ("accuracy", "accuracy"),
    "auroc": ("AUROC", "roc_auc"),
    "ece15": ("ECE", "expected_calibration_error"),
    "brier": ("Brier", "brier_score"),
    "aurc": ("AURC", "aurc"),
    "natural_ccg_auc": ("CCG-AUC", "natural_ccg_auc"),
}
_DASH = "—"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a card says that is in no reader.

    Attributes:
        reader: The reader that gives the confidence.
        rows: The methods that the tables show, with the words that follow their names.
        origins: Where each data set comes from, and its terms.
        license: The hub's name of the licence, such as "apache-2.0" or "other".
        licence: The section on the licence.
        base_model: The repository of the hub that the actor was trained from; None if it was none.
        with_checkpoint: Whether the actor is part of the bundle.
        adapter: What adapter the actor's weights contain, in words; None if it is none.
    """

    reader: FittedReader
    rows: Mapping[str, str]
    origins: Mapping[str, str]
    license: str
    licence: str
    base_model: str | None
    with_checkpoint: bool
    adapter: str | None = None


def write_card(folder: Path, bundle: Bundle, metrics: pl.DataFrame, facts: Facts) -> None:
    """Write README.md and metrics.csv.

    Args:
        folder: The bundle's folder.
        bundle: What is in it.
        metrics: The collected metrics table of the study.
        facts: What else the card says.
    """
    from huggingface_hub import ModelCard, ModelCardData

    run = (pl.col(name) == getattr(bundle, name) for name in ("backbone", "actor", "seed"))
    own = metrics.filter(*run, pl.col("method").is_in(list(facts.rows)))
    own.write_csv(folder / METRICS)
    tested = own.filter((pl.col("split") == "test") & (pl.col("subset") == "all"))
    title = f"{bundle.method}: confidence in the answers of {bundle.backbone}, {bundle.actor}, seed {bundle.seed}"
    data = ModelCardData(
        license=facts.license,
        license_name="terms-of-data-and-model" if facts.license == "other" else None,
        library_name="dualread",
        pipeline_tag="visual-question-answering",
        tags=_TAGS,
        metrics=[name for _, name in _SHOWN.values()],
        base_model=facts.base_model,
        model_name=title,
        eval_results=list(_eval_results(tested, bundle.method)),
    )
    provenance = facts.reader.provenance
    card = ModelCard.from_template(
        data,
        template_path=str(_TEMPLATE),
        bundle=bundle,
        title=title,
        version=version("dualread"),
        load='"this folder"' if facts.with_checkpoint else '"this folder", "folder of the actor"',
        with_checkpoint=facts.with_checkpoint,
        adapter=facts.adapter,
        settings=_listed({k: v for k, v in bundle.scoring["model"].items() if k != "quantization"}),
        quantization=bundle.scoring["model"].get("quantization"),
        decoding=_listed(bundle.scoring["decoding"]),
        fitted={**provenance["examples"], "partitions": provenance["partitions"]},
        origins=facts.origins,
        tables=list(_tables(tested, facts)),
        licence=facts.licence,
    )
    card.save(folder / "README.md")


def _eval_results(tested: pl.DataFrame, method: str) -> Iterator[Any]:
    from huggingface_hub import EvalResult

    for row in tested.filter(pl.col("method") == method).iter_rows(named=True):
        if row["metric"] in _SHOWN and row["estimate"] is not None:
            heading, name = _SHOWN[row["metric"]]
            yield EvalResult(
                task_type="visual-question-answering",
                dataset_type=row["dataset"],
                dataset_name=row["dataset"],
                dataset_split=row["split"],
                metric_type=name,
                metric_name=heading,
                metric_value=row["estimate"],
            )


def _tables(tested: pl.DataFrame, facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield one table per data set: first the one on which the reader was fitted, last the means over others."""
    own = facts.reader.provenance["examples"]["dataset"]
    for dataset in sorted(tested["dataset"].unique(), key=lambda name: (name != own, name not in facts.origins, name)):
        of_dataset = tested.filter(pl.col("dataset") == dataset)
        found = {(row["method"], row["metric"]): row for row in of_dataset.iter_rows(named=True)}
        of_reader = {metric: row for (method, metric), row in found.items() if method == next(iter(facts.rows))}
        pairs = of_reader.get("natural_ccg_auc")
        shown = [name for name in _SHOWN if name in of_reader]
        yield {
            "dataset": dataset,
            "answers": of_reader.get("accuracy"),
            "pairs": pairs if pairs and pairs["n"] else None,
            "short": [side for side in ("source", "donor") if _estimate(of_reader.get(f"natural_few_{side}s"))],
            "columns": [_SHOWN[name][0] for name in shown],
            "rows": [
                {"name": f"{method}{words}", "cells": [_cell(method, name, found) for name in shown]}
                for method, words in facts.rows.items()
            ],
        }


def _estimate(row: dict[str, Any] | None) -> float | None:
    return row["estimate"] if row else None


def _cell(method: str, metric: str, found: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    row = found.get((method, metric))
    if row is None or row["estimate"] is None:
        return _DASH
    floor = found[method, NOISE_FLOOR]["estimate"] if metric == "ece15" and (method, NOISE_FLOOR) in found else None
    mark = "°" if floor is not None and is_by_chance(row["estimate"], floor) else ""
    interval = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['estimate']:.3f}{mark}{interval}"


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def rows_of(reader: FittedReader, nulls: Sequence[str]) -> dict[str, str]:
    """Return the methods of a card: the reader's, its parts, and the nulls, with the words behind their names."""
    parts: dict[str, str] = {}
    for role in declared(reader.module, "PARENTS"):
        parts |= rows_of(reader.parents[role], ())
    return {str(reader.provenance["method"]): "", **parts, **dict.fromkeys(nulls, " (null)")}
