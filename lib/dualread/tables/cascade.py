"""The component ablation: what pre-answer state, answer state and visual evidence add to each other.

Reproduces the layout of the paper's Table cascade: in-distribution AUROC, Brier score and Natural CCG-AUC.
"""

from collections.abc import Mapping

import polars as pl

from dualread.tables._cells import Cell, Table, column_cells, csv_rows, notes
from dualread.tables._latex import block_heading, escape, float_table, row
from dualread.tables._layout import Layout, Method
from dualread.tables._values import Key, Value, summarize

# The readers that the paper puts together; a method has those that its own reader is or builds on.
COMPONENTS = {"PSR": "psr", "State": "p_state", "Visual": "p_visual"}
_METRICS = {"auroc": r"AUROC$\uparrow$", "brier": r"Brier$\downarrow$", "natural_ccg_auc": r"CCG-AUC$\uparrow$"}
N_COLUMNS = 1 + len(COMPONENTS) + len(_METRICS)


def build(metrics: pl.DataFrame, layout: Mapping) -> Table:
    """Return the component ablation of the study that `metrics` (a collected metrics table) is of.

    Raises:
        ConfigError: `layout` is malformed.
    """
    parsed = Layout.parse(layout)
    return render(summarize(metrics, seeds=parsed.seeds), parsed)


def render(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the component ablation of `values`, from wherever they are."""
    body: list[str] = []
    printed: list[Cell] = []
    for backbone in layout.backbones:
        columns = [
            column_cells(
                values, backbone=backbone.name, dataset=layout.id_dataset.name, metric=metric, methods=layout.methods
            )
            for metric in _METRICS
        ]
        body += [*([r"\addlinespace[2pt]"] if body else []), block_heading(backbone.label, N_COLUMNS)]
        for method in layout.methods:
            cells = [column[method.name] for column in columns]
            body.append(row([escape(method.label), *_marks(method), *(cell.tex for cell in cells)]))
            printed += cells
    caption = [
        f"Component ablation on {escape(layout.id_dataset.label)}, study {escape(layout.study)}.",
        "P-State and P-Visual make PER, PER and PSR make DualRead; CCG-AUC is the Natural one.",
        "Mean over seeds, with the sample standard deviation as subscript where there are several; bold: best printed "
        "value of a column within a backbone.",
        *notes(printed, "cascade"),
    ]
    return Table(
        tex=float_table(
            name="cascade",
            wide=False,
            columns="l" + "c" * (N_COLUMNS - 1),
            head=_head(),
            body=body,
            caption=" ".join(caption),
        ),
        cells=csv_rows("cascade", printed),
    )


def _marks(method: Method) -> list[str]:
    # \surd, because \checkmark would need amssymb.
    return [r"$\surd$" if reader in method.readers else r"$\times$" for reader in COMPONENTS.values()]


def _head() -> list[str]:
    return [
        row(["", rf"\multicolumn{{{len(COMPONENTS)}}}{{c}}{{Components}}", *[""] * len(_METRICS)]),
        r"\cmidrule(lr){2-4}",
        row(["Variant", *COMPONENTS, *_METRICS.values()]),
    ]
