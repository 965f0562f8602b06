"""Tables with four metrics per cell: accuracy and AUROC above, ECE and Brier score below (ood_acc and calib)."""

from collections.abc import Mapping, Sequence

from dualread.declared.tables import NULL_GROUP, LabeledBackbone, Layout
from dualread.reporting.tables._blocks import Column, Lines, finished, headed, rows_of, stacked
from dualread.reporting.tables._captions import ECE, SPREAD
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Gap, Over, Raised, Row, TwoLines
from dualread.reporting.tables.cells import Table
from dualread.reporting.tables.values import Key, Value

_METRICS = ("accuracy", "auroc", "ece15", "brier")
_HEADER = r"Acc.$\uparrow$/AUROC$\uparrow$ (top); ECE-15$\downarrow$/Brier$\downarrow$ (bottom)"


def table(
    name: str, values: Mapping[Key, Value], layout: Layout, places: Sequence[tuple[str, str]], caption: Sequence[str]
) -> Table:
    """Return the table `name`: one row per method, one column per place.

    Args:
        name: The table's.
        values: Ours or the published ones.
        layout: Its backbones and methods are the rows.
        places: Data sets, or means over several, each with its label.
        caption: Its first sentences.
    """
    n_columns = 1 + len(places)
    blocks = (headed(b.label, n_columns, _block(values, layout, b, places)) for b in layout.backbones)
    has_nulls = any(method.group == NULL_GROUP for method in layout.methods)
    never_bold = "accuracy and nulls are" if has_nulls else "accuracy is"
    return finished(
        name,
        stacked(blocks),
        wide=True,
        small=True,
        columns="l" + "c" * len(places),
        head=[
            Row(["", *(escape(label) for _, label in places)]),
            Row(["Method", Over(_HEADER, len(places))]),
        ],
        caption=[
            *caption,
            ECE,
            f"{SPREAD}. Bold: best printed value per metric, column and backbone; {never_bold} never bold.",
        ],
    )


def _block(
    values: Mapping[Key, Value], layout: Layout, backbone: LabeledBackbone, places: Sequence[tuple[str, str]]
) -> Lines:
    columns = [Column(place, metric) for place, _ in places for metric in _METRICS]
    rows = rows_of(values, backbone, layout.methods, columns)
    methods = []
    for method in layout.methods:
        texts, cells = rows[method.name]
        fours = zip(*(texts[k :: len(_METRICS)] for k in range(len(_METRICS))), strict=True)
        stacks = (TwoLines(rf"{acc}\,/\,{auroc}", rf"{ece}\,/\,{brier}") for acc, auroc, ece, brier in fours)
        methods.append(Lines([Row([Raised(escape(method.label)), *stacks])], cells))
    return stacked(methods, Gap.SPACE)
