r"""A table as a declaration: what its rows run over, what its columns show, and its words.

    build = Sheet(
        name="mine",
        rows=[BACKBONES, METHODS],
        columns=lambda at: columns_of([at.layout.id_dataset, OOD], [AUROC, BRIER]),
        caption=lambda at: [f"My table, study {at.layout.study}."],
    )

Every cell has a key. Its parts come from where the row stands (`RowContext`) and from what the column adds.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

from dualread.errors import ArtifactError
from dualread.evaluation.answer_metrics import FURTHER_METRICS
from dualread.evaluation.conditions import FAMILY_PREFIX
from dualread.evaluation.metric import Metric
from dualread.reporting.tables.cells import (
    METRICS_CSV,
    Cell,
    PrintedTable,
    compared_cell,
    csv_rows,
    mean_cell,
    notes,
    value_of,
)
from dualread.reporting.tables.entries import (
    DASH,
    DITTO,
    Beside,
    Entry,
    Float,
    Gap,
    Heading,
    Line,
    Over,
    Raised,
    TableRow,
    TwoLines,
)
from dualread.reporting.tables.values import Key, Value
from dualread.schema.tables import LabeledBackbone, LabeledDataset, LabeledMethod, Layout

SPREAD = "Mean over seeds, with the sample standard deviation as subscript where there are several seeds"
OUT_OF_DISTRIBUTION = "OOD: out of distribution."
NOTATION = (
    "Cost in the paper's notation: 𝑡 is one generated answer, ρ one pass over a prompt alone, "
    "τ one replay of prompt and answer; — where the paper gives none."
)
INTERVALS = (
    "Intervals of AUROC and Brier come from resamples of the {units}, spread as Student's t on the logit; those of "
    "CCG-AUC leave out each source and each donor {unit} in turn (jackknife, Student's t)."
)

# Stands for the mean over OOD data sets, where a data set is asked for.
OOD = LabeledDataset(name="ood", label="OOD averaged", id=False)


@dataclass(frozen=True, kw_only=True)
class RowContext:
    """Where a row stands: everything that the rows around it have in common with it.

    What no level of the rows runs over is the first backbone, the in-distribution data set, and all questions.
    """

    values: Mapping[Key, Value]
    layout: Layout
    backbone: LabeledBackbone
    dataset: LabeledDataset
    methods: Sequence[LabeledMethod]
    subset: str = "all"

    @property
    def method(self) -> LabeledMethod:
        """The method of the row, or the first of several."""
        return self.methods[0]

    @property
    def key(self) -> Key:
        """What is known of the keys of the row's cells."""
        method = self.method.name if self.methods else ""
        return Key(self.backbone.name, self.dataset.name, self.subset, method, "")


# What rows can run over. A table may have others of its own.
def backbones(at: RowContext) -> Iterator[RowContext]:
    """Yield the backbones."""
    return (replace(at, backbone=backbone) for backbone in at.layout.backbones)


def datasets(at: RowContext) -> Iterator[RowContext]:
    """Yield the data sets."""
    return (replace(at, dataset=dataset) for dataset in at.layout.datasets)


def methods(at: RowContext) -> Iterator[RowContext]:
    """Yield the methods one by one."""
    return (replace(at, methods=[method]) for method in at.methods)


def groups(at: RowContext) -> Iterator[RowContext]:
    """Yield the groups of methods."""
    return (replace(at, methods=list(group)) for _, group in groupby(at.methods, key=lambda method: method.group))


def families(at: RowContext) -> Iterator[RowContext]:
    """Yield the content families of the data set."""
    subsets = {
        key.subset for key in at.values if key.dataset == at.dataset.name and key.subset.startswith(FAMILY_PREFIX)
    }
    return (replace(at, subset=subset) for subset in sorted(subsets))


class Label(NamedTuple):
    """A column of labels: its head, what stands beside the rows of a member, its alignment, and a title above it."""

    head: str
    text: Callable[[RowContext], Entry]
    alignment: str = "l"
    title: str = ""


