"""What a division of reports into claims is given, what it has to provide, and how that is checked.

A plugin is a module with `spans(reports, settings, source) -> list[list[Span]]`: for each report, the claims as (start,
end) in characters of the completion's text, ascending and without overlap; a report without a claim has an empty list.
The reports are all those of one shard. `settings` is the plugin's class `Settings`, or `schema.base.NoSettings`. If it
has the setting `path`, that file of the study is read as a table, and `source` is its rows; otherwise it is None. Of a
report that `dualread serve` streams, it is given again and again what stands behind the claims that were told: there,
`Report.start` is where the last one ends, and the claims behind it must be those of the whole report.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import polars as pl

from dualread.errors import DataError
from dualread.grading.parse import answer_span, block_span, text_after_thinking

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Report:
    """A completion that is a report.

    Attributes:
        sample_id: The question that it answers.
        text: The completion.
        start: The first character of the part that holds claims: the answer block's inside, without white space at the
            ends, or where there is no valid answer block, all of the text after the thinking. Thinking that never ends
            leaves nothing, and neither does an empty answer block.
        end: The character after its last one.
    """

    sample_id: str
    text: str
    start: int
    end: int

    @classmethod
    def of(cls, sample_id: str, text: str, thinking_ends: str | None) -> "Report":
        """Return the report of a completion; `thinking_ends` as in `parse.answer_span`."""
        if block := answer_span(text, thinking_ends):
            return cls(sample_id=sample_id, text=text, start=block[0], end=block[1])
        after = text_after_thinking(text, thinking_ends) or ""
        if (inside := block_span(after, "answer")) and not after[slice(*inside)].strip():
            after = ""
        return cls(sample_id=sample_id, text=text, start=len(text) - len(after), end=len(text))


def divided(
    module: ModuleType,
    texts: Iterable[tuple[str, str]],
    settings: Any,
    source: pl.DataFrame | None,
    thinking_ends: str | None,
    where: str,
) -> list[list[Span]]:
    """Return the claims of completions, (sample_id, text) each, as a plugin divides them; errors name `where`.

    `source` has the rows of the table that it reads, if it reads one; `thinking_ends` is None where completions do not
    think. A DataError says that the table or the claims are not as expected.
    """
    reports = [Report.of(sample_id, text, thinking_ends) for sample_id, text in texts]
    return checked_spans(reports, module.spans(reports, settings, source), where)


def checked_spans(reports: Sequence[Report], spans: Sequence[Sequence[Span]], where: str) -> list[list[Span]]:
    """Return what a plugin says of reports; a DataError names claims that overlap, lie outside, or are empty."""
    if len(spans) != len(reports):
        raise DataError(f"{where}: {len(spans)} lists of claims for {len(reports)} reports. Expected one per report.")
    for report, of_report in zip(reports, spans, strict=True):
        before = 0
        for k, (start, end) in enumerate(of_report):
            if not before <= start < end <= len(report.text):
                raise DataError(
                    f"{where}: {report.sample_id}: claim {k} is from character {start} to {end}, after one that ends at"
                    f" {before}, in a text of {len(report.text)}. Expected claims inside the text, in its order, and"
                    " none that overlap."
                )
            before = end
    return [[(start, end) for start, end in of_report] for of_report in spans]


def rows_of(source: pl.DataFrame | None, required: Iterable[str], optional: Iterable[str], what: str) -> list[dict]:
    """Return the rows of a table that a study names, as texts; cells that are empty are None.

    `required` columns have a value in every row, `optional` ones may be there, others are ignored. A DataError, which
    calls the table `what`, says which column or value is missing. Without a table there are no rows.
    """
    if source is None:
        return []
    if lacking := [name for name in required if name not in source.columns]:
        found = ", ".join(source.columns)
        raise DataError(f"{what}: has no column {', '.join(lacking)}, only {found}. Add it, or rename one.")
    names = [*required, *(name for name in optional if name in source.columns)]
    table = source.select(pl.col(name).cast(pl.String) for name in names)
    rows = [{name: value or None for name, value in row.items()} for row in table.iter_rows(named=True)]
    for number, row in enumerate(rows, start=1):
        if empty := [name for name in required if row[name] is None]:
            raise DataError(f"{what}: row {number}: has no {', '.join(empty)}. Expected a value in every row.")
    return rows
