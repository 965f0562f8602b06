"""The claims are entities that a table or a service has named: one row per entity, with its place in the report.

The table has the columns `question` (the sample_id of the question that the report answers), `start` and `end` (in
characters of the completion's text, counted from 0, `end` being the character after the last one), and perhaps:

    text      the characters of the entity, which must be those that stand there
    report    the whole completion. A row counts only where the completion is the same, so that one table can name the
              entities of several actors. Without this column, each row is about every completion of its question.

Rows of other questions are ignored: a table may cover several splits. Rows may have any order, and the same entity
twice is one.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dualread.errors import DataError
from dualread.grading.spans.base import Report, Span, rows_of
from dualread.schema.base import NotEmpty, Section


class Settings(Section):
    """Where the entities are named."""

    path: NotEmpty
    """The table, relative to the repository: .csv, .tsv, .jsonl, .json or .parquet, also as .gz."""


def spans(reports: Sequence[Report], settings: Settings, source: Any) -> list[list[Span]]:
    """See `base`; a DataError names a row that is not as described above, or entities that overlap."""
    rows = rows_of(source, ("question", "start", "end"), ("text", "report"), settings.path)
    by_question: dict[str, list[tuple[int, dict]]] = {}
    for number, row in enumerate(rows, start=1):
        by_question.setdefault(row["question"], []).append((number, row))
    return [_entities(report, by_question.get(report.sample_id, ()), settings.path) for report in reports]


def _entities(report: Report, rows: Sequence[tuple[int, dict]], file: str) -> list[Span]:
    rows_by_span: dict[Span, int] = {}
    for number, row in rows:
        if row.get("report") not in (None, report.text):
            continue
        where = f"{file}: row {number}: {report.sample_id}"
        start, end = (int(row[name]) if row[name].isdecimal() else -1 for name in ("start", "end"))
        if not 0 <= start < end <= len(report.text):
            raise DataError(
                f"{where}: characters {row['start']} to {row['end']} are not inside the completion, which has"
                f" {len(report.text)}. Name the entities of this completion, or add the column `report`."
            )
        if row.get("text") not in (None, report.text[start:end]):
            raise DataError(
                f"{where}: the entity is {row['text']!r}, but characters {start} to {end} of the completion are"
                f" {report.text[start:end]!r}. Name the entities of this completion, or add the column `report`."
            )
        rows_by_span[start, end] = number
    ordered = sorted(rows_by_span)
    for (first, end), (start, last) in pairwise(ordered):
        if start < end:
            raise DataError(
                f"{file}: rows {rows_by_span[first, end]} and {rows_by_span[start, last]}: {report.sample_id}: the"
                f" entities {report.text[first:end]!r} and {report.text[start:last]!r} overlap. Keep one of them."
            )
    return ordered
