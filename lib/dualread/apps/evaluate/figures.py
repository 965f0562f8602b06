"""The figures of an evaluation: forest plots of methods and of groups, reliability, and risk against coverage."""

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
from matplotlib import rcParams

from dualread.apps.evaluate import page
from dualread.apps.evaluate.evaluation_data import EvaluationData
from dualread.apps.evaluate.files import as_texts
from dualread.apps.evaluate.printed import DataSetReport, EvaluationReport
from dualread.apps.evaluate.results import Results
from dualread.evaluation.answer_metrics import NOISE_FLOOR
from dualread.reporting.figures import forest, risk_coverage
from dualread.reporting.figures.drawing import COLORS, Drawing, house_style, save
from dualread.reporting.figures.reliability_diagram import diagram
from dualread.reporting.forest import scale
from dualread.schema.tables import FigureLayout, Labeled

PAGE = "evaluate.html"
_LONGEST_NAME = 80  # characters of a data set in the name of a file


def write(results: Results, report: EvaluationReport, folder: Path) -> list[str]:
    """Write the figures of all data sets, and the page that shows them; return their names."""
    suffixes: list[str] = []  # the ends of the names of a data set's files, unlike those of the others
    for cells in results.parts:
        name = "" if cells.dataset is None else "_" + re.sub(r"[^\w.-]+", "_", cells.dataset)[:_LONGEST_NAME]
        suffixes.append(f"{name}_{len(suffixes) + 1}" if name in suffixes else name)
    written = []
    for part, suffix in zip(report.parts, suffixes, strict=True):
        written += _draw(results, part, folder, suffix)
    (folder / PAGE).write_text(page.render(report, folder, suffixes), encoding="utf-8")
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
    return [f"{name}{suffix}.pdf, .png, .csv" for name in drawings]


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
