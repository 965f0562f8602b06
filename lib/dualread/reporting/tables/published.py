"""The numbers that the paper prints, as cells to compare with ours.

Names in published.csv that differ from those in our tables are mapped here and nowhere else.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl

from dualread import source_snapshot as source_snapshot
from dualread.reporting.tables.values import Key

DATA_FILES = ("reporting/tables/published.csv",)

# The data sets that the paper's OOD means are over.
OOD_MEMBERS = {
    "ood6": ("vqa_rad", "path_vqa", "pmc_vqa", "omnimedvqa", "rexvqa", "vqa_med_2019"),
    "ood_ccg": ("vqa_rad", "path_vqa", "vqa_med_2019"),
}
# The paper prints these in a row of their own; our tables print them with the first method of this actor.
_ACTOR = "rlvr"
_OF_ACTOR = {
    "accuracy_donor": "accuracy_hard_negative",
    **{name: name for name in ("accuracy_real", "vrs", "vbr", "decisive_pairs", "source_images", "donor_images")},
}
_CONTRASTS = {("per", "p_state"): "p_visual-p_state", ("dualread", "rlcr"): "dualread-rlcr"}
# The paper does not say which data sets OOD stands for in Table paired.
_UNSPECIFIED = ("ood6", "vqa_rad")
_AUDIT = {"questions": "questions", "images": "images", "open": "open_questions", "closed": "closed_questions"}
_AUDIT_SPLITS = {("slake", "train"): "slake_train", ("slake", "validation"): "slake_val"}

# Decimals that the paper prints, if not three.
_DIGITS = {
    **dict.fromkeys(("decisive_pairs", "strict_decisive_pairs", "source_images", "donor_images"), 1),
    **dict.fromkeys(("retained_low", "retained_high"), 2),
    **dict.fromkeys(("unique_confidences", *_AUDIT.values()), 0),
}


class PaperPlace(NamedTuple):
    """The place of a cell in the paper, as published.csv names it."""

    table: str
    backbone: str
    dataset: str
    subset: str
    method: str
    metric: str

    @property
    def digits(self) -> int:
        """Decimals that the paper prints."""
        return 4 if self.method == "p_visual-p_state" else _DIGITS.get(self.metric, 3)

    @property
    def is_gain(self) -> bool:
        """Whether the paper prints a difference as baseline minus method, so that more is better."""
        return (self.method, self.metric) == ("dualread-rlcr", "delta_brier")

    @property
    def quantity(self) -> Key:
        """The measured quantity, independent of the table: places with one quantity should hold one number."""
        dataset, method = self.dataset, self.method
        if dataset == "ood":
            dataset = "ood_ccg" if self.metric.endswith("ccg_auc") else "ood6"
        return Key(self.backbone, dataset, self.subset, _ACTOR if method == "actor" else method, self.metric)


_CSV = {**dict.fromkeys(PaperPlace._fields, pl.String), "mean": pl.Float64, "std": pl.Float64}


class Printed(NamedTuple):
    """A number of the paper; `std` is None where it prints none."""

    mean: float
    std: float | None


def published_cells() -> dict[PaperPlace, Printed]:
    """Return everything that the paper prints, in the order of its tables."""
    text = source_snapshot.read(Path(__file__).with_name("published.csv"))
    frame = pl.read_csv(text, schema=_CSV).with_columns(pl.col(pl.String).fill_null(""))
    return {PaperPlace(*names): Printed(mean, std) for *names, mean, std in frame.iter_rows()}


def place_of(table: str, cell: Mapping[str, str | None], actors: Mapping[str, str]) -> tuple[PaperPlace, float] | None:
    """Return which cell of the paper corresponds to ours, and the factor that converts ours to its unit and sign.

    The cell is a row of our table's CSV; `actors` has the actor whose answers each method judges. The place may be
    absent from the paper; None where the paper certainly has no such cell.
    """
    if table == "data":
        return _in_audit(cell)
    if table == "paired":
        return _in_contrasts(cell)
    place = PaperPlace(table, *(cell[name] or "" for name in PaperPlace._fields[1:]))
    metric, of_actor = place.metric, actors.get(place.method) == _ACTOR
    if table == "main":
        place = place._replace(dataset="ood" if place.dataset in OOD_MEMBERS else place.dataset)
        # Printed once for all methods of an actor.
        return place._replace(method="dualread") if metric == "accuracy" and of_actor else place, 1.0
    if table == "ccg" and metric in _OF_ACTOR:
        return place._replace(method="actor", metric=_OF_ACTOR[metric]), 1.0
    if table == "ccg_denom" and metric.endswith("_percent"):
        return place._replace(metric=metric.removesuffix("_percent")), 0.01
    if table == "channel":
        method = "bicr_and_dualread" if place.method in ("bicr", "dualread") else place.method
        metric = f"parse_rate_{place.dataset}" if metric == "parse_rate" else metric
        return place._replace(method=method, metric=metric), 1.0
    return place, 1.0


def _in_audit(cell: Mapping[str, str | None]) -> tuple[PaperPlace, float] | None:
    column, dataset = cell["column"] or "", cell["dataset"] or ""
    if column not in _AUDIT:
        return None
    dataset = _AUDIT_SPLITS.get((dataset, cell["split"] or ""), dataset)
    return PaperPlace("dataset_audit", "", dataset, "all", "", _AUDIT[column]), 1.0


def _in_contrasts(cell: Mapping[str, str | None]) -> tuple[PaperPlace, float] | None:
    method = _CONTRASTS.get((cell["method"] or "", cell["baseline"] or ""))
    dataset = cell["dataset"] or ""
    if method is None:
        return None
    if cell["split"] == "validation":
        dataset = _AUDIT_SPLITS.get((dataset, "validation"), dataset)
    elif dataset in _UNSPECIFIED:
        dataset = "ood_unspecified"
    place = PaperPlace("paired", cell["backbone"] or "", dataset, "all", method, f"delta_{cell['metric']}")
    return place, -1.0 if place.is_gain else 1.0
