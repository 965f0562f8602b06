"""The figures of an evaluation, and evaluate.html: a page that shows them beside words and tables."""

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib import rcParams

from dualread.apps.evaluate.evaluation_data import EvaluationData
from dualread.apps.evaluate.files import as_texts
from dualread.apps.evaluate.printed import BAD, SHOWN, DataSetReport, EvaluationReport
from dualread.apps.evaluate.results import Results
from dualread.evaluation.answer_metrics import NOISE_FLOOR
from dualread.reporting.figures import forest, risk_coverage
from dualread.reporting.figures.drawing import COLORS, Drawing, house_style, save
from dualread.reporting.figures.reliability_diagram import diagram
from dualread.reporting.forest import LIMIT_LABEL, plot, says, scale
from dualread.reporting.pages import environment, script_of
from dualread.schema.tables import FigureLayout, Labeled

PAGE = "evaluate.html"
_LONGEST_NAME = 80  # characters of a data set in the name of a file
_WORDS = {
    "reliability": "Reliability: of the answers with a confidence of about .7, how many are right? On the dashed line,"
    " as many as the confidence says. In parentheses: the ECE that calibrated confidences reach by chance.",
    "risk_coverage": "Risk and coverage: the error rate of the answers that are kept, if only the most confident are.",
}


def write(results: Results, report: EvaluationReport, folder: Path) -> list[str]:
    """Write the figures of all data sets, each as .pdf, .png and .csv, and the page that shows them; return names."""
    suffixes: list[str] = []  # the ends of the names of a data set's files, unlike those of the others
    for cells in results.parts:
        name = "" if cells.dataset is None else "_" + re.sub(r"[^\w.-]+", "_", cells.dataset)[:_LONGEST_NAME]
        suffixes.append(f"{name}_{len(suffixes) + 1}" if name in suffixes else name)
    written = []
    for part, suffix in zip(report.parts, suffixes, strict=True):
        written += [f"{name}.pdf, .png, .csv" for name in _draw(results, part, folder, suffix)]
    (folder / PAGE).write_text(render(report, folder, suffixes), encoding="utf-8")
    return [*written, PAGE]


def _draw(results: Results, report: DataSetReport, folder: Path, suffix: str) -> list[str]:
    """Write the figures of a data set, each as .pdf, .png and .csv, and return their names, which end in `suffix`."""
    cells, title, units = report.cells, report.cells.title, f"{report.cells.unit}s"
    drawings: dict[str, tuple[Drawing, str]] = {}
    with house_style():
        rcParams["text.parse_math"] = False  # a name may hold dollar signs
        answers = {name: joined.answers for name, joined in cells.methods.items() if name not in cells.ranked}
        if answers:
            rows = cells.rows_of(results.metrics).filter(subset="all", metric=NOISE_FLOOR)
            floors = dict(rows.select("method", "estimate").iter_rows())
            drawings["reliability"] = diagram(answers, unit=cells.unit, floors=floors), f"Reliability of {title}"
        drawings["risk_coverage"] = _risk_coverage(cells), f"Risk and coverage of {title}"
        for k, (column, values) in enumerate(report.forests.items()):
            if not values.is_empty():
                name, what = (f"forest_by_{k}", f"Groups of {column}") if column else ("forest", "Methods")
                heading = f"{title}, by {column}" if column else title
                figure = forest.page(values, heading, ends=scale(values), units=units)
                drawings[name] = Drawing(figure=figure, values=values), f"{what} in {title}"
        for name, (drawing, title_of_figure) in drawings.items():
            save(replace(drawing, values=as_texts(drawing.values)), folder, name + suffix, title=title_of_figure)
    return [name + suffix for name in drawings]


def _risk_coverage(cells: EvaluationData) -> Drawing:
    methods = list(cells.methods)[: len(COLORS)]  # as many as there are lines that can be told apart
    place = {"backbone": pl.lit(""), "dataset": pl.lit(""), "seed": pl.lit(0)}
    answers = pl.concat(
        cells.methods[name].answers.select("confidence", "correct", method=pl.lit(name), **place) for name in methods
    )
    layout = FigureLayout(
        study=cells.title,
        backbones=(Labeled(name="", label=cells.title),),
        datasets=(Labeled(name="", label=""),),
        methods=tuple(Labeled(name=name, label=name) for name in methods),
    )
    return risk_coverage.draw({"answers": answers}, layout)


def render(report: EvaluationReport, folder: Path, suffixes: Sequence[str]) -> str:
    """Return the page; the pictures are those that lie in `folder`, their names ending in the suffix of a data set."""
    template = environment(Path(__file__).parent).get_template("evaluate.html.jinja")
    return template.render(
        title=Path(report.parts[0].cells.source).name,
        parts=[_part(part, folder, suffix) for part, suffix in zip(report.parts, suffixes, strict=True)],
        meanings=SHOWN,
        warnings=report.warnings,
        limit_label=LIMIT_LABEL,
        script=script_of("sort.js"),
    )


def _part(report: DataSetReport, folder: Path, suffix: str) -> dict[str, Any]:
    """Return what the page says of one data set, by the names of its template."""
    units = f"{report.cells.unit}s"
    lines = [replace(line, text=line.text[line.start :]) for line in report.findings]
    plots = {
        column: plot(
            known, f"{f'By {column}, ' if column else ''}95% intervals over other {units}", scale(known), units
        )
        for column, known in report.forests.items()
        if column or known["estimate"].count()
    }
    named = ("dot", "ccg") if "natural_ccg_auc" in report.forests[""]["metric"] else ("dot",)
    pictures = []
    for name, words in _WORDS.items():
        file = folder / f"{name}{suffix}.png"
        if file.exists():
            uri = f"data:image/png;base64,{b64encode(file.read_bytes()).decode()}"
            pictures.append({"words": words, "alt": f"{words} Methods: {', '.join(report.verdicts)}.", "uri": uri})
    return {
        "report": report,
        "sentences": sorted(lines, key=lambda line: line.kind == BAD),
        "plot": plots.pop("", None),
        "groups": list(plots.values()),
        "of_groups": says(units)["groups"],
        "says": [says(units)[name] for name in named],
        "pictures": pictures,
    }
