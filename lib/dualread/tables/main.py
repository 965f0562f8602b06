"""The main table: accuracy, AUROC, Natural and Strict CCG-AUC, in distribution and averaged over OOD data sets.

One block of rows a backbone. Reproduces the layout of the paper's Table main for the methods that the layout lists.
"""

from collections.abc import Mapping
from itertools import groupby

import polars as pl

from dualread.tables._cells import Cell, Table, column_cells, column_texts, csv_rows, notes
from dualread.tables._latex import block_heading, escape, float_table, group_label, row
from dualread.tables._layout import NULL_GROUP, Backbone, Layout
from dualread.tables._values import Key, Value, summarize

N_COLUMNS = 10
_OOD = (("ood6", "accuracy"), ("ood6", "auroc"), ("ood_ccg", "natural_ccg_auc"), ("ood_ccg", "strict_ccg_auc"))
_HEADERS = (("Acc.", "AUROC", "Natural", "Strict"), ("", "", "CCG-AUC", "CCG-AUC"))


def build(metrics: pl.DataFrame, layout: Mapping) -> Table:
    """Return the main table of the study that `metrics` (a collected metrics table) is of.

    Raises:
        ConfigError: `layout` is malformed.
        ArtifactError: Methods of one actor do not have one accuracy.
    """
    parsed = Layout.parse(layout)
    return render(summarize(metrics, seeds=parsed.seeds), parsed)


def render(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the main table of `values`, from wherever they are."""
    columns = [*((layout.id_dataset.name, metric) for _, metric in _OOD), *_OOD]
    body: list[str] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        lines, cells = _block(values, layout, backbone, columns)
        body += [*([r"\midrule"] if body else []), block_heading(backbone.label, N_COLUMNS), *lines]
        printed += cells
    return Table(
        tex=float_table(
            name="main",
            wide=True,
            columns="ll*{4}{c}@{\\hspace{6pt}}*{4}{c}",
            head=_head(values, layout),
            body=body,
            caption=_caption(layout, printed),
        ),
        cells=csv_rows("main", printed),
    )


def _block(
    values: Mapping[Key, Value], layout: Layout, backbone: Backbone, columns: list[tuple[str, str]]
) -> tuple[list[str], list[Cell]]:
    """Return the lines of one backbone's block and its printed cells, row by row."""
    of_column = []
    for dataset, metric in columns:
        cells = column_cells(values, backbone=backbone.name, dataset=dataset, metric=metric, methods=layout.methods)
        of_column.append(column_texts(cells, layout.methods, shared=metric == "accuracy"))
    lines, printed = [], []
    for group, members in groupby(layout.methods, key=lambda method: method.group):
        rows = list(members)
        lines += [r"\addlinespace[2pt]"] if lines else []
        for k, method in enumerate(rows):
            texts = [group_label(len(rows), group) if k == 0 else "", escape(method.label)]
            for cells, text in (column[method.name] for column in of_column):
                texts.append(text)
                printed += cells
            lines.append(row(texts))
    return lines, printed


def _head(values: Mapping[Key, Value], layout: Layout) -> list[str]:
    blocks = [(escape(layout.id_dataset.label), layout.id_dataset.name), ("OOD averaged", "ood6")]
    titles = [rf"\multicolumn{{4}}{{c}}{{{label}{_size(values, dataset)}}}" for label, dataset in blocks]
    return [
        row(["", "", *titles]),
        r"\cmidrule(lr){3-6}\cmidrule(l){7-10}",
        row(["Confidence", "Method", *_HEADERS[0], *_HEADERS[0]]),
        row(["", "", *_HEADERS[1], *_HEADERS[1]]),
    ]


def _size(values: Mapping[Key, Value], dataset: str) -> str:
    sizes = {
        value.n
        for key, value in values.items()
        if (key.dataset, key.subset, key.metric) == (dataset, "all", "accuracy")
    }
    n = sizes.pop() if len(sizes) == 1 else None
    return f" ($n={n}$)" if n else ""


def _caption(layout: Layout, printed: list[Cell]) -> str:
    has_nulls = any(method.group == NULL_GROUP for method in layout.methods)
    nulls = f" and the group {NULL_GROUP}, which takes no part" if has_nulls else ""
    sentences = [
        f"Reliability and grounding of confidence, study {escape(layout.study)}.",
        "OOD columns average data sets with equal weight: all of them for accuracy and AUROC, those with same-question "
        "donors for CCG.",
        "Mean over seeds, with the sample standard deviation as subscript where there are several.",
        f"Bold: best printed value of a column within a backbone, except accuracy{nulls}.",
        "Methods that judge one actor's answers share its accuracy.",
        *notes(printed, "main"),
    ]
    return " ".join(sentences)
