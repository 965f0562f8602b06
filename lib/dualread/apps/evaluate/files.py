"""Step 5: the files that `dualread evaluate --out` writes: tables with full precision, and figures."""

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import polars as pl

from dualread.apps.evaluate.evaluation import Evaluation
from dualread.apps.evaluate.evaluation_data import EvaluationData
from dualread.artifacts.tables import for_spreadsheets
from dualread.errors import DataError
from dualread.evaluation.answer_metrics import NOISE_FLOOR
from dualread.schema.tables import FigureLayout, Labeled

PAGE = "evaluate.html"
_LONGEST_NAME = 80  # characters of a data set in the name of a file


def write(evaluation: Evaluation, folder: Path) -> list[str]:
    """Write metrics.csv, differences.csv, thresholds.csv, graded.csv and figures; replace files of these names.

    The figures are a forest plot, a reliability diagram and a risk-coverage plot per data set, each as .pdf, .png and
    .csv; evaluate.html shows them on one page. A method without probabilities has no reliability diagram. Without
    matplotlib, neither figures nor page are made (`without_figures`).

    Returns:
        The names of the files; a figure's with all suffixes.

    Raises:
        DataError: The folder cannot be written.
    """
    tables = {"metrics": evaluation.metrics, "differences": evaluation.differences, "thresholds": evaluation.thresholds}
    tables["graded"] = evaluation.graded
    tables |= {"answer_sets": evaluation.answer_sets, "claim_filter": evaluation.claim_filter}
    if (groups := evaluation.groups) is not None:
        tables |= {"groups": groups.metrics, "worst_groups": groups.worst, "group_thresholds": groups.thresholds}
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            if table is not None:
                as_texts(table).write_csv(folder / f"{name}.csv")
                written.append(f"{name}.csv")
        if without_figures() is None:
            written += _all_figures(evaluation, folder)
    except OSError as error:
        raise DataError(f"--out {folder}: cannot be written ({error.strerror}). Choose another folder.") from error
    return written


def without_figures() -> str | None:
    """Return why no figures are drawn, and what to do; None if they are."""
    if importlib.util.find_spec("matplotlib") is not None:
        return None
    return "no figures, because matplotlib is not installed. Run: pip install 'dualread[plots]'."


def as_texts(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table for spreadsheets (see `for_spreadsheets`), with spaces in place of control characters."""
    return for_spreadsheets(table).with_columns(pl.selectors.string().str.replace_all(r"[\x00-\x1f\x7f]", " "))


def _all_figures(evaluation: Evaluation, folder: Path) -> list[str]:
    from matplotlib import rcParams  # here, because a table does not need matplotlib

    from dualread.apps.evaluate import page
    from dualread.reporting.figures.drawing import house_style

    written: list[str] = []
    with house_style():
        rcParams["text.parse_math"] = False  # a name may hold dollar signs
        suffixes: list[str] = []  # the ends of the names of a data set's files, unlike those of the others
        for cells in evaluation.parts:
            name = "" if cells.dataset is None else "_" + re.sub(r"[^\w.-]+", "_", cells.dataset)[:_LONGEST_NAME]
            suffixes.append(f"{name}_{len(suffixes) + 1}" if name in suffixes else name)
            written += _figures(evaluation, cells, folder, suffixes[-1])
    (folder / PAGE).write_text(page.render(evaluation, folder, suffixes), encoding="utf-8")
    return [*written, PAGE]


def _figures(evaluation: Evaluation, cells: EvaluationData, folder: Path, suffix: str) -> list[str]:
    from dualread.apps.evaluate.page import values_of, values_of_groups
    from dualread.reporting import forest as forest_plot
    from dualread.reporting.figures import forest, risk_coverage
    from dualread.reporting.figures.drawing import COLORS, Drawing, save
    from dualread.reporting.figures.reliability_diagram import diagram

    title = Path(cells.source).name + ("" if cells.dataset is None else f", {cells.dataset}")
    drawings = {}
    answers = {name: evaluated.answers for name, evaluated in cells.methods.items() if name not in cells.ranked}
    if answers:
        rows = cells.rows_of(evaluation.metrics).filter(subset="all", metric=NOISE_FLOOR)
        floors = dict(rows.select("method", "estimate").iter_rows())
        drawings["reliability"] = diagram(answers, unit=cells.unit, floors=floors), f"Reliability of {title}"
    methods = list(cells.methods)[: len(COLORS)]  # as many as there are lines that can be told apart
    place = {"backbone": pl.lit(""), "dataset": pl.lit(""), "seed": pl.lit(0)}
    every = pl.concat(
        cells.methods[name].answers.select("confidence", "correct", method=pl.lit(name), **place) for name in methods
    )
    layout = FigureLayout(
        study=title,
        backbones=(Labeled(name="", label=title),),
        datasets=(Labeled(name="", label=""),),
        methods=tuple(Labeled(name=name, label=name) for name in methods),
    )
    drawing = risk_coverage.draw({"answers": every}, layout)
    drawings["risk_coverage"] = drawing, f"Risk and coverage of {title}"
    values = values_of(evaluation, cells)
    if not values.is_empty():
        plot = forest.page(values, title, ends=forest_plot.scale(values), units=f"{cells.unit}s")
        drawings["forest"] = Drawing(figure=plot, values=values), f"Methods in {title}"
    for k, (column, of_groups) in enumerate(values_of_groups(evaluation, cells), start=1):
        plot = forest.page(
            of_groups, f"{title}, by {column}", ends=forest_plot.scale(of_groups), units=f"{cells.unit}s"
        )
        drawings[f"forest_by_{k}"] = Drawing(figure=plot, values=of_groups), f"Groups of {column} in {title}"
    for name, (drawing, title_of_figure) in drawings.items():
        drawing = replace(drawing, values=as_texts(drawing.values))
        save(drawing, folder, name + suffix, title=title_of_figure)
    return [f"{name}{suffix}.pdf, .png, .csv" for name in drawings]
