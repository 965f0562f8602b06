"""The tables of a study whose every number is the paper's, made by our own tables.

Names and directions are turned into ours by hand, here and in `cases`: the other way round than the code does it.
"""

import polars as pl

from dualread.artifacts.tables import from_rows
from dualread.plugins import load
from dualread.reporting.tables.published import published_cells
from dualread.schema.columns import DATA
from dualread.schema.metrics import CompareWithPaperSpec
from dualread.stages import build_table
from dualread.study.tables import PAPER_TABLES
from tests.reporting.tables import cases, contrasts
from tests.reporting.tables.layouts import datasets, layout, method
from tests.specs import changed

OOD6 = ["rexvqa", "vqa_rad", "path_vqa", "pmc_vqa", "omnimedvqa", "vqa_med_2019"]
OF_ACTORS = ("base", "rlcr", "dcpo", "vl_calibration")
OF_RLVR = ("rlvr", "p_true", "self_probing", "prompt_ensemble", "sc2", "sc8", "semantic_uncertainty", "saplma", "bicr",
           "psr", "p_state", "per", "dualread")  # fmt: skip
STUDY = CompareWithPaperSpec(
    study="mine",
    backbones=["qwen3-vl-2b", "medgemma-1.5-4b"],
    actors={**{name: name for name in OF_ACTORS}, **dict.fromkeys(OF_RLVR, "rlvr")},
    ood=OOD6,
    ood_ccg=["path_vqa", "vqa_rad", "vqa_med_2019"],
)


def tables():
    """Return the CSV of each table as the comparison gets it, all columns as text."""
    shown = layout([method(name) for name in ("dualread", "rlcr", "per", "p_state")], datasets=datasets(*OOD6))
    made = {name: cases.paper(name) for name in PAPER_TABLES if name not in ("data", "paired")}
    shown_contrasts = changed(shown, contrasts=("rlcr", "p_state"))
    made["paired"] = build_table.build(load("tables", "paired"), _contrasts(), shown_contrasts)
    made["data"] = build_table.build(load("tables", "data"), _data(), shown)
    return {name: pl.read_csv(table.cells.write_csv().encode(), infer_schema=False) for name, table in made.items()}


def replaced(found, table, **key):
    """The tables with other text in the one row of a table that has `key`: in `mean`, `std` and `reason`."""
    changes = {name: key.pop(name) for name in ("mean", "std", "reason") if name in key}
    chosen = pl.all_horizontal(pl.col(name) == value for name, value in key.items())
    assert len(found[table].filter(chosen)) == 1
    columns = [
        pl.when(chosen).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name, value in changes.items()
    ]
    return {**found, table: found[table].with_columns(columns)}


def _cells(table):
    return [(place, cell) for place, cell in published_cells().items() if place.table == table]


def _contrasts():
    rows = []
    for place, (mean, std) in _cells("paired"):
        method, baseline = {"p_visual-p_state": ("per", "p_state")}.get(place.method, ("dualread", "rlcr"))
        metric = place.metric.removeprefix("delta_")
        # Ours is method minus baseline; DualRead's Brier is the lower one.
        mean = -mean if (method, metric) == ("dualread", "brier") else mean
        where = {"slake_val": [("slake", "validation")], "ood_unspecified": [("ood6", "test"), ("vqa_rad", "test")]}
        for dataset, split in where.get(place.dataset, [(place.dataset, "test")]):
            found = contrasts.row(method, metric, mean, baseline=baseline, contrast=baseline, dataset=dataset)
            rows.append({**found, "backbone": place.backbone, "split": split, "seed_std": std})
    ccg = contrasts.row("dualread", "natural_ccg_auc", 0.9, baseline="rlcr", contrast="rlcr", backbone="qwen3-vl-2b")
    return contrasts.table(*rows, ccg)


def _data():
    """SLAKE's training split in our three roles; every other split in one."""
    counts = {}
    for place, (mean, _) in _cells("dataset_audit"):
        column = place.metric.removesuffix("_questions")
        counts.setdefault(place.dataset, {})[column] = int(mean)
    train = counts.pop("slake_train")
    fit = {column: n - 100 for column, n in train.items()}
    rows = [("slake", "train", role, {**dict.fromkeys(train, 50)}) for role in ("stop", "calibration")]
    rows += [("slake", "train", "fit", fit), ("slake", "validation", "validation", counts.pop("slake_val"))]
    rows += [(name, "test", "test" if name == "slake" else "ood", count) for name, count in counts.items()]
    return from_rows(
        [
            {
                "dataset": dataset,
                "split": split,
                "role": role,
                "source_rows": 5000,
                "clusters": None,
                **count,
                "manifest_sha256": "a" * 64,
            }
            for dataset, split, role, count in rows
        ],
        DATA,
    )
