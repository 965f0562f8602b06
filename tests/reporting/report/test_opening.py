"""The first screen: short sentences, what was found first, and the same verdicts as the plot's."""

import polars as pl
import pytest

from dualread.artifacts.tables import from_rows
from dualread.errors import ArtifactError
from dualread.reporting.forest import VALUES
from dualread.reporting.report.findings import find
from dualread.reporting.report.opening import LONGEST, opening
from dualread.schema.columns import CONTRASTS
from tests.reporting.report.test_findings import LAYOUT, MEDGEMMA, METHODS, QWEN, against_all, on, row
from tests.reporting.tables.layouts import layout

PLAIN = "DualRead separates right from wrong answers better than"
NAMES = "Qwen3VL-2B and MedGemma1.5-4B"


def ccg(p=0.001, estimate=0.1, **columns):
    at = {"metric": "natural_ccg_auc", **columns}
    return [row(estimate=0.7, **at), *(row(m.name, estimate, p, **at) for m in METHODS[:-1])]


def said(rows, tmp_path, shown=LAYOUT, drawn=()):
    folder = tmp_path / "figures/forest"
    if drawn:
        folder.mkdir(parents=True, exist_ok=True)
        named = [
            {"study": "s", "backbone": b, "metric": metric, "method": "dualread", "role": "method", "estimate": 0.8,
             "label": "DualRead", "n_seeds": 1, "above": above}
            for b, metric, above in drawn
        ]  # fmt: skip
        pl.DataFrame(named, schema=VALUES).write_csv(folder / "forest.csv")
    found = opening(tmp_path, find(None if rows is None else from_rows(rows, CONTRASTS), [shown]))
    assert len(found.sentences) <= 3
    assert all(len(sentence.split()) <= LONGEST for sentence in found.sentences), found.sentences
    return list(found.sentences)


def test_what_was_found_comes_before_what_was_not(tmp_path):
    rows = against_all() + against_all(backbone=MEDGEMMA) + ccg(p=0.3) + ccg(backbone=MEDGEMMA)
    rows = [r if r["baseline"] != "rlvr" else {**r, "p_holm": 0.5} for r in rows]  # the stated confidence
    assert said(rows, tmp_path) == [
        f"{PLAIN} question and answer alone on {NAMES}.",
        "DualRead's confidence follows the image, not only question and answer, on MedGemma1.5-4B; not shown on"
        " Qwen3VL-2B.",
        f"Not shown on {NAMES}: {PLAIN} the stated confidence.",
    ]


def test_the_sentences_say_what_the_dots_say(tmp_path):
    rows = against_all() + against_all(backbone=MEDGEMMA)
    drawn = [(QWEN, "auroc", True), (MEDGEMMA, "auroc", False)]
    assert said(rows, tmp_path, drawn=drawn) == [
        f"{PLAIN} the stated confidence on {NAMES}.",  # which the plot does not show
        f"{PLAIN} question and answer alone on Qwen3VL-2B; not shown on MedGemma1.5-4B.",
    ]


def test_what_is_significantly_worse_is_said(tmp_path):
    rows = against_all(estimate=-0.1) + against_all(backbone=MEDGEMMA)
    first, _ = said(rows, tmp_path)
    assert first == f"{PLAIN} question and answer alone on MedGemma1.5-4B; the reverse on Qwen3VL-2B."
    drawn = [(QWEN, "auroc", False), (MEDGEMMA, "auroc", True)]  # a hollow dot, which says less
    assert said(rows, tmp_path, drawn=drawn)[0] == first


def test_long_names_give_counts(tmp_path):
    long = {
        **LAYOUT,
        "backbones": [{**b, "label": f"A model with a very long name, {b['name']}"} for b in LAYOUT["backbones"]],
    }
    rows = against_all() + against_all(p=0.3, backbone=MEDGEMMA)
    assert said(rows, tmp_path, long)[0] == (
        "AUROC of DualRead is above every null on 1 of 2 backbones; not shown on 1 of 2 backbones."
    )


def test_one_backbone(tmp_path):
    assert said(against_all(), tmp_path, on(1)) == [
        f"{PLAIN} question and answer alone on Qwen3VL-2B.",
        f"{PLAIN} the stated confidence on Qwen3VL-2B.",
    ]


def test_what_was_not_found_at_all_comes_last(tmp_path):
    assert said(against_all() + ccg(p=0.3), tmp_path, on(1))[-1] == (
        "Not shown on Qwen3VL-2B: DualRead's confidence follows the image, not only question and answer."
    )


def test_without_tests_or_nulls_the_sentences_say_what_is_left_open(tmp_path):
    first, second = said(None, tmp_path)
    assert first.startswith("This study tests no method")
    assert second.startswith("Its numbers describe each method")
    shown = layout([m for m in METHODS if m.group != "Null"]).to_spec()
    rows = [r for r in against_all() if r["baseline"] not in ("question", "answer")]
    last = said(rows, tmp_path, shown)[-1]
    assert last.startswith("Without nulls, nothing here shows")


def test_a_damaged_file_of_values_is_named(tmp_path):
    folder = tmp_path / "figures/forest"
    folder.mkdir(parents=True)
    (folder / "forest.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ArtifactError, match=r"forest\.csv: no values of a forest plot .*run snakemake again"):
        opening(tmp_path, find(None, [LAYOUT]))
