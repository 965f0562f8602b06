"""The main table: accuracy, AUROC, Natural and Strict CCG-AUC, in distribution and averaged over OOD data sets.

One block of rows per backbone. Reproduces the layout of the paper's Table main for the methods that the layout lists.
"""

from dualread.reporting.tables._captions import CCG, SPREAD
from dualread.reporting.tables._latex import DITTO, escape
from dualread.reporting.tables._sheet import (
    BACKBONES,
    METHODS,
    OOD,
    At,
    By,
    Column,
    Label,
    Sheet,
    column,
    dataset_of,
    groups,
)
from dualread.reporting.tables._structure import Gap, Words
from dualread.reporting.tables.cells import size_of
from dualread.reporting.tables.values import Key
from dualread.specs.tables import NULL_GROUP

_HEADS = {
    "accuracy": (r"Acc.$\uparrow$", ""),
    "auroc": (r"AUROC$\uparrow$", ""),
    "natural_ccg_auc": ("Natural", r"CCG-AUC$\uparrow$"),
    "strict_ccg_auc": ("Strict", r"CCG-AUC$\uparrow$"),
}


def _columns(at: At) -> list[Column]:
    columns = []
    for place in (at.layout.id_dataset, OOD):
        answers = dataset_of(place, "accuracy")
        keys = [Key(b.name, answers, "all", m.name, "accuracy") for b in at.layout.backbones for m in at.layout.methods]
        n = size_of(at.values, keys)
        title = f"{escape(place.label)} ($n={n}$)" if n else escape(place.label)
        columns += [
            column(head, title, dataset=dataset_of(place, metric), metric=metric) for metric, head in _HEADS.items()
        ]
    return columns


def _caption(at: At) -> list[str]:
    has_nulls = any(method.group == NULL_GROUP for method in at.layout.methods)
    never_bold = f"accuracy and the group {NULL_GROUP} are" if has_nulls else "accuracy is"
    return [
        f"Reliability and grounding of confidence, study {escape(at.layout.study)}.",
        CCG,
        "OOD (out of distribution): mean over data sets with equal weight, over all of them for accuracy and AUROC, "
        "over those with donors for CCG-AUC.",
        f"{SPREAD}.",
        f"Bold: best printed value per column and backbone; {never_bold} never bold.",
        f"{DITTO}: the same answers, and so the same accuracy, as in the row above.",
    ]


build = Sheet(
    name="main",
    rows=[
        BACKBONES,
        By(groups, [Label("Confidence", lambda at: Words(at.method.group, len(at.methods)))], gap=Gap.SPACE),
        METHODS,
    ],
    columns=_columns,
    caption=_caption,
    shared=["accuracy"],
    specification=r"ll*{4}{c}@{\hspace{6pt}}*{4}{c}",
)
