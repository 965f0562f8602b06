"""What the questions are about: number of questions per content family and data set.

Not a table of the paper. The counts that its text gives for PathVQA stand beside ours.
"""

from collections.abc import Mapping
from dataclasses import replace

from dualread.evaluation.conditions import FAMILY_PREFIX
from dualread.evaluation.metric import Metric
from dualread.reporting.tables._sheet import Label, RowContext, RowLevel, Sheet, SheetColumn, column
from dualread.reporting.tables.cells import size_of
from dualread.reporting.tables.values import Key, Value
from dualread.schema.tables import LabeledDataset, Layout

# The paper's section "Dataset Details", paragraph "PathVQA".
PUBLISHED = {"path_vqa": {"modality": 10, "position": 51, "presence": 429, "size": 4, "other": 506}}
_QUESTIONS = Metric(name="questions", digits=0)


def _shown(values: Mapping[Key, Value], layout: Layout) -> tuple[list[LabeledDataset], list[str]]:
    """Return the data sets that have families, and the families of ours and of the paper."""
    present = {(key.dataset, key.subset) for key in values if key.subset.startswith(FAMILY_PREFIX)}
    datasets = [dataset for dataset in layout.datasets if dataset.name in {name for name, _ in present}]
    names = {dataset.name for dataset in datasets}
    families = {family for name, family in present if name in names}
    return datasets, sorted(families | {FAMILY_PREFIX + family for name in names for family in PUBLISHED.get(name, {})})


def _counts(values: Mapping[Key, Value], layout: Layout) -> dict[Key, Value]:
    """Return the number of questions, which every run shares, since each metric is over all questions."""
    datasets, families = _shown(values, layout)
    counts = {}
    for family in families:
        for name in (dataset.name for dataset in datasets):
            runs = [(backbone, method) for backbone in layout.backbones for method in layout.methods]
            keys = [Key(backbone.name, name, family, method.name, "accuracy") for backbone, method in runs]
            has_some = any(key in values for key in keys)
            reason = "not the same number in every run" if has_some else "no question of this family"
            counts[Key("", name, family, "", _QUESTIONS.name)] = _count(size_of(values, keys), reason)
            of_paper = PUBLISHED.get(name, {}).get(family.removeprefix(FAMILY_PREFIX))
            counts[Key("", name, family, "paper", _QUESTIONS.name)] = _count(of_paper, "the paper names no such family")
    return counts


def _count(n: int | None, reason: str) -> Value:
    return Value(mean=n, std=None, n_runs=1, n=n, reason=reason if n is None else None)


def _columns(at: RowContext) -> list[SheetColumn]:
    columns = []
    for dataset in _shown(at.values, at.layout)[0]:
        part = {"backbone": "", "dataset": dataset.name}
        columns.append(column(_QUESTIONS, dataset.label, **part, method=""))
        if dataset.name in PUBLISHED:
            columns.append(column(_QUESTIONS, "(paper)", **part, method="paper"))
    return columns


def _caption(at: RowContext) -> list[str]:
    datasets, _ = _shown(at.values, at.layout)
    return [
        f"Questions of each content family, study {at.layout.study}.",
        "The families are those that each data set records. PathVQA records none: its families follow from the "
        "words of the question, and the paper's counts, of its own sample, stand beside ours."
        if any(dataset.name in PUBLISHED for dataset in datasets)
        else "The families are those that each data set records.",
    ]


build = Sheet(
    name="families",
    rows=[
        RowLevel(
            lambda at: [replace(at, subset=family) for family in _shown(at.values, at.layout)[1]],
            [Label("Family", lambda at: at.subset.removeprefix(FAMILY_PREFIX))],
        )
    ],
    columns=_columns,
    caption=_caption,
    derived=_counts,
    alignment="r",
)
