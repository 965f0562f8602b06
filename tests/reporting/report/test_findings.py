"""What the report says was found: the first screen, the headline and the tables of verdicts, which follow from tests.

The words and the cells of each case are in findings.txt.
"""

from pathlib import Path

import polars as pl
import pytest

from dualread.artifacts.tables import from_rows
from dualread.errors import ArtifactError
from dualread.reporting.forest import VALUES
from dualread.reporting.report.findings import find
from dualread.reporting.report.page import LONGEST, opening
from dualread.schema.columns import CONTRASTS
from tests.golden import check
from tests.reporting.tables import contrasts
from tests.reporting.tables.layouts import BACKBONES, HIDDEN, TOKEN, datasets, layout, method

QWEN, MEDGEMMA = (backbone.name for backbone in BACKBONES)
METHODS = [
    method("rlcr", TOKEN, "rlcr", label="RLCR", readers=["verbalized"]),
    method("rlvr", TOKEN, label="GRPO", readers=["verbalized"]),
    method("question", "Null", label="Question prior", readers=["question_prior"]),
    method("answer", "Null", label="Answer prior", readers=["question_answer_prior"]),
    method("saplma", HIDDEN, label="SAPLMA", readers=["saplma"]),
    method("dualread", HIDDEN, label="DualRead", readers=["dualread", "psr"]),
]
LAYOUT = layout(METHODS, datasets=datasets("vqa_rad")).to_spec()
ONE = {**LAYOUT, "backbones": LAYOUT["backbones"][:1]}
WITHOUT_NULLS = layout([m for m in METHODS if m.group != "Null"]).to_spec()
LONG = {
    **LAYOUT,
    "backbones": [{**b, "label": f"A model with a very long name, {b['name']}"} for b in LAYOUT["backbones"]],
}
BARS = ("rlvr", "question", "answer")
CCG = "natural_ccg_auc"


def row(baseline=None, estimate=0.1, p=0.001, *, metric="auroc", backbone=QWEN, **columns):
    """Return a difference between DualRead and `baseline`, or DualRead's own value."""
    known = {"backbone": backbone, "n": 384, "n_clusters": 48, "contrast": baseline and "significance"}
    if estimate is not None:
        known |= {"low": estimate - 0.05, "high": estimate + 0.05}
        known |= {} if baseline is None else {"p_holm": p}
    return contrasts.row("dualread", metric, estimate, **{"baseline": baseline, **known, **columns})


def against_all(p=0.001, estimate=0.1, **columns):
    """Return DualRead's value and its differences from every other method."""
    return [row(estimate=0.8, **columns), *(row(m.name, estimate, p, **columns) for m in METHODS[:-1])]


def with_answer_prior(estimate=0.1, p=0.001, **columns):
    """Return the same with another difference from one bar."""
    rows = [r for r in against_all() if r["baseline"] != "answer"]
    return [*rows, row("answer", estimate, p, **columns)]


def without(*baselines):
    return [r for r in against_all() if r["baseline"] not in baselines]


