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


@dataclass(frozen=True, kw_only=True)
class FirstScreen:
    """What the report shows first.

    Attributes:
        sentences: At most three, of at most `LONGEST` words.
        plots: One per backbone; none where the study has no figure `forest`.
    """

    sentences: Sequence[str]
    plots: Sequence[Plot] = ()


@dataclass(frozen=True, kw_only=True)
class _Claim:
    """What may have been found: in full, in short, and on which backbones it was found, was not, or its reverse was."""

    full: str
    short: str
    shown: Sequence[str]
    missing: Sequence[str]
    reverse: Sequence[str]

    def sentence(self) -> str:
        """Return the first way to say it that is short enough."""
        for claim, names in ((self.full, True), (self.short, True), (self.short, False)):
            text = self._said(claim, names=names)
            if len(text.split()) <= LONGEST:
                break
        return text

    def _said(self, claim: str, *, names: bool) -> str:
        n = sum(map(len, (self.shown, self.missing, self.reverse)))

        def on(backbones: Sequence[str]) -> str:
            return f"on {' and '.join(backbones)}" if names else f"on {len(backbones)} of {n} backbones"

        others = [f"not shown {on(self.missing)}"] if self.missing else []
        others += [f"the reverse {on(self.reverse)}"] if self.reverse else []
        if self.shown:
            return "; ".join([f"{claim} {on(self.shown)}", *others]) + "."
        first, *rest = "; ".join(others)
        return f"{first.upper()}{''.join(rest)}: {claim.rstrip(',')}."


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
    return FirstScreen(sentences=list(_sentences(findings, values)), plots=list(_plots(values, findings)))


def _plots(values: pl.DataFrame, findings: Findings) -> Iterator[Plot]:
    for (name,), of_backbone in values.partition_by("backbone", as_dict=True, maintain_order=True).items():
        n_seeds = max(of_backbone.filter(role=METHOD)["n_seeds"], default=1)
        runs = f"mean over {n_seeds} seeds" if n_seeds > 1 else "one run"
        yield plot(of_backbone, f"{findings.backbones.get(name, name)}, {runs}", scale(values))


def _sentences(findings: Findings, values: pl.DataFrame) -> Iterator[str]:
    if findings.subject is None:
        yield from NOT_TESTED
        return
    claims = [claim for claim in _claims(findings, findings.subject, values) if claim is not None]
    for claim in sorted(claims, key=lambda claim: -len(claim.shown)):
        yield claim.sentence()
    if not any(of_nulls for _, _, of_nulls in findings.verdicts):
        yield NO_NULLS


def _claims(findings: Findings, subject: tuple[str, str], values: pl.DataFrame) -> Iterator[_Claim | None]:
    name, label = subject
    shown = {(row["backbone"], row["metric"]): row["above"] for row in values.filter(method=name).to_dicts()}
    yield _claim(
        f"{label} separates right from wrong answers better than question and answer alone",
        f"AUROC of {label} is above every null",
        _found(findings, "auroc", True, shown),
        findings.backbones,
    )
    yield _claim(
        f"{label}'s confidence follows the image, not only question and answer,",
        f"CCG-AUC of {label} is above every null",
        _found(findings, "natural_ccg_auc", True, shown),
        findings.backbones,
    )
    yield _claim(
        f"{label} separates right from wrong answers better than the stated confidence",
        f"AUROC of {label} is above the stated confidence",
        _found(findings, "auroc", False, {}),
        findings.backbones,
    )


def _found(
    findings: Findings, metric: str, of_nulls: bool, shown: Mapping[tuple[str, str], bool | None]
) -> dict[str, Finding]:
    """Return the verdict on each backbone that has one; the plot's, where the plot shows the method."""
    verdicts = {}
    for backbone in findings.backbones:
        if (tested := findings.verdicts.get((backbone, metric, of_nulls))) is not None:
            above = shown.get((backbone, metric))
            drawn = {None: tested, True: Finding.ABOVE, False: Finding.UNCLEAR}[above]
            verdicts[backbone] = tested if tested is Finding.BELOW else drawn
    return verdicts


def _claim(full: str, short: str, verdict_of: Mapping[str, Finding], labels: Mapping[str, str]) -> _Claim | None:
    if not set(verdict_of.values()) - {Finding.UNTESTED}:
        return None

    def on(*verdicts: Finding) -> list[str]:
        return [labels[backbone] for backbone, verdict in verdict_of.items() if verdict in verdicts]

    others = [verdict for verdict in Finding if verdict not in (Finding.ABOVE, Finding.BELOW)]
    return _Claim(full=full, short=short, shown=on(Finding.ABOVE), missing=on(*others), reverse=on(Finding.BELOW))
