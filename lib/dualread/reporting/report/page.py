"""The report of a finished study as one HTML page: this module gathers the content, the template lays it out.

The first screen has a forest plot per backbone, and three short sentences, what was found first. They are about the
first method that the study tests. Where the plot shows it, they say what its dot says, so that picture and words agree;
else they follow from the tests of `findings`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from dualread.errors import ArtifactError
from dualread.evaluation.metrics.grounding import ENOUGH_IMAGES
from dualread.reporting.forest import LIMIT_LABEL, METHOD, VALUES, Plot, plot, says, scale
from dualread.reporting.pages import environment, labels_of, script_of
from dualread.reporting.report import audits, provenance, results
from dualread.reporting.report.findings import Finding, Findings, find
from dualread.reporting.tables.significance import LEVEL
from dualread.reporting.tables.values import number
from dualread.schema.columns import CONTRASTS
from dualread.store.digest import MANIFEST_NAME
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
    contrasts = audits.read(study / "contrasts", CONTRASTS)
    findings = find(contrasts, [table.layout for table in tables], resampled)
    sentences, plots = opening(study, findings)
    templates = environment(_FOLDER)
    templates.filters["count"] = provenance.count
    return templates.get_template("report.html.jinja").render(
        study=study.name,
        sentences=sentences,
        plots=plots,
        units=" or ".join(units),
        clusters=" or ".join(unit.capitalize() for unit in units if unit != "images") or "Patients",
        forest_says=[text for name, text in says(" or ".join(units)).items() if name != "groups"],
        limit_label=LIMIT_LABEL,
        script=script_of("sort.js"),
        findings=findings,
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


LONGEST = 20  # words of a sentence
NOT_TESTED = (
    "This study tests no method against the stated confidence, nor against a null that sees no image.",
    "Its numbers describe each method; they do not show which is better.",
)
NO_NULLS = "Without nulls, nothing here shows that confidence depends on more than the question."
FIGURE = "forest"
# What may have been found, in full and in short: of a metric, against nulls or against the stated confidence.
_CLAIMS = {
    ("auroc", "null"): (
        "{} separates right from wrong answers better than question and answer alone",
        "AUROC of {} is above every null",
    ),
    ("natural_ccg_auc", "null"): (
        "{}'s confidence follows the image, not only question and answer,",
        "CCG-AUC of {} is above every null",
    ),
    ("auroc", "stated"): (
        "{} separates right from wrong answers better than the stated confidence",
        "AUROC of {} is above the stated confidence",
    ),
}


def opening(study: Path, findings: Findings) -> tuple[list[str], list[Plot]]:
    """Return the first screen of the study in a folder: at most three sentences of at most `LONGEST` words, and plots.

    There is a plot per backbone, and none where the study has no figure `forest`.

    Raises:
        ArtifactError: The values of its forest plot cannot be read.
    """
    file = study / "figures" / FIGURE / f"{FIGURE}.csv"
    try:
        values = pl.read_csv(file, schema=VALUES) if file.exists() else pl.DataFrame(schema=VALUES)
    except pl.exceptions.PolarsError as error:
        raise ArtifactError(
            f"{file}: no values of a forest plot ({error}). Delete {file.with_name(MANIFEST_NAME)} and run"
            " snakemake again."
        ) from error
    plots = []
    for (name,), of_backbone in values.partition_by("backbone", as_dict=True, maintain_order=True).items():
        n_seeds = max(of_backbone.filter(role=METHOD)["n_seeds"], default=1)
        runs = f"mean over {n_seeds} seeds" if n_seeds > 1 else "one run"
        units = f"{findings.units.get(of_backbone['dataset'][0], 'image')}s"
        plots.append(plot(of_backbone, f"{findings.backbones.get(name, name)}, {runs}", scale(values), units))
    return list(_sentences(findings, values)), plots


def _sentences(findings: Findings, values: pl.DataFrame) -> Iterator[str]:
    if not findings.judged:
        yield from NOT_TESTED
        return
    method = findings.judged[0]
    drawn = {(row["backbone"], row["metric"]): row["above"] for row in values.filter(method=method.name).to_dicts()}
    sentences = []
    for (metric, kind), claims in _CLAIMS.items():
        shown = drawn if kind == "null" else {}
        labels: dict[Finding, list[str]] = {Finding.ABOVE: [], Finding.UNCLEAR: [], Finding.BELOW: []}
        has_tests = False
        for backbone, of_backbone in findings.backbones.items():
            if (tested := method.together(backbone, metric, kind)) is not None:
                above = shown.get((backbone, metric))
                if tested is not Finding.BELOW and above is not None:  # the plot does not tell worse from unclear
                    tested = Finding.ABOVE if above else Finding.UNCLEAR
                has_tests = has_tests or tested is not Finding.UNTESTED
                labels[tested if tested in labels else Finding.UNCLEAR].append(of_backbone)
        if has_tests:
            sentences.append(
                (len(labels[Finding.ABOVE]), _sentence([claim.format(method.label) for claim in claims], labels))
            )
    yield from (sentence for _, sentence in sorted(sentences, key=lambda counted: -counted[0]))
    if not method.against("null"):
        yield NO_NULLS


def _sentence(claims: Sequence[str], labels: Mapping[Finding, Sequence[str]]) -> str:
    """Return the first way to say on which backbones a claim holds, does not, or its reverse, that is short enough."""
    full, short = claims
    n = sum(map(len, labels.values()))
    by_name = {verdict: f"on {' and '.join(names)}" for verdict, names in labels.items() if names}
    by_number = {verdict: f"on {len(names)} of {n} backbones" for verdict, names in labels.items() if names}
    text = ""
    for claim, places in ((full, by_name), (short, by_name), (short, by_number)):
        phrases = {Finding.ABOVE: f"{claim} ", Finding.UNCLEAR: "not shown ", Finding.BELOW: "the reverse "}
        text = "; ".join(f"{words}{places[verdict]}" for verdict, words in phrases.items() if verdict in places)
        if Finding.ABOVE not in places:
            text = f"{text[0].upper()}{text[1:]}: {claim.rstrip(',')}"
        if len(f"{text}.".split()) <= LONGEST:
            break
    return f"{text}."
