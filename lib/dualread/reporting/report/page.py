"""The report of a finished study as one HTML page: this module gathers the content, the template lays it out."""

import os
from collections.abc import Mapping
from pathlib import Path

from dualread.evaluation.metrics.grounding import ENOUGH_IMAGES
from dualread.reporting.forest import LIMIT_LABEL, says
from dualread.reporting.pages import environment, labels_of, script_of
from dualread.reporting.report import audits, findings, provenance, results
from dualread.reporting.report.opening import opening
from dualread.reporting.tables.significance import LEVEL
from dualread.reporting.tables.values import number
from dualread.store.manifest import read_manifest
from dualread.store.record import disagreements
from dualread.store.store import Store

_FOLDER = Path(__file__).parent
# Artifacts that the page reads besides tables and figures.
_AUDITS = ("data/MANIFEST.json", "leakage/MANIFEST.json")


def render(study: Path, store: Store, *, beside: Path) -> str:
    """Return the page of the study in the folder `study`; links to files are relative to the folder `beside`.

    Raises:
        ArtifactError: The study has no finished table, or a file of it is damaged.
    """
    origins = provenance.Provenance(store)
    tables, figures = results.tables(study, origins), results.figures(study, origins)
    audited = [read_manifest(study / name) for name in _AUDITS if (study / name).exists()]
    behind = origins.behind([made.key for made in (*(shown.manifest for shown in (*tables, *figures)), *audited)])
    labels = labels_of(made.layout for made in (*tables, *figures))
    resampled = audits.units(study)
    units = [f"{unit}s" for unit in dict.fromkeys(resampled.values())] or ["images"]
    method_findings = findings.read(study, [table.layout for table in tables], resampled)
    templates = environment(_FOLDER)
    templates.filters["count"] = provenance.count
    return templates.get_template("report.html.jinja").render(
        study=study.name,
        opening=opening(study, method_findings),
        units=" or ".join(units),
        clusters=" or ".join(unit.capitalize() for unit in units if unit != "images") or "Patients",
        forest_says=says(" or ".join(units)),
        limit_label=LIMIT_LABEL,
        script=script_of("sort.js"),
        findings=method_findings,
        level=number(LEVEL, 2),
        enough_images=ENOUGH_IMAGES,
        controls=audits.controls(study, labels),
        facts=_facts(labels, behind),
        services=_services(behind, labels),
        n_lost=sum(manifest is None for manifest in behind.values()),
        n_unlike=disagreements(store.root, behind),
        runs=provenance.runs(behind, labels),
        tables=tables,
        figures=figures,
        comparison=audits.comparison(study),
        data=audits.data(study),
        leakage=audits.leakage(study),
        checkpoints=provenance.checkpoints(behind, labels, origins),
        costs=provenance.stage_costs(study, store).to_dicts(),
        machines=provenance.machines(behind, origins),
        versions=provenance.versions(behind),
        keys=provenance.keys(behind, origins),
        beside=lambda path: Path(os.path.relpath(path, beside)).as_posix(),
    )


def _facts(labels: provenance.Labels, behind: provenance.Artifacts) -> dict[str, list[str]]:
    """Return the labels of the backbones, methods and data sets of the study."""
    splits: dict[str, set[str]] = {}
    for manifest in filter(None, behind.values()):
        if manifest.action.stage == "build_manifest":
            splits.setdefault(manifest.action.spec["dataset"], set()).add(manifest.action.spec["split"])
    more = {name: f" ({', '.join(sorted(shown))})" for name, shown in splits.items() if shown - {"test"}}
    sets = {**{name: name for name in splits}, **labels["datasets"]}
    return {
        "backbone": list(labels["backbones"].values()),
        "method": list(labels["methods"].values()),
        "data set": [label + more.get(name, "") for name, label in sets.items()],
    }


def _services(behind: provenance.Artifacts, labels: provenance.Labels) -> dict[str, Mapping[str, list[str]]]:
    """Return, by label of the actors whose answers are given, the methods that are left out by the reason why."""
    specs = [manifest.action.spec for manifest in behind.values() if manifest is not None]
    left_out = {spec["actor"]: spec["left_out"] for spec in specs if "left_out" in spec}
    services: dict[str, Mapping[str, list[str]]] = {}
    for actor, reasons in sorted(left_out.items()):
        methods: dict[str, list[str]] = {}
        for method, reason in reasons.items():
            methods.setdefault(reason, []).append(method)
        services[labels["actors"].get(actor, actor)] = methods
    return services
