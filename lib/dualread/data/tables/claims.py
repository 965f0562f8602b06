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
    twice = frame.select(pl.struct(*place, REPORT, CLAIM).is_duplicated().alias("twice"))["twice"]
    shown = frame.select(pl.format("{} of {}", CLAIM, REPORT).alias("shown"))["shown"]
    expected = "expected one row per claim and method. Number the claims of a report: 0, 1, 2"
    table.refuse(CLAIM, twice, shown, expected)
    if table.has("start") or table.has("end"):
        for name in ("start", "end"):
            table.need(name, "which says with the other one where a claim is")
        # The characters of a claim begin where those of the one before it in its report end, or later.
        before = pl.col("end").shift(1).over(*place, REPORT, order_by=["start", "end", "row"])
        spans = frame.select(
            pl.format("{} to {}", "start", "end").alias("shown"),
            is_empty=pl.col("end") <= pl.col("start"),
            overlaps=(pl.col("start") < before).fill_null(False),
        )
        table.refuse("end", spans["is_empty"], spans["shown"], "expected the character after the last")
        expected = "expected spans of a report that do not overlap: this one begins before the one before it ends"
        table.refuse("start", spans["overlaps"], spans["shown"], expected)
    return table.with_column(pl.concat_str(REPORT, pl.lit("#"), CLAIM).alias("sample_id"))


def refuse_split_reports(table: CheckedTable, cluster: str | None) -> None:
    """Refuse reports whose claims are in several clusters, because they would count as independent."""
    names = [name for name in (*_PLACE, REPORT) if table.has(name)]
    several = pl.col(cluster or REPORT).n_unique().over(names) > 1
    shown = pl.format("{} of {}", cluster or REPORT, REPORT).alias("shown")
    expected = (
        "expected one per report, because its claims depend on each other. Name the patient, or the report, with"
        " --cluster NAME"
    )
    reports = table.frame.select(shown, several=several)
    table.refuse(cluster or REPORT, reports["several"], reports["shown"], expected)
