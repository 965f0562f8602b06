"""The files that `dualread evaluate --out` writes: tables with full precision, and figures."""

import importlib.util
from pathlib import Path

import polars as pl

from dualread.apps.evaluate.printed import EvaluationReport
from dualread.apps.evaluate.results import Results
from dualread.artifacts.tables import for_spreadsheets
from dualread.errors import DataError


def write(results: Results, report: EvaluationReport, folder: Path) -> list[str]:
    """Write tables, figures and a page in place of earlier ones; return their names, a figure's with all suffixes.

    The figures are a forest plot, a reliability diagram and a risk-coverage plot per data set, each as .pdf, .png and
    .csv; evaluate.html shows them on one page. A method without probabilities has no reliability diagram. Without
    matplotlib, neither figures nor page are made (`without_figures`).
    """
    tables = {"metrics": results.metrics, "differences": results.differences, "thresholds": results.thresholds}
    tables |= {"graded": results.graded, "answer_sets": results.answer_sets, "claim_filter": results.claim_filter}
    if (groups := results.groups) is not None:
        tables |= {"groups": groups.metrics, "worst_groups": groups.worst, "group_thresholds": groups.thresholds}
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            if table is not None:
                as_texts(table).write_csv(folder / f"{name}.csv")
                written.append(f"{name}.csv")
        if without_figures() is None:
            from dualread.apps.evaluate import figures  # here, because a table does not need matplotlib

            written += figures.write(results, report, folder)
    except OSError as error:
        raise DataError(f"--out {folder}: cannot be written ({error.strerror}). Choose another folder.") from error
    return written


def as_texts(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table for spreadsheets (see `for_spreadsheets`), with spaces in place of control characters."""
    return for_spreadsheets(table).with_columns(pl.selectors.string().str.replace_all(r"[\x00-\x1f\x7f]", " "))


def without_figures() -> str | None:
    """Return why no figures are drawn, and what to do; None if they are."""
    if importlib.util.find_spec("matplotlib") is not None:
        return None
    return "no figures, because matplotlib is not installed. Run: pip install 'dualread[plots]'."
