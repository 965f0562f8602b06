"""What `dualread evaluate` prints: one screen, whose lines fit 100 columns, or everything; and what `print` shows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dualread.apps.evaluate.graded import grading_lines
from dualread.apps.evaluate.printed import MOST_ROWS, WIDTH, ScreenLine, cut, number, wrapped
from dualread.apps.evaluate.report import DataSetReport
from dualread.apps.evaluate.results import Results
from dualread.apps.evaluate.verdicts import MethodVerdict


def everything(results: Results, parts: Sequence[DataSetReport]) -> Iterator[str]:
    """Yield everything: all metrics, all subsets, and the counts."""
    yield from results.notes
    for report in parts:
        yield from (report.heading, *report.remarks)
        for table in (*report.metrics, *report.asked, *report.counts):
            yield from ("", *table.lines())
        yield ""
    yield from (*results.warnings, *results.unused)


def first(results: Results, parts: Sequence[DataSetReport]) -> Iterator[ScreenLine]:
    """Yield the lines of one screen: five numbers of each method, and what they say."""
    yield from (ScreenLine(text=text) for text in wrapped(results.notes))
    yield from summary(results, parts)
    said = [text.partition("; of ")[0] for report in parts for text in report.remarks]
    said += [*results.warnings, *results.unused, "--all prints every metric, what it means, and what it rests on."]
    yield from (ScreenLine(text=text) for text in wrapped(dict.fromkeys(said)))


def summary(results: Results, parts: Sequence[DataSetReport]) -> Iterator[ScreenLine]:
    """Yield the lines of all data sets, and what was graded."""
    for k, report in enumerate(parts):
        yield from [ScreenLine(text="")] if k else []
        yield ScreenLine(text=cut(report.heading))
        yield from _numbers(report.verdicts)
        if len(report.verdicts) > 1:
            yield from (replace(line, text=cut(line.text)) for line in report.findings)
        for table in report.asked:
            yield from (ScreenLine(text=text) for text in ("", *table.screen()))
    yield ScreenLine(text="")
    for line in grading_lines(results.graded):
        yield from (ScreenLine(text=text) for text in ([line] if line.startswith(" ") else wrapped([line])))


def _numbers(told: Mapping[str, Sequence[MethodVerdict]]) -> Iterator[ScreenLine]:
    """Yield the numbers of one method line by line, with what they say; of several as a table."""
    if len(told) == 1:
        for verdict in next(iter(told.values())):
            numbers = f"{verdict.metric:<16}{verdict.value:>6}  {verdict.interval:<16}  "
            yield ScreenLine(text=cut(numbers + verdict.words), kind=verdict.kind, start=len(numbers))
        return
    metrics = list(dict.fromkeys(verdict.metric for numbers in told.values() for verdict in numbers))
    width = min(max(map(len, told), default=0), WIDTH - 16 * len(metrics))
    head = {"natural_ccg_auc": "natural_ccg"}
    yield ScreenLine(text=f"{'method':<{width}}" + "".join(f"{head.get(name, name):>16}" for name in metrics))
    for method, of_method in list(told.items())[:MOST_ROWS]:
        cells = {verdict.metric: verdict for verdict in of_method}
        line = "".join(f"{_compact(cells[name]) if name in cells else '-':>16}" for name in metrics)
        yield ScreenLine(text=f"{cut(method, width):<{width}}{line}")
    if len(told) > MOST_ROWS:
        yield ScreenLine(text=f"... and {len(told) - MOST_ROWS} more methods")


def _compact(verdict: MethodVerdict) -> str:
    """Return a value and its interval with two decimals, ".812 .76-.89"; of the ECE, what is there by chance."""
    ends = verdict.interval.removeprefix("by chance ")
    if ends == verdict.interval:
        numbers = [part.strip("[] ") for part in ends.split(",")] if ends else []
        return f"{verdict.value} {'-'.join(number(float(end), 2) for end in numbers)}".rstrip()
    return f"{verdict.value} (≤{number(float(ends), 2)})"
