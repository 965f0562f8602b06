"""The CSV files of a study whose every number is the paper's, written as our tables write theirs.

Names and directions are turned into ours by hand here, the other way round than the code under test does it.
"""

import polars as pl

from dualread.comparison.cells import Study
from dualread.tables import _contrasts, data
from dualread.tables._cells import Cell, csv_rows
from dualread.tables._published import published_cells
from dualread.tables._values import Key, Value
from tests.tables import contrasts
from tests.tables.layouts import data_rows, layout

ORDINARY = (
    "main",
    "cascade",
    "sc_tradeoff",
    "ood_acc",
    "calib",
    "reliability",
    "ccg_ood",
    "ccg",
    "ccg_denom",
    "channel",
)
OOD6 = ["rexvqa", "vqa_rad", "path_vqa", "pmc_vqa", "omnimedvqa", "vqa_med_2019"]
TOKENS = ("base", "rlcr", "dcpo", "vl_calibration")
OTHERS = ("rlvr", "p_true", "self_probing", "prompt_ensemble", "saplma", "bicr", "psr", "p_state", "per", "dualread")
STUDY = Study(
    name="mine",
    backbones=["qwen3-vl-2b", "medgemma-1.5-4b"],
    actors={**{name: name for name in TOKENS}, **dict.fromkeys(OTHERS, "rlvr")},
    members={"ood6": OOD6, "ood_ccg": ["path_vqa", "vqa_rad", "vqa_med_2019"]},
)


def values(table):
    """{key of ours: value}; where the paper has one cell for several methods, both have it."""
    found = {}
    for place, (mean, std) in published_cells().items():
        if place.table != table:
            continue
        dataset, method, metric = place.dataset, place.method, place.metric
        if table == "main":
            if dataset == "ood":
                dataset = "ood_ccg" if "ccg" in metric else "ood6"
            if (method, metric) == ("dualread", "accuracy"):
                method = "rlvr"  # the first method that judges the actor's answers
        if method == "actor":
            method, metric = "dualread", "accuracy_donor" if metric == "accuracy_hard_negative" else metric
        if metric in ("retained_low", "retained_high"):
            mean, metric = 100 * mean, f"{metric}_percent"
        metric = "parse_rate" if metric.startswith("parse_rate") else metric
        for name in method.split("_and_"):
            key = Key(place.backbone, dataset, place.subset, name, metric)
            found[key] = Value(mean=mean, std=std, n_runs=1 if std is None else 3, n=None)
    return found


def ordinary(table, found):
    cells = csv_rows(table, [Cell(key=key, value=value, bold=False) for key, value in found.items()])
    return as_text(cells)


def paired():
    rows = []
    for place, (mean, std) in published_cells().items():
        if place.table == "paired":
            method, baseline = {"p_visual-p_state": ("per", "p_state")}.get(place.method, ("dualread", "rlcr"))
            metric = place.metric.removeprefix("delta_")
            # Ours is method minus baseline; DualRead's Brier is the lower one.
            mean = -mean if (method, metric) == ("dualread", "brier") else mean
            where = {"slake_val": [("slake", "validation")], "ood_unspecified": [("ood6", "test"), ("vqa_rad", "test")]}
            for dataset, split in where.get(place.dataset, [(place.dataset, "test")]):
                found = contrasts.row(method, metric, mean, baseline=baseline, contrast="c", dataset=dataset)
                rows.append({**found, "backbone": place.backbone, "split": split, "seed_std": std})
    rows.append(contrasts.row("dualread", "natural_ccg_auc_two_way", 0.9, baseline="rlcr", contrast="c"))
    return as_text(_contrasts.csv_rows("paired", [_contrasts.Cell(row, "", "") for row in rows]))


def audit():
    """SLAKE's training split in our three roles; the other splits in one."""
    counts = {}
    for place, (mean, _) in published_cells().items():
        if place.table == "dataset_audit" and place.dataset not in ("slake_train", "slake"):
            counts.setdefault(place.dataset, {})[place.metric] = int(mean)
    more = [
        (
            *(("slake", "validation", "validation") if name == "slake_val" else (name, "test", "ood")), 5000,
            *(counts[name][column] for column in ("questions", "images", "open_questions", "closed_questions")),
            0, None, "b" * 64,
        )
        for name in counts
    ]  # fmt: skip
    names = ["slake", *(name for name in counts if name != "slake_val")]
    datasets = [{"name": name, "label": name, "id": name == "slake"} for name in names]
    return as_text(data.build(data_rows(*more), {**layout([]), "datasets": datasets}).cells)


def tables():
    return {**{name: ordinary(name, values(name)) for name in ORDINARY}, "paired": paired(), "data": audit()}


def as_text(cells):
    """The table as the comparison gets it, through its file."""
    return pl.read_csv(cells.write_csv().encode(), infer_schema=False)