METHOD = Label("Method", lambda at: at.method.label)
COST = Label("Cost", lambda at: notation(at.method.cost) if at.method.cost else DASH)  # where the paper gives one


def notation(cost: str) -> str:
    r"""Return a cost of a study's config, such as $t+2\rho$, as a text: 𝑡+2ρ."""
    return cost.strip("$").replace(r"\rho", "ρ").replace(r"\tau", "τ").replace("t", "𝑡")


class RowLevel(NamedTuple):
    """One level of a table's rows, of which the innermost has one row per member."""

    over: Callable[[RowContext], Iterable[RowContext]]  # yields its members
    labels: Sequence[Label] = ()  # columns of labels, each of which stands once beside all rows of a member
    heading: Callable[[RowContext], str] | None = None  # a line above the rows of a member
    gap: Gap | None = None  # what separates two members


# The levels of most tables: blocks of backbones, and one row per method.
BACKBONES = RowLevel(backbones, heading=lambda at: at.backbone.label, gap=Gap.RULE)
METHODS = RowLevel(methods, [METHOD])
# Where each backbone has a table of its own.
DATASETS = RowLevel(datasets, heading=lambda at: f"{at.backbone.label}, {at.dataset.label}", gap=Gap.SPACE)


class SheetColumn(NamedTuple):
    """A column of values."""

    head: str | tuple[str, ...]  # of one line or of several
    metrics: Sequence[Metric]  # what one cell prints: mostly one metric, see `column`
    part: Mapping[str, str] = {}  # what the column adds to the keys of its values
    place: LabeledDataset | None = None  # the data set, or `OOD`; without it, that at which a row stands
    title: str | tuple[str, ...] = ""  # above it and its neighbors with the same title; of several lines from the top
    form: Callable[..., Entry] = lambda entry: entry  # makes one cell of the entries of several metrics


# Metrics with their own heads, or {metric: another head}; a head of several lines is a tuple. (As a key, a class of
# metrics is not its base class.)
Metrics = Sequence[Metric] | Mapping[Any, str | tuple[str, str] | None]


def column(metric: Metric, head: str | tuple[str, ...] | None = None, title: str = "", **part: str) -> SheetColumn:
    """Return a column of one metric. An arrow at its head says what is better."""
    if isinstance(head, tuple):
        filled = [k for k, line in enumerate(head) if line]
        head = tuple(metric.headed(line) if k == filled[-1] else line for k, line in enumerate(head))
    else:
        head = metric.headed(head)
    return SheetColumn(head, [metric], part, None, title)


def columns_here(metrics: Metrics, title: str = "") -> list[SheetColumn]:
    """Return the columns of some metrics where a row stands."""
    heads = metrics if isinstance(metrics, Mapping) else dict.fromkeys(metrics)
    return [column(metric, head, title) for metric, head in heads.items()]


def columns_of(shown: Iterable[LabeledDataset], metrics: Metrics) -> list[SheetColumn]:
    """Return the columns of some metrics on each of some data sets, whose labels are titles."""
    return [column._replace(place=place) for place in shown for column in columns_here(metrics, place.label)]


def target_percents(values: Mapping[Key, Value], prefix: str) -> list[int]:
    """Return the target risks, in percent, that end the names of the metrics with this prefix."""
    return sorted({int(key.metric.removeprefix(prefix)) for key in values if key.metric.startswith(prefix)})


def further(values: Mapping[Key, Value]) -> list[Metric]:
    """Return the further metrics of which there are values: those that the study names."""
    known = {key.metric for key in values}
    return [metric for name, metric in FURTHER_METRICS.items() if name in known]


def places(layout: Layout) -> list[LabeledDataset]:
    """Return the data sets of the layout, the in-distribution one first, and `OOD`."""
    return [layout.id_dataset, *(dataset for dataset in layout.datasets if not dataset.id), OOD]


