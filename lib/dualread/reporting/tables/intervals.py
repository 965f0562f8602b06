"""Every method's mean over seeds, with its confidence interval over test images.

Not in the paper, which prints the spread over seeds alone. One float per backbone and data set.
"""

from collections.abc import Iterator
from dataclasses import replace

from dualread.reporting.tables._captions import CE2, INTERVALS
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._sheet import METHODS, OOD, At, Sheet, backbones, column, dataset_of, methods, places
from dualread.reporting.tables.cells import Cell
from dualread.reporting.tables.format import DASH, dagger, limits, number, tex_dagger
from dualread.reporting.tables.values import Key

READS = "contrasts"
_HEADS = {
    "auroc": r"AUROC$\uparrow$",
    "brier": r"Brier$\downarrow$",
    "squared_calibration_error": r"CE$^2\downarrow$",
    "natural_ccg_auc": r"Natural CCG$\uparrow$",
    "strict_ccg_auc": r"Strict CCG$\uparrow$",
}
_ALONE = "Only the interval is printed where the decisive pairs have fewer than 30 distinct source or donor images."


def _floats(at: At) -> Iterator[At]:
    return (replace(of, dataset=place) for of in backbones(at) for place in places(at.layout))


def _cell(at: At, key: Key) -> Cell | None:
    """Return value and interval; only the interval where images are too few; nothing where neither is computed."""
    if (value := at.values.get(key)) is None or value.mean is None:
        return value and Cell(key, value, DASH, DASH)
    interval = limits(value)
    shown = interval if interval == DASH else f"${interval}$"
    if value.short and at.dataset is not OOD:
        return Cell(key, value, shown, interval)
    mean = number(value.mean)
    return Cell(key, value, f"${mean}{tex_dagger(value.short)}$~{shown}", f"{mean}{dagger(value.short)} {interval}")


def _caption(at: At) -> list[str]:
    where = "OOD (means with equal weight over data sets)" if at.dataset is OOD else at.dataset.label
    keys = [of.key._replace(metric=metric) for of in methods(at) for metric in _HEADS]
    has_few = any(key in at.values and at.values[key].short for key in keys)
    return [
        f"Intervals of {escape(at.backbone.label)}, {escape(where)}, study {escape(at.layout.study)}.",
        r"Mean over seeds and, in brackets, the 95\% interval of that mean over other images, for these seeds.",
        INTERVALS,
        CE2,
        *([_ALONE] if at.dataset is not OOD and has_few else []),
    ]


build = Sheet(
    name="intervals",
    floats=_floats,
    label=lambda at: f"{at.backbone.name}:{at.dataset.name}",
    rows=[METHODS],
    columns=lambda at: [
        column(head, dataset=dataset_of(at.dataset, metric), metric=metric) for metric, head in _HEADS.items()
    ],
    caption=_caption,
    cell=_cell,
    of_contrasts=True,
)
