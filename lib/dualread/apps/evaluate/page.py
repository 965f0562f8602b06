"""evaluate.html: one page about anybody's table that loads nothing: words, plot, reliability, risk-coverage, tables."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from dualread.apps.evaluate.printed import BAD, SHOWN, DataSetReport, EvaluationReport
from dualread.reporting.forest import LIMIT_LABEL, plot, says, scale
from dualread.reporting.pages import environment, script_of

_FOLDER = Path(__file__).parent
_WORDS = {
    "reliability": "Reliability: of the answers with a confidence of about .7, how many are right? On the dashed line,"
    " as many as the confidence says. In parentheses: the ECE that calibrated confidences reach by chance.",
    "risk_coverage": "Risk and coverage: the error rate of the answers that are kept, if only the most confident are.",
}


def render(report: EvaluationReport, folder: Path, suffixes: Sequence[str]) -> str:
    """Return the page; the pictures are those that lie in `folder`, their names ending in the suffix of a data set."""
    return (
        environment(_FOLDER)
        .get_template("evaluate.html.jinja")
        .render(
            title=Path(report.parts[0].cells.source).name,
            parts=[_part(part, folder, suffix) for part, suffix in zip(report.parts, suffixes, strict=True)],
            meanings=SHOWN,
            warnings=report.warnings,
            limit_label=LIMIT_LABEL,
            script=script_of("sort.js"),
        )
    )


def _part(report: DataSetReport, folder: Path, suffix: str) -> dict[str, Any]:
    """Return what the page says of one data set, by the names of its template."""
    units, values = f"{report.cells.unit}s", report.forests[""]
    lines = [replace(line, text=line.text[line.start :]) for line in report.findings]
    plots = {
        column: plot(known, f"By {column}, 95% intervals over other {units}", scale(known), units)
        for column, known in report.forests.items()
        if column
    }
    is_drawn = not values.filter(pl.col("estimate").is_not_null()).is_empty()
    named = ("dot", "ccg") if "natural_ccg_auc" in values["metric"] else ("dot",)
    pictures = []
    for name, words in _WORDS.items():
        file = folder / f"{name}{suffix}.png"
        if file.exists():
            uri = f"data:image/png;base64,{b64encode(file.read_bytes()).decode()}"
            pictures.append({"words": words, "alt": f"{words} Methods: {', '.join(report.verdicts)}.", "uri": uri})
    return {
        "report": report,
        "sentences": sorted(lines, key=lambda line: line.kind == BAD),
        "groups": list(plots.values()),
        "of_groups": says(units)["groups"],
        "plot": plot(values, f"95% intervals over other {units}", scale(values), units) if is_drawn else None,
        "says": [says(units)[name] for name in named],
        "pictures": pictures,
    }
