"""Tables whose rows are claims of reports: every claim gets a name, and is checked against the others of its report.

A claim is a span of a report, such as a sentence, with a confidence and a label of its own. Its name is the report's, a
#, and what the column `claim` says, as in a study. Where its characters are named, spans do not overlap.
"""

import polars as pl

from dualread.data.tables.checks import CheckedTable
from dualread.data.tables.contract import CLAIM, MISSING_WORDS, REPORT

_PLACE = ("method", "dataset", "split")


def named_claims(table: CheckedTable) -> CheckedTable:
    """Return the table with the report of each row, and the name of its claim as `sample_id`.

    Refused are a table without names of reports, a claim that is there twice, and spans that are empty or overlap.
    """
    if not table.has("sample_id"):
        table.need(REPORT, "nor 'sample_id', one of which names the report of each claim")
    if not table.has(REPORT):
        table = table.with_column(pl.col("sample_id").alias(REPORT))
    frame = table.frame
    for name in (CLAIM, REPORT):
        table.refuse(name, frame[name].is_in(MISSING_WORDS), frame[name], "expected a name in every row")
    place = [name for name in _PLACE if table.has(name)]
    twice = frame.filter(pl.struct(*place, REPORT, CLAIM).is_duplicated()).sort("row")
    if len(twice):
        first = twice.row(0, named=True)
        rows = twice.filter(**{name: first[name] for name in (*place, REPORT, CLAIM)})["row"].to_list()
        raise table.error(
            f"{CLAIM} {first[CLAIM]!r} of {REPORT} {first[REPORT]!r} is in rows {', '.join(map(str, rows[:5]))};"
            " expected one row per claim and method. Number the claims of a report: 0, 1, 2."
        )
    if table.has("start") or table.has("end"):
        for name in ("start", "end"):
            table.need(name, "which says with the other one where a claim is")
        _check_spans(table, frame.sort(*place, REPORT, "start", "end", "row"), [*place, REPORT])
    return table.with_column(pl.concat_str(REPORT, pl.lit("#"), CLAIM).alias("sample_id"))


def refuse_split_reports(table: CheckedTable, cluster: str | None) -> None:
    """Refuse reports whose claims are in several clusters, because they would count as independent."""
    names = [name for name in (*_PLACE, REPORT) if table.has(name)]
    clusters = table.frame.group_by(names).agg(pl.col(cluster or REPORT).unique().sort().alias("clusters"))
    if len(split := clusters.filter(pl.col("clusters").list.len() > 1).sort(names)):
        first = split.row(0, named=True)
        raise table.error(
            f"report {first[REPORT]!r} has the {cluster} {first['clusters'][0]!r} and {first['clusters'][1]!r}, and so"
            f" in {len(split)} reports; expected one per report, because its claims depend on each other. Name the"
            " patient, or the report, with --cluster NAME."
        )


def _check_spans(table: CheckedTable, ordered: pl.DataFrame, place: list[str]) -> None:
    """Refuse spans that are empty, or that begin before the one before them in the report ends."""
    shown = pl.format("{} to {}", "start", "end")
    empty = table.frame["end"] <= table.frame["start"]
    table.refuse("end", empty, table.frame.select(shown.alias("end"))["end"], "expected the character after the last")
    before = ordered.with_columns(pl.col("end", CLAIM, "row").shift(1).over(place).name.suffix("_before"))
    if len(wrong := before.filter(pl.col("start") < pl.col("end_before"))):
        first = wrong.sort("row").row(0, named=True)
        raise table.error(
            f"row {first['row']}: claim {first[CLAIM]!r} of report {first[REPORT]!r} begins at character"
            f" {first['start']}, before claim {first[f'{CLAIM}_before']!r} in row {first['row_before']} ends"
            f" ({first['end_before']}); expected spans that do not overlap. It is so in {len(wrong)} rows."
        )