SEEDS = {"p_holm_at_most": True, "p_retrained": 0.03, "p_holm_retrained": 0.06}
MIXED = against_all(metric=CCG, p=0.3) + against_all(metric=CCG, backbone=MEDGEMMA)
# RLCR is what another actor states: no bar, but a method like SAPLMA.
CASES = {
    "above each bar and every other method": (against_all() + against_all(backbone=MEDGEMMA), LAYOUT),
    "a small p for these seeds alone is not enough": (
        [row(estimate=0.8), *(row(m.name, **SEEDS) for m in METHODS[:-1])],
        ONE,
    ),
    "below one bar": (with_answer_prior(-0.1), ONE),
    "p = .05 is not below .05": (with_answer_prior(p=0.05), ONE),
    "undefined against one bar": (with_answer_prior(None), ONE),
    "few images against one bar": (with_answer_prior(short="donor"), ONE),
    "another p on one backbone": (against_all() + against_all(p=0.2, backbone=MEDGEMMA), LAYOUT),
    "undefined": ([row(estimate=None), *(row(name, None) for name in BARS)], ONE),
    "one seed": (against_all(n_seeds=1), ONE),
    "nothing of one backbone": (against_all(), LAYOUT),
    "no nulls in the study": (without("question", "answer"), WITHOUT_NULLS),
    "nulls that were not tested": (without("question", "answer"), ONE),
    "CCG-AUC against nulls alone": (
        against_all() + against_all(metric=CCG) + against_all(0.8, 0.01, metric="strict_ccg_auc"),
        ONE,
    ),
    "CCG-AUC on few images, however small p": (against_all() + against_all(metric=CCG, short="donor"), ONE),
    "CCG-AUC undefined": ([*against_all(), row(estimate=None, metric="strict_ccg_auc")], ONE),
    "of several contrasts, that of the largest family": (
        against_all(p=0.3) + [row(name, contrast=f"with_{name}_alone") for name in BARS],
        ONE,
    ),
    "what was found comes first": (
        [
            r if r["baseline"] != "rlvr" else {**r, "p_holm": 0.5}
            for r in against_all() + against_all(backbone=MEDGEMMA) + MIXED
        ],
        LAYOUT,
    ),
    "significantly worse": (against_all(estimate=-0.1) + against_all(backbone=MEDGEMMA), LAYOUT),
    "long names give counts": (against_all() + against_all(p=0.3, backbone=MEDGEMMA), LONG),
}
# Cases with a plot: (backbone, metric) -> whether the dot of DualRead is filled.
DRAWN = {
    "a hollow dot": ("above each bar and every other method", {(QWEN, "auroc"): True, (MEDGEMMA, "auroc"): False}),
    "a hollow dot says less than worse": ("significantly worse", {(QWEN, "auroc"): False, (MEDGEMMA, "auroc"): True}),
}


def found(rows, shown=LAYOUT):
    return find(None if rows is None else from_rows(rows, CONTRASTS), [shown])


def words_of(findings, folder):
    """The sentences of the first screen, the headline, and the lines of the table."""
    sentences, _ = opening(folder, findings)
    assert len(sentences) <= 3
    assert all(len(sentence.split()) <= LONGEST for sentence in sentences), sentences
    (grid,) = findings.grids
    lines = [" | ".join("—" if text is None else text for text in line) for line in grid.rows]
    return "\n".join([*sentences, "", *findings.headline, "", grid.caption, *lines])


def test_what_was_found(tmp_path):
    words = {name: words_of(found(*case), tmp_path) for name, case in CASES.items()}
    folder = tmp_path / "figures/forest"
    folder.mkdir(parents=True)
    for name, (case, dots) in DRAWN.items():
        named = [
            {"study": "s", "backbone": b, "metric": metric, "method": "dualread", "role": "method", "estimate": 0.8,
             "label": "DualRead", "n_seeds": 1, "above": above}
            for (b, metric), above in dots.items()
        ]  # fmt: skip
        pl.DataFrame(named, schema=VALUES).write_csv(folder / "forest.csv")
        words[name] = "\n".join(opening(tmp_path, found(*CASES[case]))[0])
    words["a study without tests"] = "\n".join(opening(Path(), found(None))[0])
    check(Path(__file__).with_name("findings.txt"), words)


@pytest.mark.parametrize("rows", [None, [], [row(estimate=0.8)], [row("saplma")]])
def test_a_study_that_tests_nothing_against_the_bars_ranks_nothing(rows):
    result = found(rows)
    assert (result.headline, result.grids) == ([], [])


def test_other_data_sets_and_splits_have_no_influence():
    elsewhere = against_all(dataset="ood6") + against_all(split="validation")
    assert found(against_all(p=0.5) + elsewhere, ONE) == found(against_all(p=0.5), ONE)


def test_a_damaged_file_of_values_is_named(tmp_path):
    folder = tmp_path / "figures/forest"
    folder.mkdir(parents=True)
    (folder / "forest.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ArtifactError, match=r"forest\.csv"):
        opening(tmp_path, found(None))
