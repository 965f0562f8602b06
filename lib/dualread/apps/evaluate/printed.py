"""How an evaluation is printed: numbers, sentences and tables of values, for a page, and for a screen or all of it."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from dualread.apps.evaluate.evaluation_data import EvaluationData
from dualread.apps.text import aligned
from dualread.evaluation.answer_metrics import ACCURACY, AURC, AUROC, ECE
from dualread.evaluation.pair_metrics import NATURAL_CCG_AUC

WIDTH = 100
MOST_ROWS = 12  # of a table on the screen, which leave room for what is said of them, on 24 lines
GOOD, BAD, UNCLEAR = "good", "bad", ""
# The numbers of each method that come first.
SHOWN = {
    ACCURACY.name: "share of correct answers",
    AUROC.name: "right and wrong answers told apart",
    ECE.name: "calibration error, 15 bins",
    AURC.name: "error rate as answers are left out",
    NATURAL_CCG_AUC.name: "confidence follows the image",
}


def number(value: float | None, digits: int = 3) -> str:
    """Return a number without a leading zero, and a whole one without decimals: .812, -.030, 1; a dash for None."""
    if value is None:
        return "-"
    if float(value).is_integer():
        return str(int(value))
    text = f"{value:.{digits}f}"
    sign = "-" if text.startswith("-") and float(text) != 0.0 else ""
    return sign + text.removeprefix("-").removeprefix("0")


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its interval, None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def text(self, digits: int = 3, end_digits: int = 3) -> str:
        """Return the number, and [low, high]."""
        ends = (self.low, self.high)
        shown = "" if None in ends else f" [{', '.join(self._number(end, end_digits) for end in ends)}]"
        return self._number(self.value, digits) + shown

    __str__ = text

    def _number(self, value: float | None, digits: int) -> str:
        return number(value, digits)


class Difference(Estimate):
    """A difference, which has a sign where it is not 0."""

    def _number(self, value: float | None, digits: int) -> str:
        text = number(value, digits)
        return text if value is None or text.startswith("-") or float(text) == 0.0 else f"+{text}"


@dataclass(frozen=True)
class PValue:
    """A p-value, and whether the resamples can say no more than "at most"."""

    value: float | None
    at_most: bool | None

    def __str__(self) -> str:
        """Return it with three digits."""
        return "-" if self.value is None else f"{'<=' if self.at_most else ''}{self.value:.3g}"


Cell = str | float | Estimate | PValue | None


def text_of(cell: Cell, digits: int, end_digits: int) -> str:
    """Return a cell as text; numbers have so many digits, and ends of intervals so many."""
    if isinstance(cell, str | PValue):
        return str(cell)
    return cell.text(digits, end_digits) if isinstance(cell, Estimate) else number(cell, digits)


def cut(text: str, width: int = WIDTH) -> str:
    """Return a text of at most `width` characters."""
    return text if len(text) <= width else f"{text[: max(width - 3, 0)]}..."


def wrapped(texts: Iterable[str]) -> Iterator[str]:
    """Yield sentences in lines of at most `WIDTH` characters; a longer word, such as a path, stays whole."""
    how = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
    for text in texts:
        yield from textwrap.wrap(text, WIDTH, **how) or [""]


@dataclass(frozen=True)
class ScreenLine:
    """A line of the screen and its kind; what a terminal may color is its text from `start` on."""

    text: str
    kind: str = UNCLEAR
    start: int = 0


@dataclass(frozen=True, kw_only=True)
class ReportTable:
    """A table of values."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]  # the cells of each row
    remarks: Sequence[str] = ()  # what is remarked on each row, "" for nothing; empty if there are none
    names: Collection[int] = (0,)  # columns of names, which are cut where a line has no room for them
    notes: Sequence[str] = ()  # sentences about it
    brief: Collection[str] | None = None  # what the rows that one screen shows begin with; None for all rows

    @property
    def right(self) -> set[int]:
        """The columns of plain numbers, which are aligned to the right."""
        return {k for k in range(len(self.columns)) if not any(isinstance(row[k], str | Estimate) for row in self.rows)}

    def texts(self) -> list[tuple[str, ...]]:
        """Return the heads and all rows with four digits and, as the last column, their remarks."""
        rows = [tuple(text_of(cell, 4, 4) for cell in row) for row in (self.columns, *self.rows)]
        return [(*row, remark) for row, remark in zip(rows, ("", *self.remarks), strict=True)] if self.remarks else rows

    def lines(self) -> Iterator[str]:
        """Yield all of it, however long its lines are."""
        yield from (self.caption, *aligned(self.texts(), numbers=self.right), *self.notes)

    def screen(self) -> Iterator[str]:
        """Yield its first rows in lines of at most `WIDTH` characters, and below what is remarked on them."""
        shown = [k for k, row in enumerate(self.rows) if self.brief is None or row[0] in self.brief]
        rows = [self.columns, *(self.rows[k] for k in shown[:MOST_ROWS])]
        texts = [[text_of(cell, 3, 2) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        while sum(widths) + 2 * len(widths) - 2 > WIDTH and any(widths[k] > len("...") for k in self.names):
            widths[max(self.names, key=lambda k: widths[k])] -= 1
        cells = [[cut(text, width) for text, width in zip(row, widths, strict=True)] for row in texts]
        yield from map(cut, aligned(cells, numbers=self.right))
        if len(shown) > MOST_ROWS:
            yield f"... and {len(shown) - MOST_ROWS} more"
        remarked: dict[str, dict[str, None]] = {}
        for k in shown if self.remarks else ():
            remarked.setdefault(self.remarks[k], {})[text_of(self.rows[k][0], 3, 2)] = None
        yield from wrapped(f"{', '.join(names)}: {remark}" for remark, names in remarked.items() if remark)
        yield from wrapped(self.notes)


@dataclass(frozen=True, kw_only=True)
class MethodVerdict:
    """A number of a method, and what it says in at most 12 words: something GOOD, BAD or UNCLEAR."""

    metric: str
    estimate: Estimate
    words: str
    kind: str = UNCLEAR
    by_chance: float | None = None  # of the ECE, what calibrated confidences reach by chance; it stands beside it

    @property
    def value(self) -> str:
        """The number, or a dash."""
        return number(self.estimate.value)

    @property
    def interval(self) -> str:
        """Its 95% interval, or what stands beside it; empty for nothing."""
        if self.by_chance is not None:
            return f"by chance {number(self.by_chance)}"
        ends = (self.estimate.low, self.estimate.high)
        return "" if None in ends else f"[{number(ends[0])}, {number(ends[1])}]"

    def compact(self) -> str:
        """Return it for a column of a table, the ends of the interval with two decimals: ".812 .76-.89"."""
        if self.by_chance is not None:
            return f"{self.value} (≤{number(round(self.by_chance, 3), 2)})"
        ends = [number(round(end, 3), 2) for end in (self.estimate.low, self.estimate.high) if end is not None]
        return f"{self.value} {'-'.join(ends)}".rstrip()


@dataclass(frozen=True, kw_only=True)
class DataSetReport:
    """What is said of one data set."""

    cells: EvaluationData
    heading: str  # what was evaluated
    verdicts: Mapping[str, Sequence[MethodVerdict]]  # the numbers that come first, by method
    findings: Sequence[ScreenLine]  # what they say, of which methods
    remarks: Sequence[str]  # sentences about intervals, and what has to be known to compare methods and to read metrics
    # Tables of what was asked for: differences, thresholds, filters of claims, answer sets, groups.
    asked: Sequence[ReportTable]
    metrics: Sequence[ReportTable]  # a table of every metric, and one for each answer type
    counts: Sequence[ReportTable]  # tables of counts, and of the most common pairs that count as wrong
    # What forest plots show: of the methods, under "", and of the groups of each column (`forest.VALUES`).
    forests: Mapping[str, pl.DataFrame]


@dataclass(frozen=True, kw_only=True)
class EvaluationReport:
    """What is said of an evaluation."""

    notes: Sequence[str]  # sentences about how tables were read
    parts: Sequence[DataSetReport]  # what is said of each data set
    graded: Sequence[str]  # lines about what was graded
    warnings: Sequence[str]  # sentences, those about columns that were not used the last


def everything(report: EvaluationReport) -> Iterator[str]:
    """Yield everything: all metrics, all subsets, and the counts."""
    yield from report.notes
    for part in report.parts:
        yield from (part.heading, *part.remarks)
        for table in (*part.metrics, *part.asked, *part.counts):
            yield from ("", *table.lines())
        yield ""
    yield from report.warnings


def first(report: EvaluationReport) -> Iterator[ScreenLine]:
    """Yield the lines of one screen: five numbers of each method, and what they say."""
    yield from map(ScreenLine, wrapped(report.notes))
    yield from summary(report)
    said = [text.partition("; of ")[0] for part in report.parts for text in part.remarks]
    said += [*report.warnings, "--all prints every metric, what it means, and what it rests on."]
    yield from map(ScreenLine, wrapped(dict.fromkeys(said)))


def summary(report: EvaluationReport) -> Iterator[ScreenLine]:
    """Yield the lines of all data sets, and what was graded."""
    for k, part in enumerate(report.parts):
        yield from map(ScreenLine, [*([""] if k else []), cut(part.heading)])
        yield from _numbers(part.verdicts)
        if len(part.verdicts) > 1:
            yield from (replace(line, text=cut(line.text)) for line in part.findings)
        for table in part.asked:
            yield from map(ScreenLine, ("", *table.screen()))
    yield ScreenLine("")
    for line in report.graded:
        yield from map(ScreenLine, [line] if line.startswith(" ") else wrapped([line]))


def _numbers(told: Mapping[str, Sequence[MethodVerdict]]) -> Iterator[ScreenLine]:
    """Yield the numbers of one method line by line, with what they say; of several as a table."""
    if len(told) == 1:
        for verdict in next(iter(told.values())):
            numbers = f"{verdict.metric:<16}{verdict.value:>6}  {verdict.interval:<16}  "
            yield ScreenLine(cut(numbers + verdict.words), verdict.kind, len(numbers))
        return
    metrics = list(dict.fromkeys(verdict.metric for numbers in told.values() for verdict in numbers))
    width = min(max(map(len, told), default=0), WIDTH - 16 * len(metrics))
    yield ScreenLine(f"{'method':<{width}}" + "".join(f"{name.replace('_ccg_auc', '_ccg'):>16}" for name in metrics))
    for method, of_method in list(told.items())[:MOST_ROWS]:
        cells = {verdict.metric: verdict.compact() for verdict in of_method}
        line = "".join(f"{cells.get(name, '-'):>16}" for name in metrics)
        yield ScreenLine(f"{cut(method, width):<{width}}{line}")
    if len(told) > MOST_ROWS:
        yield ScreenLine(f"... and {len(told) - MOST_ROWS} more methods")
