"""Significance: one method against every other, as paired differences with Holm-adjusted p-values.

Not in the paper, whose bold print says which value is best, not whether chance explains it.
"""

import polars as pl

from dualread.declared.tables import LabeledBackbone, Layout
from dualread.errors import ConfigError
from dualread.reporting.tables._captions import CE2
from dualread.reporting.tables._contrasts import (
    ContrastRow,
    Difference,
    Key,
    by_key,
    csv_rows,
    dataset_of,
    line,
    notes,
    short_sides,
)
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Float, Gap, Line, Raised, Row, TwoLines, spanning
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.format import DASH, dagger, number, p_text, signed, tex_dagger

READS = "contrasts"
COMPARES_ONE = True  # the table's entry in the config names the method

LEVEL = 0.05
_METRICS = {
    "auroc": r"AUROC$\uparrow$",
    "brier": r"Brier$\downarrow$",
    "squared_calibration_error": r"CE$^2\downarrow$",
    "natural_ccg_auc": r"Natural$\uparrow$",
    "strict_ccg_auc": r"Strict$\uparrow$",
}
# There is no room for a tenth column.
_OF_MEANS = {name: header for name, header in _METRICS.items() if name != "squared_calibration_error"}


def build(contrasts: pl.DataFrame, layout: Layout) -> Table:
    """Return the differences between one method and every other, in distribution and on the OOD means.

    Raises:
        ConfigError: `layout` names another number of contrasts than one.
    """
    rows = by_key(contrasts)
    if len(layout.contrasts) != 1:
        raise ConfigError(f"layout: contrasts: {list(layout.contrasts)}, expected one: of a method with all others.")
    (name,) = layout.contrasts
    compared = {key.method for key in rows if key.contrast == name}
    label = " ".join(escape(method.label) for method in layout.methods if method.name in compared)
    columns = [(layout.id_dataset, metric) for metric in _METRICS] + [(None, metric) for metric in _OF_MEANS]
    floats, printed = [], []
    for backbone in layout.backbones:
        body: list[Line] = []
        cells: list[Difference] = []
        for other in layout.methods:
            for method in compared - {other.name}:
                keys = [
                    Key(backbone.name, name, dataset_of(place, metric), metric, method, other.name)
                    for place, metric in columns
                ]
                of_other = [_cell(rows[key]) if key in rows else None for key in keys]
                has_two = any(isinstance(cell.entry, TwoLines) for cell in of_other if cell)
                shown = Raised(escape(other.label)) if has_two else escape(other.label)
                body += [*([Gap.SPACE] if body else []), line(shown, of_other)]
                cells += filter(None, of_other)
        floats.append(_float(layout, backbone, label, body, cells))
        printed += cells
    return Table(floats=floats, cells=csv_rows("significance", printed))


def _float(layout: Layout, backbone: LabeledBackbone, label: str, body: list[Line], cells: list[Difference]) -> Float:
    """Return the float of one backbone: two of them would not fit a page."""
    return Float(
        name="significance",
        label=f"significance:{backbone.name}",
        wide=True,
        columns="l" + "c" * (len(_METRICS) + len(_OF_MEANS)),
        head=_head(layout, label),
        body=body,
        caption=" ".join([*_caption(layout, backbone, label), *notes(cells, "significance")]),
    )


def _cell(found: ContrastRow) -> Difference:
    if found["estimate"] is None:
        return Difference(found, DASH, DASH)
    difference, short = signed(found["estimate"]), short_sides(found)
    mark = tex_dagger(short)
    if found["p_holm"] is None:
        return Difference(found, f"${difference}{mark}$", difference + dagger(short))
    p = p_text(found["p_holm"], at_most=found["p_holm_at_most"])
    if found["p_holm_retrained"] is not None:
        p += f"; {p_text(found['p_holm_retrained'])}"
    tex = rf"\mathbf{{{difference}}}" if is_significant(found) else difference
    shown = p.replace("≤", r"\le ").replace("; ", r";\,")
    return Difference(found, TwoLines(f"${tex}{mark}$", f"$({shown})$"), f"{difference}{dagger(short)} ({p})")


def is_significant(row: ContrastRow) -> bool:
    """Return whether a difference is significant: for these seeds and, if there are several, for retrained actors.

    It is not where CCG-AUC rests on too few images.
    """
    p_values = [p for p in (row["p_holm"], row["p_holm_retrained"]) if p is not None]
    return bool(p_values) and max(p_values) < LEVEL and not row["short"]


def _head(layout: Layout, label: str) -> list[Line]:
    titles = [(escape(layout.id_dataset.label), len(_METRICS)), ("OOD averaged", len(_OF_MEANS))]
    return [
        spanning(1, titles),
        Row([f"{label} $-$", *_METRICS.values(), *_OF_MEANS.values()]),
    ]


def _caption(layout: Layout, backbone: LabeledBackbone, label: str) -> list[str]:
    return [
        f"Differences between {label} and every other method for {escape(backbone.label)}, study "
        f"{escape(layout.study)}: {label} minus the method of the row, so a negative difference in Brier or "
        "CE$^2$ is an improvement.",
        "Mean over seeds; in parentheses below, two-sided p-values, adjusted by Holm's method over the rows of a "
        "column: first for these seeds, where only the images are a sample; then, if there are several seeds, for "
        f"retrained actors. Bold: all p-values below {number(LEVEL)}, and not underpowered. "
        r"$\le$: the smallest p-value that the number of resamples can give.",
        CE2,
        "Natural and Strict: CCG-AUC.",
    ]
