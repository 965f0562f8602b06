"""The main table: accuracy, AUROC, Natural and Strict CCG-AUC, in distribution and averaged over OOD data sets.

One block of rows per backbone. Reproduces the layout of the paper's Table main for the methods that the layout lists.
"""

from collections.abc import Mapping
from itertools import groupby

from dualread.declared.tables import NULL_GROUP, LabeledBackbone, Layout
from dualread.reporting.tables._blocks import Column, Lines, finished, headed, rows_of, stacked
from dualread.reporting.tables._captions import CCG, SPREAD
from dualread.reporting.tables._latex import DITTO, escape
from dualread.reporting.tables._structure import Gap, Line, Row, Words, spanning
from dualread.reporting.tables.cells import Table, size_of
from dualread.reporting.tables.values import Key, Value

N_COLUMNS = 10
_OOD = (("ood6", "accuracy"), ("ood6", "auroc"), ("ood_ccg", "natural_ccg_auc"), ("ood_ccg", "strict_ccg_auc"))
_HEADERS = (
    (r"Acc.$\uparrow$", r"AUROC$\uparrow$", "Natural", "Strict"),
    ("", "", r"CCG-AUC$\uparrow$", r"CCG-AUC$\uparrow$"),
)


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the main table of `values`, ours or the published ones.

    Raises:
        ArtifactError: Methods of one actor do not have one accuracy.
    """
    blocks = (headed(backbone.label, N_COLUMNS, _block(values, layout, backbone)) for backbone in layout.backbones)
    return finished(
        "main",
        stacked(blocks),
        wide=True,
        columns="l" * 2 + "c" * 8,
        specification=r"ll*{4}{c}@{\hspace{6pt}}*{4}{c}",
        head=_head(values, layout),
        caption=_caption(layout),
    )


def _block(values: Mapping[Key, Value], layout: Layout, backbone: LabeledBackbone) -> Lines:
    """Return the rows of a backbone, with the label of each group beside the rows of its methods."""
    columns = [*(Column(layout.id_dataset.name, metric) for _, metric in _OOD), *(Column(*of) for of in _OOD)]
    rows = rows_of(values, backbone, layout.methods, columns, shared=["accuracy"])
    groups = []
    for group, members in groupby(layout.methods, key=lambda method: method.group):
        methods, lines = list(members), Lines([], [])
        for k, method in enumerate(methods):
            texts, cells = rows[method.name]
            lines.lines.append(Row([Words(group, len(methods)) if k == 0 else "", escape(method.label), *texts]))
            lines.cells.extend(cells)
        groups.append(lines)
    return stacked(groups, Gap.SPACE)


def _head(values: Mapping[Key, Value], layout: Layout) -> list[Line]:
    titles = []
    for dataset, label in ((layout.id_dataset.name, escape(layout.id_dataset.label)), ("ood6", "OOD averaged")):
        keys = [Key(b.name, dataset, "all", m.name, "accuracy") for b in layout.backbones for m in layout.methods]
        n = size_of(values, keys)
        titles.append((f"{label} ($n={n}$)" if n else label, 4))
    return [
        spanning(2, titles),
        Row(["Confidence", "Method", *_HEADERS[0], *_HEADERS[0]]),
        Row(["", "", *_HEADERS[1], *_HEADERS[1]]),
    ]


def _caption(layout: Layout) -> list[str]:
    has_nulls = any(method.group == NULL_GROUP for method in layout.methods)
    never_bold = f"accuracy and the group {NULL_GROUP} are" if has_nulls else "accuracy is"
    return [
        f"Reliability and grounding of confidence, study {escape(layout.study)}.",
        CCG,
        "OOD (out of distribution): mean over data sets with equal weight, over all of them for accuracy and AUROC, "
        "over those with donors for CCG-AUC.",
        f"{SPREAD}.",
        f"Bold: best printed value per column and backbone; {never_bold} never bold.",
        f"{DITTO}: the same answers, and so the same accuracy, as in the row above.",
    ]
