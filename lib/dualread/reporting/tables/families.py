"""What the questions are about: number of questions per content family and data set.

Not a table of the paper. The counts that its text gives for PathVQA stand beside ours.
"""

from collections.abc import Mapping

from dualread.declared.tables import Layout
from dualread.evaluation.families import PREFIX
from dualread.reporting.tables._blocks import Lines, finished
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Row
from dualread.reporting.tables.cells import Cell, Table, size_of
from dualread.reporting.tables.values import Key, Value

# The paper's section "Dataset Details", paragraph "PathVQA".
PUBLISHED = {"path_vqa": {"modality": 10, "position": 51, "presence": 429, "size": 4, "other": 506}}
_METRIC = "questions"


def build(values: Mapping[Key, Value], layout: Layout) -> Table:
    """Return the counts of the data sets that have families, from the sizes of `values`."""
    found = {(key.dataset, key.subset.removeprefix(PREFIX)) for key in values if key.subset.startswith(PREFIX)}
    datasets = [dataset for dataset in layout.datasets if dataset.name in {name for name, _ in found}]
    families = {family for name, family in found if name in {dataset.name for dataset in datasets}}
    families |= {family for dataset in datasets for family in PUBLISHED.get(dataset.name, {})}
    lines = Lines([], [])
    for family in sorted(families):
        cells = []
        for dataset in datasets:
            cells.append(_count(values, layout, dataset.name, family))
            if dataset.name in PUBLISHED:
                cells.append(_published(dataset.name, family))
        lines.lines.append(Row([escape(family), *(cell.text for cell in cells)]))
        lines.cells.extend(cells)
    headers = []
    for dataset in datasets:
        headers += [escape(dataset.label), *(["(paper)"] if dataset.name in PUBLISHED else [])]
    return finished(
        "families",
        lines,
        wide=True,
        columns="l" + "r" * len(headers),
        head=[Row(["Family", *headers])],
        caption=[
            f"Questions of each content family, study {escape(layout.study)}.",
            "The families are those that each data set records. PathVQA records none: its families follow from the "
            "words of the question, and the paper's counts, of its own sample, stand beside ours."
            if any(dataset.name in PUBLISHED for dataset in datasets)
            else "The families are those that each data set records.",
        ],
    )


def _count(values: Mapping[Key, Value], layout: Layout, dataset: str, family: str) -> Cell:
    """Return the number of questions, which every run shares, since each metric is over all questions."""
    subset = PREFIX + family
    keys = [
        key
        for backbone in layout.backbones
        for method in layout.methods
        if (key := Key(backbone.name, dataset, subset, method.name, "accuracy")) in values
    ]
    n = size_of(values, keys)
    reason = "not the same number in every run" if keys else "no question of this family"
    return _cell(Key("", dataset, subset, "", _METRIC), n, reason)


def _published(dataset: str, family: str) -> Cell:
    n = PUBLISHED[dataset].get(family)
    return _cell(Key("", dataset, PREFIX + family, "paper", _METRIC), n, "the paper names no such family")


def _cell(key: Key, n: int | None, reason: str) -> Cell:
    value = Value(mean=n, std=None, n_runs=1, n=n, reason=reason if n is None else None)
    return Cell(key=key, value=value, bold=False, digits=0)
