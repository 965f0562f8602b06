"""Tables with four metrics per cell: accuracy and AUROC above, ECE and Brier score below."""

from collections.abc import Callable, Sequence

from dualread.evaluation.answer_metrics import ACCURACY, AUROC, BRIER, ECE
from dualread.evaluation.explained import CAPTIONS
from dualread.reporting.tables._sheet import BACKBONES, METHODS, SPREAD, RowContext, Sheet, SheetColumn
from dualread.reporting.tables.entries import Gap, Inline, Joined, Over, TableRow, TwoLines
from dualread.schema.tables import NULL_GROUP, LabeledDataset

_METRICS = (ACCURACY, AUROC, ECE, BRIER)
_HEAD = "Acc.↑/AUROC↑ (top); ECE-15↓/Brier↓ (bottom)"


def stacked(
    name: str, places: Callable[[RowContext], Sequence[LabeledDataset]], caption: Callable[[RowContext], Sequence[str]]
) -> Sheet:
    """Return a table with one column per data set. The caption has to explain no metric."""

    def columns(at: RowContext) -> list[SheetColumn]:
        return [SheetColumn(place.label, _METRICS, place=place, form=_four) for place in places(at)]

    def whole_caption(at: RowContext) -> list[str]:
        has_nulls = any(method.group == NULL_GROUP for method in at.layout.methods)
        never_bold = "accuracy and nulls are" if has_nulls else "accuracy is"
        bold = f"Bold: best printed value per metric, column and backbone; {never_bold} never bold."
        return [*caption(at), CAPTIONS[ECE.name], f"{SPREAD}. {bold}"]

    return Sheet(
        name=name,
        rows=[BACKBONES, METHODS._replace(gap=Gap.SPACE)],
        columns=columns,
        caption=whole_caption,
        head=lambda at, labels, columns: [
            TableRow(["", *(str(column.head) for column in columns)]),
            TableRow([labels[0].head, Over(_HEAD, len(columns))]),
        ],
        small=True,
    )


def _four(accuracy: Inline, auroc: Inline, ece: Inline, brier: Inline) -> TwoLines:
    apart = "\N{THIN SPACE}/\N{THIN SPACE}"
    return TwoLines(Joined([accuracy, apart, auroc]), Joined([ece, apart, brier]))
