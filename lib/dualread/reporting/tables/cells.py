"""The cells of a table (value, printed text, bold where it is the best of its column), and the finished table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from dualread.evaluation.answer_metrics import IMAGES_WITH_RIGHT, IMAGES_WITH_WRONG, IMPUTED_SHARE
from dualread.evaluation.controls import OF_FORCED_CLAIMS
from dualread.evaluation.metric import AnswerMetric, Metric
from dualread.evaluation.metrics.grounding import ENOUGH_IMAGES, MINIMUM_IMAGES
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC, PAIR_METRICS, STRICT_CCG_AUC
from dualread.evaluation.without_confidences import WITHOUT_PROBABILITIES
from dualread.reporting.tables._html import html_table
from dualread.reporting.tables._latex import latex_table
from dualread.reporting.tables.entries import DASH, Float, Inline, Number, TwoLines, plain
from dualread.reporting.tables.values import Key, Value, number, printed, rounded
from dualread.schema.tables import NULL_GROUP, LabeledMethod, Layout

_BY_CHANCE = (
    "°\N{NO-BREAK SPACE}An ECE that calibrated confidences reach by chance, in every seed: on these {units}, it is not "
    "above the 95th percentile of theirs. Means over data sets have no such mark."
)

FORCED = (
    "Fixed prefix: CCG-AUC of claims that are supported on the source image and not on the donor's, on which the same "
    "report is forced. Both: of claims that are supported on both."
)
_SCORES = "Of a method that is not calibrated only the order of scores counts: it has no metric of probabilities."

# A method without a confidence in more than this share of the answers is not compared with others.
MOST_IMPUTED = 0.9
_PASSED_OVER = (
    rf"Never bold beside others: values of methods without a confidence in more than {100 * MOST_IMPUTED:.0f}% of the "
    "answers, and of actors whose right answers (for AUROC and AURC, or their wrong ones) are about fewer than "
    f"{MINIMUM_IMAGES} {{units}}."
)

# The columns of the CSV file of a table of metrics, and of one of contrasts.
METRICS_CSV: Mapping[str, Any] = {
    **dict.fromkeys(("table", "backbone", "dataset", "subset", "method", "metric"), pl.String),
    **dict.fromkeys(("mean", "std"), pl.Float64),
    "n_seeds": pl.Int64,
    "printed": pl.String,
    "bold": pl.Boolean,
    "reason": pl.String,
}
CONTRASTS_CSV: Mapping[str, Any] = {
    "table": pl.String,
    **dict.fromkeys(("backbone", "contrast", "dataset", "split", "metric", "method", "baseline"), pl.String),
    **dict.fromkeys(("mean", "std"), pl.Float64),
    "n_seeds": pl.Int64,
    **dict.fromkeys(("low", "high", "low_retrained", "high_retrained"), pl.Float64),
    "p": pl.Float64,
    "p_at_most": pl.Boolean,
    "p_holm": pl.Float64,
    "p_holm_at_most": pl.Boolean,
    **dict.fromkeys(("p_retrained", "p_holm_retrained"), pl.Float64),
    **dict.fromkeys(("n", "n_clusters", "n_undefined"), pl.Int64),
    **dict.fromkeys(("short", "printed", "reason"), pl.String),
}


def on_donors(values: Iterable[Key], natural: str | None, strict: str | None) -> dict[Metric, str | None]:
    """Return the CCG-AUCs by which methods are compared: of answers, with these heads, or of claims."""
    if OF_FORCED_CLAIMS[0].name in {key.metric for key in values}:
        return dict.fromkeys(OF_FORCED_CLAIMS)
    return {NATURAL_CCG_AUC: natural, STRICT_CCG_AUC: strict}


@dataclass(frozen=True, kw_only=True)
class PrintedTable:
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


class Cell(NamedTuple):
    """A value and its entry. `passed_over`: the value would be bold if it rested on more answers."""

    key: Key
    value: Value
    entry: Inline | TwoLines
    passed_over: bool = False

    @property
    def printed(self) -> str:
        """The entry as the CSV file has it."""
        return plain(self.entry)

    @property
    def bold(self) -> bool:
        """Whether the entry is a bold number."""
        return isinstance(self.entry, Number) and self.entry.is_bold


def of_contrasts(contrasts: pl.DataFrame) -> dict[Key, Value]:
    """Return the differences of a contrasts table, and the methods' own values on test sets."""
    rows = contrasts.filter(pl.col("contrast").is_not_null() | (pl.col("split") == "test"))
    return {
        Key(**{"subset": "all", **{name: row[name] for name in Key._fields if name != "subset"}}): Value(
            mean=row["estimate"],
            std=row["seed_std"],
            n_runs=row["n_seeds"],
            n=row["n"],
            short=tuple(row["short"].split(" and ")) if row["short"] else (),
            reason=row["reason"],
            row=row,
        )
        for row in rows.iter_rows(named=True)
    }


def value_of(values: Mapping[Key, Value], key: Key) -> Value:
    """Return the value of `key`; where it is missing, a value without a mean, with the reason."""
    missing = Value(mean=None, std=None, n_runs=0, n=None, reason="not among the study's metrics")
    return values.get(key, missing)


def size_of(values: Mapping[Key, Value], keys: Iterable[Key]) -> int | None:
    """Return the number of rows behind each of these values; None where they differ or no value exists."""
    sizes = {values[key].n for key in keys if key in values}
    return sizes.pop() if len(sizes) == 1 else None


