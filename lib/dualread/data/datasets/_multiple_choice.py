"""Which rows of the multiple-choice data sets stay: those whose four options are four answers, one of them gold."""

from collections.abc import Sequence

from dualread.data.datasets.base import AuditStep, Row
from dualread.grading.canonical import canonical


def askable(rows: Sequence[Row], no_gold: str) -> tuple[list[Row], list[AuditStep]]:
    """Return the rows that can be asked, in their order, and what each rule dropped; the rules apply one by one.

    Args:
        rows: Rows with as many options as were found, and without a reference answer where no option is the gold one.
        no_gold: Why such rows have no gold option, for the audit.
    """
    rules = (
        (
            "four options",
            "a question has exactly four options, each with a canonical form",
            lambda row: len(row.options) == 4 and all(map(canonical, row.options)),
        ),
        (
            "distinct options",
            "no two options have the same canonical form",
            lambda row: len(set(map(canonical, row.options))) == 4,
        ),
        ("gold option", f"dropped where {no_gold}", lambda row: len(row.reference_answers) > 0),
    )
    kept, audit = list(rows), []
    for step, reason, holds in rules:
        before, kept = len(kept), [row for row in kept if holds(row)]
        audit.append(AuditStep(step=step, kept=len(kept), dropped=before - len(kept), reason=reason))
    return kept, audit