def dataset_of(place: LabeledDataset, metric: Metric) -> str:
    """Return the name under which a metric of the data set is found: that of its own mean for `OOD`."""
    return metric.ood_mean if place is OOD else place.name


def head_of(at: RowContext, labels: Sequence[Label], columns: Sequence[SheetColumn]) -> list[Line]:
    """Return the rows above the body: titles where there are some, and the heads of the columns."""
    titles = [column.title if isinstance(column.title, tuple) else (column.title,) for column in (*labels, *columns)]
    depth = max(map(len, titles), default=0)
    levels = zip(*(("",) * (depth - len(title)) + title for title in titles), strict=True)
    heads = [column.head if isinstance(column.head, tuple) else (column.head,) for column in columns]
    lines = zip(*heads, strict=True) if heads else [()]
    return [
        *(row for level in levels if (row := _titles(level))),
        *(TableRow([*(label.head if k == 0 else "" for label in labels), *line]) for k, line in enumerate(lines)),
    ]


def _titles(titles: Sequence[str]) -> TableRow | None:
    spans = [(title, len(list(group))) for title, group in groupby(titles)]
    while spans and not spans[-1][0]:
        spans.pop()
    n_before = spans.pop(0)[1] if spans and not spans[0][0] else 0
    return TableRow([*[""] * n_before, *(Over(*span) for span in spans)], ruled=True) if spans else None


