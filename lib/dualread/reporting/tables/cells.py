"""The cells of a table (value, printed text, bold where it is the best of its column), and the finished table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import polars as pl

from dualread.declared.tables import NULL_GROUP, LabeledMethod
from dualread.errors import ArtifactError
from dualread.reporting.tables._captions import BY_CHANCE, few_images
from dualread.reporting.tables._html import html_table
from dualread.reporting.tables._latex import DITTO, escape, latex_table
from dualread.reporting.tables._structure import Float
from dualread.reporting.tables.format import latex, plain, rounded
from dualread.reporting.tables.values import Key, Value

# +1 where higher is better, -1 where lower is better. A metric that is not listed is never bold.
_SIGN = {
    **dict.fromkeys(("auroc", "natural_ccg_auc", "strict_ccg_auc"), 1.0),
    **dict.fromkeys(("fixed_prefix_ccg_auc", "strict_same_answer_ccg_auc", "shuffled_auroc", "shuffled_ccg_auc"), 1.0),
    **dict.fromkeys(("ece15", "brier", "aurc", "hce90"), -1.0),
}

_CSV = {
    "table": pl.String,
    "backbone": pl.String,
    "dataset": pl.String,
    "subset": pl.String,
    "method": pl.String,
    "metric": pl.String,
    "mean": pl.Float64,
    "std": pl.Float64,
    "n_seeds": pl.Int64,
    "printed": pl.String,
    "bold": pl.Boolean,
    "reason": pl.String,
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A finished table: what it shows, and one row per printed cell with the full precision behind it."""

    floats: Sequence[Float]
    cells: pl.DataFrame

    @property
    def tex(self) -> str:
        """The table as LaTeX."""
        return "\n".join(map(latex_table, self.floats))

    @property
    def html(self) -> str:
        """The table as HTML: one <table> per float, with an empty line between two."""
        return "\n\n".join(map(html_table, self.floats))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One printed cell; `signed` is true for a difference, which is printed with its sign."""

    key: Key
    value: Value
    bold: bool
    digits: int = 3
    signed: bool = False

    @property
    def text(self) -> str:
        """What the table prints, in LaTeX's notation."""
        return latex(self.value, bold=self.bold, digits=self.digits, sign=self.signed)


def column_cells(
    values: Mapping[Key, Value],
    *,
    backbone: str,
    dataset: str,
    metric: str,
    methods: Sequence[LabeledMethod],
    subset: str = "all",
    digits: int = 3,
) -> dict[str, Cell]:
    """Return the cells of one column of one backbone's block by method; the best printed value is bold.

    Ties at the printed precision are all bold; accuracy and the null methods never are.
    """
    found = {method.name: value_of(values, Key(backbone, dataset, subset, method.name, metric)) for method in methods}
    sign = _SIGN.get(metric)
    printed = {
        method.name: sign * rounded(mean)
        for method in methods
        if sign is not None and method.group != NULL_GROUP and (mean := found[method.name].mean) is not None
    }
    best = max(printed.values(), default=None)
    return {
        name: Cell(
            key=Key(backbone, dataset, subset, name, metric),
            value=value,
            bold=best is not None and printed.get(name) == best,
            digits=digits,
        )
        for name, value in found.items()
    }


def column_texts(
    cells: Mapping[str, Cell], methods: Sequence[LabeledMethod], *, shared: bool
) -> dict[str, tuple[list[Cell], str]]:
    """Return what one column adds to the row of each method: cells for the CSV, and the printed text.

    Args:
        cells: The column's cells by method.
        methods: In the order of the rows.
        shared: Whether all methods of an actor have the same value, as for accuracy. Then the first of them in
            the order of the rows prints it, and those below print ditto marks.

    Raises:
        ArtifactError: Methods of one actor disagree on what they share.
    """
    if not shared:
        return {method.name: ([cells[method.name]], cells[method.name].text) for method in methods}
    texts: dict[str, tuple[list[Cell], str]] = {method.name: ([], DITTO) for method in methods}
    for _, run in groupby(methods, key=lambda method: method.actor):
        names = [method.name for method in run]
        cell = _agreed([cells[name] for name in names])
        texts[names[0]] = ([cell], cell.text)
    return texts


def csv_rows(table: str, cells: Iterable[Cell]) -> pl.DataFrame:
    """Return one row per printed cell, in the order given."""
    rows = [
        {
            "table": table,
            **cell.key._asdict(),
            "mean": cell.value.mean,
            "std": cell.value.std,
            "n_seeds": cell.value.n_runs,
            "printed": plain(cell.value, cell.digits, sign=cell.signed),
            "bold": cell.bold,
            "reason": cell.value.reason,
        }
        for cell in cells
    ]
    return pl.DataFrame(rows, schema=_CSV)


def notes(printed: list[Cell], name: str) -> list[str]:
    """Return the sentences that explain marks which occur in the table."""
    weak = [cell.value for cell in printed if cell.value.short]
    sentences = few_images(
        (side for value in weak for side in value.short), [value.detectable for value in weak if value.detectable]
    )
    if most := max((cell.value.ties for cell in printed if cell.value.ties), default=0.0):
        sentences.append(rf"Of the pairs behind a value, up to {most:.0%} are ties.".replace("%", r"\%"))
    if any(cell.value.by_chance for cell in printed):
        sentences.append(BY_CHANCE)
    if any(cell.value.mean is None for cell in printed):
        sentences.append(f"---: undefined or not measured; {escape(name)}.csv has the reason.")
    return sentences


def value_of(values: Mapping[Key, Value], key: Key) -> Value:
    """Return the value of `key`; where it is missing, a value without a mean, with the reason."""
    missing = Value(mean=None, std=None, n_runs=0, n=None, reason="not among the study's metrics")
    return values.get(key, missing)


def size_of(values: Mapping[Key, Value], keys: Iterable[Key]) -> int | None:
    """Return the number of rows behind each of these values; None where they differ or no value exists."""
    sizes = {values[key].n for key in keys if key in values}
    return sizes.pop() if len(sizes) == 1 else None


def _agreed(cells: Sequence[Cell]) -> Cell:
    """Return the cell that methods of the same answers share, under the name of the first method."""
    defined = [cell for cell in cells if cell.value.mean is not None]
    for cell in defined[1:]:
        if (cell.value.mean, cell.value.std) != (defined[0].value.mean, defined[0].value.std):
            raise ArtifactError(
                f"{cell.key.metric} of {cell.key.method} on {cell.key.dataset} is {cell.value.mean}, of "
                f"{defined[0].key.method} {defined[0].value.mean}; methods of one actor judge the same answers. "
                "Compute the metrics of this actor again."
            )
    return Cell(key=cells[0].key, value=defined[0].value if defined else cells[0].value, bold=False)
