"""evaluate.html: one page about anybody's table that loads nothing: words, plot, reliability, risk-coverage, pairs."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from dualread.apps.evaluate.claims import about_filters
from dualread.apps.evaluate.evaluation import Evaluation
from dualread.apps.evaluate.evaluation_data import NO_PAIRS, EvaluationData
from dualread.apps.evaluate.graded import wrong_pairs
from dualread.apps.evaluate.report import interval_text, number_text
from dualread.apps.evaluate.screen import (
    BAD,
    FILTER_HEAD,
    SHOWN,
    filter_rows,
    group_lines,
    heading,
    p_text,
    sentences,
    verdicts,
)
from dualread.evaluation.explained import METRICS
from dualread.evaluation.metrics.grounding import FEW_IMAGES_OF
from dualread.reporting.forest import LIMIT_LABEL, VALUES, plot, rows_of, rows_of_groups, says, scale

_FOLDER = Path(__file__).parent
_WORDS = {
    "reliability": "Reliability: of the answers with a confidence of about .7, how many are right? On the dashed line,"
    " as many as the confidence says. In parentheses: the ECE that calibrated confidences reach by chance.",
    "risk_coverage": "Risk and coverage: the error rate of the answers that are kept, if only the most confident are.",
}

_OF_PAIRS = {
    "decisive_pairs": "Pairs",
    "source_images": "Own {units}",
    "donor_images": "Donor {units}",
    "natural_ties": "Share of ties",
    "natural_detectable": "Tells this from .5",
    "strict_decisive_pairs": "Strict pairs",
    "strict_ccg_auc": "Strict CCG-AUC",
}


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A table of the page: columns, rows of texts, and which columns are numbers."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int]


def values_of(evaluation: Evaluation, cells: EvaluationData) -> pl.DataFrame:
    """Return what a forest plot shows of a data set; a method is marked where its interval lies above .5."""
    metrics = cells.rows_of(evaluation.metrics).filter(subset="all")
    flags = {(row["method"], row["metric"]): row["estimate"] for row in metrics.iter_rows(named=True)}

    def few(method: str) -> str | None:
        sides = [side for side, flag in FEW_IMAGES_OF.items() if flags.get((method, f"natural_{flag}"))]
        return " and ".join(sides) or None

    rows = [
        {**row, "short": few(row["method"]) if row["metric"] == "natural_ccg_auc" else None}
        for row in metrics.iter_rows(named=True)
        if row["reason"] != NO_PAIRS
    ]
    labels, source = {method: method for method in cells.methods}, Path(cells.source).name
    shown = rows_of(rows, [], labels, study=source, backbone="", dataset=cells.dataset or "")
    return pl.DataFrame(list(shown), schema=VALUES)


def values_of_groups(evaluation: Evaluation, cells: EvaluationData) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield each column of groups, and what a forest plot shows of its groups that have an interval."""
    if evaluation.groups is not None:
        labels = {method: f"{method}: " if len(cells.methods) > 1 else "" for method in cells.methods}
        names = {"study": Path(cells.source).name, "backbone": "", "dataset": cells.dataset or ""}
        for (column,), rows in cells.rows_of(evaluation.groups.metrics).group_by("by", maintain_order=True):
            if shown := list(rows_of_groups(rows.to_dicts(), labels, **names)):
                yield str(column), pl.DataFrame(shown, schema=VALUES)


def render(evaluation: Evaluation, folder: Path, suffixes: Sequence[str]) -> str:
    """Return the page; the pictures are those that lie in `folder`.

    Args:
        evaluation: What was computed.
        folder: Where the figures of the data sets were written.
        suffixes: The ends of their names, one per data set.
    """
    from dualread.reporting.pages import environment, script_of  # needs jinja2, which is there where figures are

    parts = [_part(evaluation, cells, folder, suffix) for cells, suffix in zip(evaluation.parts, suffixes, strict=True)]
    template = environment(_FOLDER).get_template("evaluate.html.jinja")
    return template.render(
        title=Path(evaluation.parts[0].source).name,
        parts=parts,
        meanings=SHOWN,
        warnings=[*evaluation.warnings, *evaluation.unused],
        limit_label=LIMIT_LABEL,
        script=script_of("sort.js"),
    )


def _part(evaluation: Evaluation, cells: EvaluationData, folder: Path, suffix: str) -> dict[str, Any]:
    """Return what the page says of one data set, by the names of its template."""
    metrics, values = cells.rows_of(evaluation.metrics), values_of(evaluation, cells)
    units, drawn = f"{cells.unit}s", not values.filter(pl.col("estimate").is_not_null()).is_empty()
    told = {method: verdicts(cells, metrics, method) for method in cells.methods}
    lines = [replace(line, text=line.text[line.start :]) for line in sentences(told)]
    named = ("dot", "ccg") if "natural_ccg_auc" in values["metric"] else ("dot",)
    pictures = []
    for name, words in _WORDS.items():
        file = folder / f"{name}{suffix}.png"
        if file.exists():
            uri = f"data:image/png;base64,{b64encode(file.read_bytes()).decode()}"
            pictures.append({"words": words, "alt": f"{words} Methods: {', '.join(cells.methods)}.", "uri": uri})
    return {
        "name": heading(cells),
        "sentences": sorted(lines, key=lambda line: line.kind == BAD),
        "groups": [
            plot(of_groups, f"By {column}, 95% intervals over other {units}", scale(of_groups), units)
            for column, of_groups in values_of_groups(evaluation, cells)
        ],
        "told_of_groups": [line.text for line in group_lines(evaluation.groups, cells)] if evaluation.groups else [],
        "of_groups": says(units)["groups"],
        "plot": plot(values, f"95% intervals over other {units}", scale(values), units) if drawn else None,
        "says": [says(units)[name] for name in named],
        "told": told,
        "pictures": pictures,
        "tables": list(_tables(evaluation, cells, metrics)),
        "every": _metrics(metrics.filter(subset="all")),
    }