class _Lines(NamedTuple):
    lines: list[Line]
    cells: list[Cell]


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table that `columns` and `rows` describe; called with values and a layout, it returns the table."""

    name: str  # that of its file
    rows: Sequence[RowLevel]  # from the outermost level to the innermost
    columns: Callable[[RowContext], Sequence[SheetColumn]]
    # The first sentences of the caption; those that explain marks in the body are added.
    caption: Callable[[RowContext], Sequence[str]]
    # What each has a float of its own, with its own caption; and the end of its LaTeX label, where there are several.
    floats: Callable[[RowContext], Iterable[RowContext]] = lambda at: [at]
    label: Callable[[RowContext], str] | None = None
    alignment: str = "c"  # the letter of a column of values
    wide: bool = True  # as in `Float`, and the next two
    small: bool = False
    specification: str | None = None
    # Metrics for which all methods of an actor have the same value. It is printed in the first of their rows.
    shared: Sequence[Metric] = ()
    # Values that the table computes from others, unless these have them.
    derived: Callable[[Mapping[Key, Value], Layout], Mapping[Key, Value]] = lambda values, layout: {}
    # A cell; None where it is blank.
    cell: Callable[[RowContext, Metric, Key], Cell | None] = lambda at, metric, key: compared_cell(
        metric, key, at.values, at.layout.methods
    )
    # The rows above the body.
    head: Callable[[RowContext, Sequence[Label], Sequence[SheetColumn]], list[Line]] = head_of
    # The columns of the CSV file, which says more of values of a contrasts table (`READS`).
    csv: Mapping[str, Any] = field(default_factory=lambda: METRICS_CSV)

    def __call__(self, values: Mapping[Key, Value], layout: Layout) -> PrintedTable:
        """Return the table of `values`, ours or the published ones.

        Raises:
            ArtifactError: Methods of one actor disagree on what they share.
        """
        values = ChainMap(values, self.derived(values, layout))  # type: ignore[arg-type]  # nothing writes to it
        first = RowContext(
            values=values,
            layout=layout,
            backbone=layout.backbones[0],
            dataset=layout.id_dataset,
            methods=layout.methods,
        )
        floats, printed = [], []
        for at in self.floats(first):
            columns = self.columns(at)
            labels = [label for by in self.rows for label in by.labels]
            body = self._body(at, self.rows, columns, len(labels) + len(columns))
            printed += body.cells
            floats.append(
                Float(
                    name=self.name,
                    label=f"{self.name}:{self.label(at)}" if self.label else None,
                    wide=self.wide,
                    small=self.small,
                    columns="".join(label.alignment for label in labels) + self.alignment * len(columns),
                    specification=self.specification,
                    head=self.head(at, labels, columns),
                    body=body.lines,
                    caption=layout.in_units(" ".join([*self.caption(at), *notes(body.cells, layout, self.name)])),
                )
            )
        return PrintedTable(floats=floats, cells=csv_rows(self.name, printed, self.csv))

    def _body(
        self, at: RowContext, levels: Sequence[RowLevel], columns: Sequence[SheetColumn], n_columns: int
    ) -> _Lines:
        if not levels:
            return self._row(at, columns)
        (by, *inner), body = levels, _Lines([], [])
        for member in by.over(at):
            lines, cells = self._body(member, inner, columns, n_columns)
            lines = _beside([label.text(member) for label in by.labels], lines)
            heading = [Heading(by.heading(member), n_columns)] if by.heading else []
            body.lines.extend([*([by.gap] if by.gap and body.lines else []), *heading, *lines])
            body.cells.extend(cells)
        return body

    def _row(self, at: RowContext, columns: Sequence[SheetColumn]) -> _Lines:
        entries, cells = [], []
        for column in columns:
            cells_of_column = []
            for metric in column.metrics:
                part = {"dataset": dataset_of(column.place or at.dataset, metric), **column.part}
                cells_of_column.append(self._cell(at, metric, at.key._replace(**part, metric=metric.name)))
            entries.append(column.form(*(cell.entry if isinstance(cell, Cell) else cell for cell in cells_of_column)))
            cells += [cell for cell in cells_of_column if isinstance(cell, Cell)]
        return _Lines([TableRow(entries)], cells)

    def _cell(self, at: RowContext, metric: Metric, key: Key) -> Cell | str:
        """Return a cell, or the text that stands in its place."""
        if (cell := self.cell(at, metric, key)) is None:
            return ""
        if metric in self.shared:
            shown = at.layout.methods
            start = end = next(k for k, method in enumerate(shown) if method.name == key.method)
            if start and shown[start - 1].actor == at.method.actor:
                return DITTO
            while end < len(shown) and shown[end].actor == at.method.actor:
                end += 1
            return mean_cell(metric, key, _agreed(at.values, key, [method.name for method in shown[start:end]]))
        return cell


def _beside(texts: Sequence[Entry], lines: list[Line]) -> list[Line]:
    """Return the lines with labels before their first row, which stand beside all rows."""
    if not (rows := [line for line in lines if isinstance(line, TableRow)]):
        return lines  # a member without rows
    labels, blanks = [_label(text, rows) for text in texts], [""] * len(texts)
    return [
        TableRow([*(labels if line is rows[0] else blanks), *line.cells]) if isinstance(line, TableRow) else line
        for line in lines
    ]


def _label(text: Entry, rows: Sequence[TableRow]) -> Entry:
    if not isinstance(text, str) or not text:
        return text
    if len(rows) > 1:
        return Beside(text, len(rows))
    return Raised(text) if any(isinstance(entry, TwoLines) for entry in rows[0].cells) else text


def _agreed(values: Mapping[Key, Value], key: Key, methods: Sequence[str]) -> Value:
    """Return the value that methods of the same answers share."""
    value_by_method = {method: value_of(values, key._replace(method=method)) for method in methods}
    defined = {method: value for method, value in value_by_method.items() if value.mean is not None}
    for method, value in defined.items():
        first, shared = next(iter(defined.items()))
        if (value.mean, value.std) != (shared.mean, shared.std):
            raise ArtifactError(
                f"{key.metric} of {method} on {key.dataset} is {value.mean}, of {first} {shared.mean}; methods of one"
                " actor judge the same answers. Compute the metrics of this actor again."
            )
    return next(iter(defined.values()), value_by_method[key.method])
