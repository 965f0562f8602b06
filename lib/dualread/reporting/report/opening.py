"""The first screen of the report: a forest plot per backbone, and three short sentences, what was found first.

The sentences are about the first method that the study tests. Where the plot shows it, they say what its dot says, so
that picture and words agree; else they follow from the tests of `findings`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dualread.errors import ArtifactError
from dualread.reporting.forest import METHOD, VALUES, Plot, plot, scale
from dualread.reporting.report.findings import Finding, Findings
from dualread.store.digest import MANIFEST_NAME

LONGEST = 20  # words of a sentence
NOT_TESTED = (
    "This study tests no method against the stated confidence, nor against a null that sees no image.",
    "Its numbers describe each method; they do not show which is better.",
)
NO_NULLS = "Without nulls, nothing here shows that confidence depends on more than the question."
FIGURE = "forest"
# What may have been found, in full and in short: of a metric, against nulls or against the stated confidence.
_CLAIMS = {
    ("auroc", True): (
        "{} separates right from wrong answers better than question and answer alone",
        "AUROC of {} is above every null",
    ),
    ("natural_ccg_auc", True): (
        "{}'s confidence follows the image, not only question and answer,",
        "CCG-AUC of {} is above every null",
    ),
    ("auroc", False): (
        "{} separates right from wrong answers better than the stated confidence",
        "AUROC of {} is above the stated confidence",
    ),
}


@dataclass(frozen=True, kw_only=True)
class FirstScreen:
    """What the report shows first.

    Attributes:
        sentences: At most three, of at most `LONGEST` words.
        plots: One per backbone; none where the study has no figure `forest`.
    """

    sentences: Sequence[str]
    plots: Sequence[Plot] = ()


def opening(study: Path, findings: Findings) -> FirstScreen:
    """Return the first screen of the study in a folder.

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
    return FirstScreen(sentences=list(_sentences(findings, values)), plots=plots)


def _sentences(findings: Findings, values: pl.DataFrame) -> Iterator[str]:
    if findings.subject is None:
        yield from NOT_TESTED
        return
    name, label = findings.subject
    drawn = {(row["backbone"], row["metric"]): row["above"] for row in values.filter(method=name).to_dicts()}
    sentences = []
    for (metric, of_nulls), claims in _CLAIMS.items():
        shown = drawn if of_nulls else {}
        labels: dict[Finding, list[str]] = {Finding.ABOVE: [], Finding.UNCLEAR: [], Finding.BELOW: []}
        has_tests = False
        for backbone, of_backbone in findings.backbones.items():
            if (tested := findings.verdicts.get((backbone, metric, of_nulls))) is not None:
                verdict = _with_plot(tested, shown.get((backbone, metric)))
                has_tests = has_tests or verdict is not Finding.UNTESTED
                labels[verdict if verdict in labels else Finding.UNCLEAR].append(of_backbone)
        if has_tests:
            sentences.append((len(labels[Finding.ABOVE]), _sentence([claim.format(label) for claim in claims], labels)))
    yield from (sentence for _, sentence in sorted(sentences, key=lambda counted: -counted[0]))
    if not any(of_nulls for _, _, of_nulls in findings.verdicts):
        yield NO_NULLS


def _with_plot(tested: Finding, above: bool | None) -> Finding:
    """Return the plot's verdict, where the plot shows the method; it does not tell worse from unclear."""
    if tested is Finding.BELOW or above is None:
        return tested
    return Finding.ABOVE if above else Finding.UNCLEAR


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
