"""The report of a finished study as one HTML page: this module gathers the content, the template lays it out."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualread.reporting.forest import LIMIT_LABEL, says
from dualread.reporting.pages import environment, labels_of, script_of
from dualread.reporting.report import audits, controls, findings, results
from dualread.reporting.report._grid import count
from dualread.reporting.report.opening import opening
from dualread.reporting.report.provenance import Provenance, checkpoints, costs, keys, machines, runs, versions
from dualread.store.manifest import Manifest, read_manifest
from dualread.store.record import disagreements
from dualread.store.store import Store

_FOLDER = Path(__file__).parent
# Artifacts that the page reads besides tables and figures.
_AUDITS = ("data/MANIFEST.json", "leakage/MANIFEST.json")


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One thing to know before trusting a number; `kind` is good, caution or bad."""

    kind: str
    title: str
    text: str


def render(study: Path, store: Store, *, beside: Path) -> str:
    """Return the page of the study in the folder `study`; links to files are relative to the folder `beside`.

    Raises:
        ArtifactError: The study has no finished table, or a file of it is damaged.
    """
    provenance = Provenance(store)
    tables, figures = results.tables(study, provenance), results.figures(study, provenance)
    audited = [read_manifest(study / name) for name in _AUDITS if (study / name).exists()]
    behind = provenance.behind([made.key for made in (*(shown.manifest for shown in (*tables, *figures)), *audited)])
    labels = labels_of(made.layout for made in (*tables, *figures))
    data, leakage, comparison = audits.data(study), audits.leakage(study), audits.comparison(study)
    templates = environment(_FOLDER)
    templates.filters["count"] = count
    method_findings = findings.read(study, [table.layout for table in tables])
    return templates.get_template("report.html.jinja").render(
        study=study.name,
        opening=opening(study, method_findings),
        forest_says=says(),
        limit_label=LIMIT_LABEL,
        script=script_of("sort.js"),
        findings=method_findings,
        controls=controls.read(study, labels),
        facts=_facts(labels, behind),
        notices=[
            *_of_tables(tables),
            *_of_given(behind, labels),
            *_of_audits(data, leakage, comparison),
            *_of_store(behind, provenance),
        ],
        runs=runs(behind, labels),
        tables=tables,
        figures=figures,
        comparison=comparison,
        data=data,
        leakage=leakage,
        checkpoints=checkpoints(behind, labels, provenance),
        costs=costs(study, store),
        machines=machines(behind, provenance),
        versions=versions(behind),
        keys=keys(behind, provenance),
        beside=lambda path: Path(os.path.relpath(path, beside)).as_posix(),
    )


def _facts(labels: Mapping[str, Mapping[str, str]], behind: Mapping[str, Manifest | None]) -> list[tuple[str, str]]:
    """Return the backbones, methods and data sets of the study as (heading, names)."""
    splits: dict[str, set[str]] = {}
    for manifest in filter(None, behind.values()):
        if manifest.action.stage == "build_manifest":
            splits.setdefault(manifest.action.spec["dataset"], set()).add(manifest.action.spec["split"])
    sets = {**dict.fromkeys(splits, ""), **labels["datasets"]}
    shown = {
        "backbone": list(labels["backbones"].values()),
        "method": list(labels["methods"].values()),
        "data set": [(label or name) + _more(splits.get(name, set())) for name, label in sets.items()],
    }
    return [(f"{len(rows)} {kind}{'s' * (len(rows) > 1)}", ", ".join(rows)) for kind, rows in shown.items() if rows]


def _more(splits: set[str]) -> str:
    return f" ({', '.join(sorted(splits))})" if splits - {"test"} else ""


def _of_tables(tables: Sequence[results.ShownTable]) -> list[Notice]:
    cells = sum(table.cells for table in tables)
    undefined, weak = sum(table.undefined for table in tables), sum(table.underpowered for table in tables)
    text = (
        f"{count(undefined)} are undefined (printed as a dash; the CSV gives each reason). {count(weak)} rest on fewer "
        "than 30 distinct images (printed with †): they are no evidence either way."
    )
    kind = "caution" if undefined or weak else "good"
    return [Notice(kind=kind, title=f"{count(cells)} printed cells", text=text)]


def _of_given(behind: Mapping[str, Manifest | None], labels: Mapping[str, Mapping[str, str]]) -> list[Notice]:
    """Return a notice per actor whose answers are given: what was left out, and why."""
    described = [manifest.action.spec for manifest in behind.values() if manifest is not None]
    actors = {spec["actor"]: spec["left_out"] for spec in described if "left_out" in spec}
    notices = []
    for actor, reasons in sorted(actors.items()):
        methods: dict[str, list[str]] = {}
        for method, reason in reasons.items():
            methods.setdefault(reason, []).append(method)
        listed = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in methods.items())
        left_out = f"{count(len(reasons))} methods of the study are left out: {listed}." if reasons else ""
        text = f"A service gave them. {left_out} Their costs are not measured."
        title = f"The answers of {labels['actors'].get(actor, actor)} are given"
        notices.append(Notice(kind="caution" if reasons else "good", title=title, text=" ".join(text.split())))
    return notices


def _of_audits(
    data: audits.Data | None, leakage: audits.Leakage | None, comparison: audits.Comparison | None
) -> list[Notice]:
    notices = []
    if leakage is None:
        notices.append(
            Notice(
                kind="bad",
                title="Leakage not checked",
                text="Make results/<study>/leakage, and then this report again.",
            )
        )
    else:
        notices.append(
            Notice(
                kind="bad" if leakage.fitted else "good",
                title=f"{count(leakage.fitted)} images for fitting that have another role",
                text="Images are compared by their pixels; resized and re-encoded copies are found too. Shared among "
                f"the sets that are only reported, and never used for fitting: {count(leakage.reported)}.",
            )
        )
    if data is not None:
        text = f"{count(data.dropped)} official rows were left out; the section on data counts them by rule."
        notices.append(Notice(kind="good", title=f"{count(data.questions)} questions", text=text))
    if comparison is not None:
        text = "; ".join(f"{verdict}: {count(n)}" for verdict, n in comparison.verdicts)
        notices.append(
            Notice(kind="caution", title="Comparison with the paper", text=f"Cells of the paper by verdict: {text}.")
        )
    return notices


def _of_store(behind: Mapping[str, Manifest | None], provenance: Provenance) -> list[Notice]:
    missing = sum(manifest is None for manifest in behind.values())
    unlike = disagreements(provenance.store.root, behind)
    text = "Every artifact behind a table has a key; dualread verify checks the bytes of all of them."
    if missing:
        text = f"{count(missing)} of them are not in this store: their keys are known, but their files are missing."
    if unlike:
        text += (
            f" {count(unlike)} were written with different bytes by a second run (see differences.jsonl in the store)."
        )
    kind = "caution" if missing or unlike else "good"
    return [Notice(kind=kind, title=f"{count(len(behind))} artifacts", text=text)]
