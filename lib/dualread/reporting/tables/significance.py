"""Significance: one method against every other, as paired differences with Holm-adjusted p-values.

Not in the paper, whose bold print says which value is best, not whether chance explains it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dualread.errors import ConfigError
from dualread.evaluation.answer_metrics import AUROC, BRIER, SQUARED_CALIBRATION_ERROR
from dualread.evaluation.explained import CAPTIONS
from dualread.evaluation.metric import Metric
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.cells import CONTRASTS_CSV, FORCED, Cell, on_donors
from dualread.reporting.tables.entries import DASH, Gap, PValues, TwoLines
from dualread.reporting.tables.values import Key, number, p_text, printed

READS = "contrasts"
COMPARES_ONE = True  # the table's entry in the config names the method

LEVEL = 0.05


def _columns(at: sheet.RowContext) -> list[sheet.SheetColumn]:
    of_pairs = on_donors(at.values, "Natural", None)
    # There is no room for a tenth column.
    metrics, of_means = {AUROC: None, BRIER: None, SQUARED_CALIBRATION_ERROR: None}, {AUROC: None, BRIER: None}
    in_distribution = sheet.columns_of([at.layout.id_dataset], {**metrics, **of_pairs})
    return [*in_distribution, *sheet.columns_of([sheet.OOD], {**of_means, **of_pairs})]


def _floats(at: sheet.RowContext) -> Iterator[sheet.RowContext]:
    """Yield each backbone, with the compared method as the first of the methods: two of them would not fit a page."""
    if len(names := list(at.layout.contrasts)) != 1:
        raise ConfigError(f"layout: contrasts: {names}, expected one: of a method with all others.")
    compared = {key.method for key in at.values if key.contrast == names[0]}
    ordered = sorted(at.methods, key=lambda method: method.name not in compared)
    return (replace(block, methods=ordered if compared else ()) for block in sheet.backbones(at))


def _cell(at: sheet.RowContext, _: Metric, key: Key) -> Cell | None:
    key = key._replace(contrast=at.layout.contrasts[0], baseline=at.methods[1].name)
    if (value := at.values.get(key)) is None or value.mean is None:
        return value and Cell(key, value, DASH)
    row, difference = value.row, printed(replace(value, std=None), sign=True, bold=is_significant(value.row))
    if row["p_holm"] is None:
        return Cell(key, value, difference)
    retrained = [] if row["p_holm_retrained"] is None else [p_text(row["p_holm_retrained"])]
    p_values = PValues([p_text(row["p_holm"], at_most=row["p_holm_at_most"]), *retrained])
    return Cell(key, value, TwoLines(difference, p_values))


def is_significant(row: Mapping[str, Any]) -> bool:
    """Return whether a row of contrasts is significant: for these seeds and, if there are several, retrained actors.

    It is not where CCG-AUC rests on too few images.
    """
    p_values = [p for p in (row["p_holm"], row["p_holm_retrained"]) if p is not None]
    return bool(p_values) and max(p_values) < LEVEL and not row["short"]


def _compared(at: sheet.RowContext) -> str:
    return "".join(method.label for method in at.methods[:1])


def _caption(at: sheet.RowContext) -> list[str]:
    label = _compared(at)
    return [
        f"Differences between {label} and every other method for {at.backbone.label}, study "
        f"{at.layout.study}: {label} minus the method of the row, so a negative difference in Brier or "
        "CE² is an improvement.",
        "Mean over seeds; in parentheses below, two-sided p-values, adjusted by Holm's method over the rows of a "
        "column: first for these seeds, where only the {units} are a sample; then, if there are several seeds, for "
        f"retrained actors. Bold: all p-values below {number(LEVEL)}, and not underpowered. "
        "≤: the smallest p-value that the number of resamples can give.",
        CAPTIONS[SQUARED_CALIBRATION_ERROR.name],
        "Natural and Strict: CCG-AUC." if NATURAL_CCG_AUC in on_donors(at.values, None, None) else FORCED,
    ]


build = sheet.Sheet(
    name="significance",
    floats=_floats,
    label=lambda at: at.backbone.name,
    rows=[
        sheet.RowLevel(
            lambda at: (replace(at, methods=[at.methods[0], other]) for other in at.methods[1:]),
            [sheet.Label("Method", lambda at: at.methods[1].label)],
            gap=Gap.SPACE,
        )
    ],
    columns=_columns,
    caption=_caption,
    cell=_cell,
    head=lambda at, labels, columns: sheet.head_of(at, [labels[0]._replace(head=f"{_compared(at)} −")], columns),
    csv=CONTRASTS_CSV,
)
