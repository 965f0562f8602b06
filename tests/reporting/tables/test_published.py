"""Every number of the paper is printed by our tables, and read back from the place that its labels name."""

import csv
from functools import partial
from pathlib import Path

from dualread.artifacts.tables import from_rows
from dualread.reporting.tables import data, paired
from dualread.reporting.tables import published as _published
from dualread.reporting.tables.values import Key
from dualread.schema.columns import DATA
from dualread.stages import build_table
from tests.reporting.tables import cases, contrasts, reading
from tests.reporting.tables.cases import CASES
from tests.reporting.tables.layouts import BACKBONES, datasets, layout, method
from tests.reporting.tables.reading import published
from tests.specs import changed

# The paper's Table paired: what each of its rows is of, by our label of it.
_PAIRED = {
    "P-Visual − P-State (validation)": ("p_visual-p_state", "slake_val", "slake", "validation"),
    "DualRead − RLCR (SLAKE-test)": ("dualread-rlcr", "slake", "slake", "test"),
    "DualRead − RLCR (OOD)": ("dualread-rlcr", "ood_unspecified", "ood6", "test"),
}
_PAIRED_METHODS = [
    method("dualread", label="DualRead"),
    method("rlcr", label="RLCR"),
    method("p_visual", label="P-Visual"),
    method("p_state", label="P-State"),
]
# The paper's Table dataset_audit: data set and split of each of its rows, and our label of them.
_DATA = {
    "slake_train": ("slake", "train", "SLAKE-train"),
    "slake_val": ("slake", "validation", "SLAKE-validation"),
    "slake": ("slake", "test", "SLAKE-test"),
    "vqa_rad": ("vqa_rad", "test", "VQA-RAD"),
    "path_vqa": ("path_vqa", "test", "PathVQA"),
    "pmc_vqa": ("pmc_vqa", "test", "PMC-VQA"),
    "omnimedvqa": ("omnimedvqa", "test", "OmniMedVQA"),
    "rexvqa": ("rexvqa", "test", "ReXVQA"),
    "vqa_med_2019": ("vqa_med_2019", "test", "VQA-Med 2019"),
}


def read_paired():
    """The paper's contrasts, read back from our table of them."""
    rows, meanings = [], {of.label: {"backbone": of.name} for of in BACKBONES}
    meanings |= {"ΔAUROC": {"metrics": ("delta_auroc",)}, "ΔBrier": {"metrics": ("delta_brier",)}}
    meanings |= {f"Δ{of} CCG": {} for of in ("Natural", "Strict")}
    meanings |= {label: {"method": of[0], "dataset": of[1]} for label, of in _PAIRED.items()}
    places = {(of[0], of[1]): of for of in _PAIRED.values()}
    for key, value in published("paired").items():
        contrast, _, dataset, split = places[key.method, key.dataset]
        names, metric = contrast.split("-"), key.metric.removeprefix("delta_")
        row = contrasts.row(names[0], metric, value.mean, baseline=names[1], contrast=contrast)
        rows.append({**row, "backbone": key.backbone, "dataset": dataset, "split": split, "seed_std": value.std})
    table = build_table.build(
        paired,
        contrasts.table(*rows),
        changed(layout(_PAIRED_METHODS), contrasts=["p_visual-p_state", "dualread-rlcr"]),
    )
    return reading.read(table, meanings, key=partial(Key, subset="all"))


def read_data():
    """The paper's inventory, read back from our table of the data."""
    labels = {"questions": "QA", "images": "Images", "open_questions": "Open", "closed_questions": "Closed"}
    rows = {of: {"dataset": dataset, "split": split, "role": "test"} for of, (dataset, split, _) in _DATA.items()}
    for key, value in published("dataset_audit").items():
        rows[key.dataset][key.metric.removesuffix("_questions")] = int(value.mean)
    rest = {"source_rows": 0, "clusters": None, "pairs": None, "reason": "not paired", "manifest_sha256": "a" * 64}
    shown = datasets(*(dataset for dataset, _, _ in _DATA.values() if dataset != "slake"))
    table = build_table.build(
        data, from_rows([{**row, **rest} for row in rows.values()], DATA), layout([], datasets=shown)
    )
    meanings = {label: {"dataset": of} for of, (_, _, label) in _DATA.items()}
    meanings |= {label: {"metrics": (metric,)} for metric, label in labels.items()}
    meanings |= {label: {} for label in ("Role", "Official rows", "Pairs", "Manifest")}
    return reading.read(table, meanings, key=partial(Key, backbone=None, method=None, subset="all"))


def test_the_papers_contrasts_are_read_back():
    expected = {key: reading.as_printed(value) for key, value in published("paired").items()}
    assert read_paired() == {key: text if text.startswith("-") else f"+{text}" for key, text in expected.items()}


def test_the_papers_inventory_is_read_back():
    assert read_data() == {key: str(int(value.mean)) for key, value in published("dataset_audit").items()}


def test_together_they_are_every_published_cell():
    read_back = {("paired", key) for key in read_paired()} | {("dataset_audit", key) for key in read_data()}
    for name in (name for name, case in CASES.items() if case.source):
        found = cases.read(name, cases.paper(name))
        for key, value in published(CASES[name].source).items():
            if all(found[of] == cases.as_printed(of, its) for of, its in cases.ours(name, key, value).items()):
                read_back.add((CASES[name].source, key))
    with Path(_published.__file__).with_name("published.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    assert len(read_back) == len({tuple(row[:6]) for row in rows}) == len(rows) == 1291
