"""Every table compiles with only booktabs and multirow, and fits a two-column page."""

import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache

import pytest
import yaml

from dualread.plugins import declared, known, load
from dualread.reporting.tables.values import summarize
from dualread.stages import build_table
from tests.reporting.tables import cases, contrasts, groups, synthetic
from tests.reporting.tables.cases import CASES, Case
from tests.reporting.tables.layouts import PAPER_METHODS, data_rows, datasets, layout, metrics, over_seeds
from tests.reporting.tables.test_hparams import ROOT, rows_of
from tests.specs import changed

LARGEST_OVERFLOW_PT = 2.0
# What people may call things: all that LaTeX reads as a command, and letters beyond ASCII.
ODD = r"a & b % c $ d # e_f {g} ~ ^ \h <i> Ärzte für Łódź, ß æ ø é ñ"
_DOCUMENT = r"""\documentclass[%s]{article}
\usepackage{booktabs}
\usepackage{multirow}
\begin{document}
%s
\end{document}
"""
_OOD = ("vqa_rad", "path_vqa", "pmc_vqa", "omnimedvqa", "rexvqa", "vqa_med_2019")
_CONTRASTED = ("auroc", "brier", "natural_ccg_auc", "strict_ccg_auc")


def odd(of_layout):
    """The layout with the same strange label of its last backbone, method and data set, and the study called so."""
    last = {kind: getattr(of_layout, kind) for kind in ("backbones", "methods", "datasets")}
    entries_of = {
        kind: (*entries[:-1], *(changed(of, label=ODD) for of in entries[-1:])) for kind, entries in last.items()
    }
    return changed(of_layout, **entries_of, study=ODD)


def of_values(name, change):
    """A table of the paper's numbers, or of synthetic ones, every CCG value on few images."""
    case = CASES.get(name, Case(layout(PAPER_METHODS, datasets=datasets(*_OOD)), {}))
    found = change(case.layout)
    rows = synthetic.rows_of(name) if name in CASES else usual_rows(case.layout)
    values = summarize(metrics(*rows), seeds=found.seeds)
    values = {**values, **(cases.published_values(name) if case.source else {})}
    marked = {
        key: replace(of, short=("source", "donor") if key.metric.endswith("ccg_auc") else ())
        for key, of in values.items()
    }
    return load("tables", name).build(marked, found)


def usual_rows(of_layout):
    """Metrics that most tables show, for a table without a case of its own."""
    return [
        {**row, "backbone": backbone.name}
        for backbone in of_layout.backbones
        for method in of_layout.methods
        for dataset in (*(of.name for of in of_layout.datasets), "ood6", "ood_ccg")
        for metric in ("accuracy", *_CONTRASTED)
        for row in over_seeds(method.name, metric, [0.5, 0.6, 0.7], dataset=dataset)
    ]


def of_rows(name, rows, of_layout):
    return build_table.build(load("tables", name), rows, of_layout)


def other_tables(change):
    """The tables that read other artifacts than metrics, built from one made-up artifact of each kind."""
    study = change(layout(PAPER_METHODS, datasets=datasets(*_OOD)))
    names, where = [of.name for of in PAPER_METHODS], {"split": "test"}
    counted = [
        row
        for dataset in ("slake", *_OOD)
        for family in (f"{dataset} family", "anatomical region")
        for row in over_seeds("rlvr", "accuracy", [0.5] * 3, dataset=dataset, subset=f"family:{family}", n=1061)
    ]
    shared = [
        {
            **where,
            "backbone": backbone.name,
            "dataset": dataset,
            "short": "source and donor" if "ccg" in metric else None,
        }
        | {"metric": metric}
        for backbone in study.backbones
        for metric in _CONTRASTED
        for dataset in ("slake", "ood_ccg" if "ccg" in metric else "ood6")
    ]
    own = [{**contrasts.row(name, of["metric"], 0.6), **of} for of in shared for name in names]
    against = [
        {**contrasts.row("dualread", of["metric"], -0.13, baseline=name, contrast="c", p_holm=0.0001), **of}
        for of in shared
        for name in names[:-1]
    ]
    pmc = ("pmc_vqa", "test", "ood", 2000, 1000, 1000, 994, 6, 0, "no question is asked of two images", "f" * 64)
    settings = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text()) if change is not odd else {}
    of_groups = [
        groups.row(name, group, metric, 0.5, backbone=backbone.name, by="anatomical region")
        for backbone in study.backbones
        for name in names[-4:]
        for group in ("head and neck", "chest", "abdomen", None)
        for metric in ("accuracy", *_CONTRASTED, "natural_few_donors", "certified_threshold_at_risk_10")
    ]
    read = {"contrasts": contrasts.table(*own, *against), "data": data_rows(pmc), "subgroups": groups.table(*of_groups)}
    labels = {"actors": {"dcpo": {"label": ODD}}} if change is odd else {}
    return {
        "families": of_rows("families", metrics(*({**row, "backbone": "qwen3-vl-2b"} for row in counted)), study),
        **{
            name: of_rows(name, read[kind], changed(study, contrasts=("c",)))
            for name in known("tables")
            if (kind := declared("tables", name, "READS")) and not declared("tables", name, "CONFIG")
        },
        "hparams": rows_of({**settings, **labels})[0],
    }


@cache
def tables():
    """Every table, as the paper has it and with a strange label."""
    found = {}
    for suffix, change in (("", changed), (" (odd)", odd)):
        others = other_tables(change)
        found |= {name + suffix: of_values(name, change) for name in known("tables") if name not in others}
        found |= {name + suffix: table for name, table in others.items()}
    return found


def complaints(folder, options):
    """What pdflatex says about each table: its errors, and by how many points it sticks out, to the side or below."""
    found = tables()
    parts = []
    for k, (name, table) in enumerate(found.items()):
        (folder / f"{k}.tex").write_text(table.tex, encoding="utf-8")
        parts.append(rf"\typeout{{TABLE {name}}}\input{{{k}}}\clearpage")
    (folder / "all.tex").write_text(_DOCUMENT % (options, "\n".join(parts)), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-no-shell-escape", "all.tex"]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120)
    log = (folder / "all.log").read_text(encoding="utf-8", errors="replace")
    logs = dict(part.split("\n", 1) for part in log.split("\nTABLE ")[1:])
    assert list(logs) == list(found)
    error = re.compile(r"^(?:! |Missing character).*(?:\n.*){2}", re.MULTILINE)
    errors = {name: error.findall(text) for name, text in logs.items()}
    out = re.compile(r"(?:Overfull \\hbox \(|Float too large for page by )([\d.]+)pt")
    return errors, {name: [float(of) for of in out.findall(text)] for name, text in logs.items()}


def test_every_table_is_here():
    assert {name for name in tables() if "odd" not in name} == set(known("tables"))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("options", ["", "twocolumn"])
def test_every_table_compiles_and_fits(tmp_path, options):
    errors, out = complaints(tmp_path, options)
    assert {name: of for name, of in errors.items() if of} == {}
    if options == "twocolumn":
        out = {name: max(of) for name, of in out.items() if of and "odd" not in name}
        assert {name: of for name, of in out.items() if of > LARGEST_OVERFLOW_PT} == {}
