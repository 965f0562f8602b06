"""The values behind the figures: reliability diagrams, risk-coverage curves, and which examples are shown."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import brentq
from scipy.stats import norm

from tests.workflow.recount import definitions, floors
from tests.workflow.recount.cells import differ
from tests.workflow.recount.resampling import FALSE_ALARM
from tests.workflow.recount.study import Study
from tests.workflow.recount.values import Values

Rows = dict[tuple, dict[str, Any]]
_OF_SIGNALS = ("accuracy", "unique_confidences", "natural_ccg_auc")


def reliability(study: Study, figure: str) -> list[str]:
    """The 15 bins of all seeds' answers together with the interval of each share of correct answers, and their ECE."""
    printed = study.printed("figures", figure).to_dicts()
    found: Rows = {}
    floors_of = {(r["dataset"], r["backbone"], r["method"]): r["pooled_floor"] for r in printed}
    wrong = []
    for dataset, backbone, method in sorted(floors_of):
        runs = study.runs[backbone, method].values()
        answers = [study.answers(run, dataset, "test", "all") for run in runs]
        confidence, correct, images = (
            np.concatenate([a[column].to_numpy() for a in answers]) for column in ("confidence", "correct", "cluster")
        )
        pooled, alpha = pl.concat([a.select("cluster", "confidence", "correct") for a in answers]), FALSE_ALARM / 1000
        lines = floors.implausible(pooled, floors_of[dataset, backbone, method], alpha)
        wrong += [f"figure {figure} {dataset}/{backbone}/{method}: floor {line}" for line in lines]
        for k, (low, high, inside) in enumerate(definitions.in_bins(confidence)):
            found[dataset, backbone, method, k] = {
                "from": low,
                "to": high,
                "n": int(inside.sum()),
                "n_clusters": len(set(images[inside])),
                "mean_confidence": float(confidence[inside].mean()) if inside.any() else None,
                "share_correct": float(correct[inside].mean()) if inside.any() else None,
                **dict(zip(("low", "high"), _score_interval(correct[inside], images[inside]), strict=True)),
                "pooled_ece": definitions.ece15(confidence, correct),
            }
    rows = {(r["dataset"], r["backbone"], r["method"], r["bin"]): r for r in printed}
    return [*_compared(figure, rows, found), *wrong]


def _score_interval(correct: np.ndarray, images: np.ndarray) -> tuple[float | None, float | None]:
    """Return the shares that a two-sided score test at .05 does not reject, with one observation per image.

    These are the roots q of n (share - q)^2 = z^2 q (1 - q), which is what Wilson's formula solves.
    """
    if len(correct) == 0:
        return None, None
    share, n, z = sum(map(int, correct)) / len(correct), len(set(images)), norm.isf(0.025)

    def rejects_by(q: float) -> float:
        return n * (share - q) ** 2 - z**2 * q * (1 - q)

    inside = min(max(share, 1e-9), 1 - 1e-9)  # 0 and 1 are roots themselves where the share is 0 or 1
    low = 0.0 if share == 0 else brentq(rejects_by, 0.0, inside, xtol=1e-15, rtol=1e-15)
    high = 1.0 if share == 1 else brentq(rejects_by, inside, 1.0, xtol=1e-15, rtol=1e-15)
    return float(low), float(high)


def risk_coverage(study: Study) -> list[str]:
    """The mean over seeds of the risk of the k most confident answers."""
    printed = study.printed("figures", "risk_coverage").to_dicts()
    found: Rows = {}
    for dataset, backbone, method in sorted({(r["dataset"], r["backbone"], r["method"]) for r in printed}):
        curves = []
        for run in study.runs[backbone, method].values():
            answers = study.answers(run, dataset, "test", "all")
            curves.append(definitions.risks(answers["confidence"].to_numpy(), answers["correct"].to_numpy()))
        for k, of_seeds in enumerate(zip(*curves, strict=True), start=1):
            where = (dataset, backbone, method, k)
            found[where] = {"coverage": k / len(curves[0]), "risk": float(np.mean(of_seeds))}
    keys = [(r["dataset"], r["backbone"], r["method"], r["kept"]) for r in printed]
    return _compared("risk_coverage", dict(zip(keys, printed, strict=True)), found)