def _tables(evaluation: Evaluation, cells: EvaluationData, metrics: pl.DataFrame) -> Iterator[PageTable]:
    if not metrics.filter(metric="natural_ccg_auc")["reason"].eq_missing(NO_PAIRS).all():
        yield _pairs(cells, metrics.filter(subset="all"))
    for table in cells.graded["table"].unique(maintain_order=True):
        if not (pairs := wrong_pairs(graded := cells.graded.filter(table=table))).is_empty():
            yield _wrong_pairs(graded, pairs)
    if evaluation.differences is not None:
        yield _differences(cells.rows_of(evaluation.differences), f"{cells.unit}s")
    if evaluation.thresholds is not None:
        yield _thresholds(cells.rows_of(evaluation.thresholds))
    if evaluation.claim_filter is not None:
        filters = cells.rows_of(evaluation.claim_filter)
        left_out = "".join(f" Left out: {n} ({why})." for why, n in evaluation.left_out.items())
        caption = f"Per report, {about_filters(filters, cells)}.{left_out}"
        right = frozenset({3, 4, 5, 6, 7})
        yield PageTable(caption=caption, columns=(*FILTER_HEAD, ""), rows=list(filter_rows(filters)), right=right)


def _pairs(cells: EvaluationData, metrics: pl.DataFrame) -> PageTable:
    estimates = {(row["method"], row["metric"]): row["estimate"] for row in metrics.iter_rows(named=True)}
    rows = [
        (method, *(number_text(estimates.get((method, name))) for name in _OF_PAIRS))
        for method in cells.methods
        if estimates.get((method, "decisive_pairs")) is not None
    ]
    caption = "Donor pairs: right on the own image, wrong on the donor's. Strict: with the same answer on both."
    columns = ("Method", *(head.replace("{units}", f"{cells.unit}s") for head in _OF_PAIRS.values()))
    return PageTable(caption=caption, columns=columns, rows=rows, right=frozenset(range(1, len(columns))))


def _wrong_pairs(graded: pl.DataFrame, pairs: pl.DataFrame) -> PageTable:
    """Return the most common pairs of answer and reference that count as wrong, and how many answers are empty."""
    n_right, n_empty = int(graded["correct"].sum()), graded["answer"].null_count()
    caption = (
        f"The most common pairs that count as wrong in the table of {graded['table'][0]}, in which {n_right} of"
        f" {len(graded)} answers are right and {n_empty} are empty; graded.csv has every row"
    )
    columns = ("Answer", "Reference", "n", "")
    rows = [
        (answer, reference, str(n), "one stands in the other" if contained else "")
        for answer, reference, n, contained in pairs.rows()
    ]
    return PageTable(caption=caption, columns=columns, rows=rows, right=frozenset({2}))


def _metrics(metrics: pl.DataFrame) -> PageTable:
    rows = [
        (
            row["metric"],
            row["method"],
            number_text(row["estimate"]),
            interval_text(row),
            str(row["n"]),
            row["reason"] or METRICS[row["metric"]],
        )
        for row in metrics.iter_rows(named=True)
        if row["metric"] in METRICS and row["reason"] != NO_PAIRS
    ]
    columns = ("Metric", "Method", "Value", "95% interval", "n", "What it is")
    return PageTable(caption="Every metric of all answers", columns=columns, rows=rows, right=frozenset({2, 3, 4}))


def _differences(rows: pl.DataFrame, units: str) -> PageTable:
    columns = ("Metric", "Method - baseline", "Difference", "95% interval", "p", "p (Holm)", "")
    made = [
        (
            row["metric"],
            f"{row['method']} - {row['baseline']}",
            number_text(row["estimate"]),
            interval_text(row),
            *(p_text(row[name], row[f"{name}_at_most"]) for name in ("p", "p_holm")),
            row["reason"] or "",
        )
        for row in rows.iter_rows(named=True)
        if row["n"] > 0
    ]
    caption = f"Differences on the same {units}"
    return PageTable(caption=caption, columns=columns, rows=made, right=frozenset({2, 3, 4, 5}))


def _thresholds(rows: pl.DataFrame) -> PageTable:
    made = [
        (
            f"{row['target_risk']:g}",
            row["method"],
            row["rule"],
            *(number_text(row[name]) for name in ("threshold", "coverage", "risk")),
            row["reason"] or "",
        )
        for row in rows.iter_rows(named=True)
    ]
    columns = ("Target risk", "Method", "Rule", "Threshold", "Share kept", "Risk of these", "")
    return PageTable(caption="Answers kept above a threshold", columns=columns, rows=made, right=frozenset({3, 4, 5}))