def mean_cell(metric: Metric, key: Key, value: Value, *, bold: bool = False) -> Cell:
    """Return the cell of a mean over seeds with its deviation."""
    return Cell(key, value, printed(value, metric.digits, sign=metric.is_difference, bold=bold))


def compared_cell(metric: Metric, key: Key, values: Mapping[Key, Value], methods: Iterable[LabeledMethod]) -> Cell:
    """Return the cell of a mean, bold if it is the best printed value of `methods`, of which several may tie.

    What all methods of an actor share is never bold, such as accuracy, and neither is a null method. Values that rest
    on next to no answers (`_says_little`) are compared only with each other.
    """
    value = value_of(values, key)
    if metric.better is None or metric.is_of_actor:
        return mean_cell(metric, key, value)
    sign = 1.0 if metric.better == "higher" else -1.0
    by_method = {
        method.name: sign * rounded(mean)
        for method in methods
        if method.group != NULL_GROUP and (mean := value_of(values, key._replace(method=method.name)).mean) is not None
    }
    little = {name for name in by_method if _says_little(values, metric, key._replace(method=name))}
    compared = {name: value for name, value in by_method.items() if name not in little} or by_method
    if key.method not in by_method or by_method[key.method] < max(compared.values()):
        return mean_cell(metric, key, value)
    cell = mean_cell(metric, key, value, bold=key.method in compared)
    return cell._replace(passed_over=not cell.bold)


def _says_little(values: Mapping[Key, Value], metric: Metric, key: Key) -> bool:
    """Return whether a value rests on next to no answers."""
    # Few images make a rank a matter of chance and a Brier score easy; with nearly all confidences missing, the imputed
    # one is judged. A mean over data sets does not know its images.
    of_answers = key.dataset if key.dataset != metric.ood_mean else IMPUTED_SHARE.ood_mean
    imputed = value_of(values, key._replace(dataset=of_answers, metric=IMPUTED_SHARE.name)).by_seed.values()
    if any(share > MOST_IMPUTED for share in imputed):
        return True
    if not isinstance(metric, AnswerMetric):
        return False  # the dagger of a CCG value says so
    sides = (IMAGES_WITH_RIGHT, IMAGES_WITH_WRONG) if metric.is_of_ranks else (IMAGES_WITH_RIGHT,)
    image_counts = (value_of(values, key._replace(metric=side.name)).by_seed.values() for side in sides)
    return any(n_images < MINIMUM_IMAGES for of_side in image_counts for n_images in of_side)


def csv_rows(table: str, cells: Iterable[Cell], columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return one row per printed cell: the values with full precision, and the printed text."""
    rows = []
    for cell in cells:
        of_value = {"mean": cell.value.mean, "std": cell.value.std, "n_seeds": cell.value.n_runs}
        of_cell = {"table": table, "printed": cell.printed, "bold": cell.bold, "reason": cell.value.reason}
        known = {**cell.value.row, **cell.key._asdict(), **of_value, **of_cell}
        rows.append({name: known.get(name) for name in columns})
    return pl.DataFrame(rows, schema=columns)


def notes(cells: Sequence[Cell], layout: Layout, name: str) -> list[str]:
    """Return the sentences that explain marks which occur in the table, and what its CSV file adds."""
    of_donors = {cell.key.dataset for cell in cells if cell.key.metric in PAIR_METRICS}
    by_role = [dataset for dataset in layout.datasets if dataset.role and dataset.name in of_donors]
    weak = [cell.value for cell in cells if "†" in cell.printed]
    sentences = _few_images(
        (side for value in weak for side in value.short), [value.detectable for value in weak if value.detectable]
    )
    sentences += [f"On {dataset.label}, donors exchange the {dataset.role} image alone." for dataset in by_role]
    if most := max((cell.value.ties for cell in cells if cell.value.ties), default=0.0):
        sentences.append(f"Of the pairs behind a value, up to {most:.0%} are ties.")
    if any(cell.value.by_chance for cell in cells):
        sentences.append(_BY_CHANCE)
    if any(cell.passed_over for cell in cells):
        sentences.append(_PASSED_OVER)
    if any(WITHOUT_PROBABILITIES in (cell.value.reason or "") for cell in cells):
        sentences.append(_SCORES)
    if any(cell.entry == DASH for cell in cells):
        sentences.append(f"{DASH}: undefined or not measured; {name}.csv has the reason.")
    if any(cell.value.row.get("n_undefined") for cell in cells):
        sentences.append(f"Resamples in which a value is undefined are left out; {name}.csv counts them.")
    return sentences


def _few_images(sides: Iterable[str], detectable: Sequence[float] = ()) -> list[str]:
    """Return the sentences that explain the daggers of a table; `sides` are those with few images, maybe repeated."""
    if not (short_sides := sorted(set(sides), reverse=True)):
        return []
    named = " or ".join(f"{side} {{units}} ({side[0]})" for side in short_sides)
    few = f"†\N{NO-BREAK SPACE}Underpowered: the decisive pairs have fewer than {MINIMUM_IMAGES} distinct {named}."
    if detectable:
        ends = sorted({number(value) for value in (min(detectable), max(detectable))})
        few += f" Such samples tell a CCG-AUC of {' to '.join(ends)} from .500 (power .8)."
    return [few, f"It takes about {ENOUGH_IMAGES} {{units}} on both sides to tell .600 from .500."]