def counterfactuals(values: Values) -> list[str]:
    """The decisive pairs of the first seed whose confidence by the first method drops most, by the median, least."""
    study, dataset = values.study, values.study.in_distribution
    printed = study.printed("figures", "counterfactuals").to_dicts()
    methods = list(dict.fromkeys(row["method"] for row in printed))
    found: Rows = {}
    for backbone in (entry["name"] for entry in study.layout("main")["backbones"]):
        for kind, case, sample in _chosen(values, backbone, methods[0], dataset):
            for method in methods:
                run = _first_run(study, backbone, method)
                (row,) = study.beside(run, dataset, "test", "donor").filter(sample_id=sample).to_dicts()
                found[backbone, kind, case, method] = {
                    "sample_id": sample,
                    "seed": run.seed,
                    "confidence_real": row["confidence"],
                    "confidence_donor": row["confidence_other"],
                    "canonical_answer_real": row["canonical_answer"],
                    "canonical_answer_donor": row["canonical_answer_other"],
                    "source_image_id": row["image_id"],
                    "donor_image_id": row["image_id_other"],
                }
    rows = {(r["backbone"], r["kind"], r["case"], r["method"]): r for r in printed}
    return _compared("counterfactuals", rows, found)


def training_signals(values: Values) -> list[str]:
    """Accuracy, different confidences and Natural CCG-AUC of every run."""
    study = values.study
    printed = study.printed("figures", "training_signals").to_dicts()
    found: Rows = {}
    for method in (entry["name"] for entry in study.layout("training_signals", "figures")["methods"]):
        for backbone in (entry["name"] for entry in study.layout("training_signals", "figures")["backbones"]):
            for run in study.runs[backbone, method].values():
                of = {m: values.of_run(run, study.in_distribution, m) for m in _OF_SIGNALS}
                found[backbone, method, run.seed] = {"actor": run.actor, **of}
    rows = {(r["backbone"], r["method"], r["seed"]): r for r in printed}
    return _compared("training_signals", rows, found)


def _chosen(values: Values, backbone: str, method: str, dataset: str) -> Iterator[tuple[str, str, str]]:
    run = _first_run(values.study, backbone, method)
    drops: dict[str, list[tuple[float, str]]] = {"natural": [], "strict": []}
    for row in values.study.beside(run, dataset, "test", "donor").to_dicts():
        if row["correct"] and not row["correct_other"]:
            same = row["canonical_answer"] and row["canonical_answer"] == row["canonical_answer_other"]
            drop = row["confidence"] - row["confidence_other"]
            drops["strict" if same else "natural"].append((-drop, row["sample_id"]))
    for kind, of_kind in drops.items():
        ordered = [sample for _, sample in sorted(of_kind)]
        if len(ordered) > 2:
            yield kind, "median", ordered[(len(ordered) - 1) // 2]
        if len(ordered) > 1:
            yield kind, "smallest", ordered[-1]
        if ordered:
            yield kind, "greatest", ordered[0]


def _first_run(study: Study, backbone: str, method: str) -> Any:
    runs = study.runs[backbone, method]
    seeds = next(entry["seeds"] for entry in study.layout("main")["backbones"] if entry["name"] == backbone)
    return runs.get(seeds[0]) or runs[0]


def _compared(figure: str, printed: Rows, wanted: Rows) -> list[str]:
    found = [f"figure {figure} {key}: only on one side" for key in printed.keys() ^ wanted.keys()]
    for key in printed.keys() & wanted.keys():
        for name, to_be in wanted[key].items():
            if differ(printed[key][name], to_be):
                found.append(f"figure {figure} {key}: {name} {printed[key][name]!r}, expected {to_be!r}")
    return sorted(found)
