"""The main table: accuracy, AUROC, Natural and Strict CCG-AUC, in distribution and averaged over OOD data sets.

One block of rows per backbone. Reproduces the layout of the paper's Table main for the methods that the layout lists.
"""

from dualread.evaluation.answer_metrics import ACCURACY, AUROC
from dualread.evaluation.explained import CAPTIONS
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC, STRICT_CCG_AUC
from dualread.reporting.tables import _sheet as sheet
from dualread.reporting.tables.cells import size_of
from dualread.reporting.tables.entries import DITTO, Beside, Gap
from dualread.reporting.tables.values import Key
from dualread.schema.tables import NULL_GROUP

_METRICS = {
    ACCURACY: ("Acc.", ""),
    AUROC: ("AUROC", ""),
    NATURAL_CCG_AUC: ("Natural", "CCG-AUC"),
    STRICT_CCG_AUC: ("Strict", "CCG-AUC"),
}


def _columns(at: sheet.RowContext) -> list[sheet.SheetColumn]:
    columns = []
    for place in (at.layout.id_dataset, sheet.OOD):
        answers = sheet.dataset_of(place, ACCURACY)
        keys = [
            Key(b.name, answers, "all", m.name, ACCURACY.name) for b in at.layout.backbones for m in at.layout.methods
        ]
        n = size_of(at.values, keys)
        title = f"{place.label} (𝑛={n})" if n else place.label
        columns += [column._replace(place=place) for column in sheet.columns_here(_METRICS, title)]
    return columns


def _caption(at: sheet.RowContext) -> list[str]:
    has_nulls = any(method.group == NULL_GROUP for method in at.layout.methods)
    never_bold = f"accuracy and the group {NULL_GROUP} are" if has_nulls else "accuracy is"
    return [
        f"Reliability and grounding of confidence, study {at.layout.study}.",
        CAPTIONS[NATURAL_CCG_AUC.name],
        "OOD (out of distribution): mean over data sets with equal weight, over all of them for accuracy and AUROC, "
        "over those with donors for CCG-AUC.",
        f"{sheet.SPREAD}.",
        f"Bold: best printed value per column and backbone; {never_bold} never bold.",
        f"{DITTO}: the same answers, and so the same accuracy, as in the row above.",
    ]


build = sheet.Sheet(
    name="main",
    rows=[
        sheet.BACKBONES,
        sheet.RowLevel(
            sheet.groups,
            [sheet.Label("Confidence", lambda at: Beside(at.method.group, len(at.methods), by_word=True))],
            gap=Gap.SPACE,
        ),
        sheet.METHODS,
    ],
    columns=_columns,
    caption=_caption,
    shared=[ACCURACY],
    specification=r"ll*{4}{c}@{\hspace{6pt}}*{4}{c}",
)
