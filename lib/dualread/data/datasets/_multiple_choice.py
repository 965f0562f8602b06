"""Multiple-choice questions: labels of options, and the questions with four options of which one is the gold answer."""

import re
import string
from collections.abc import Sequence

from dualread.data.datasets.base import AuditStep, Row
from dualread.grading.canonical import canonical


def askable(rows: Sequence[Row], no_gold: str) -> tuple[list[Row], list[AuditStep]]:
    """Return the rows that can be asked, in their order, and one audit step per rule.

    The rules apply one after the other: a row counts as dropped by the first rule that it breaks.

    Args:
        rows: Rows with all options that were found, and with no reference answer if no option is the gold one.
        no_gold: Why a row has no gold option; completes the sentence "dropped where ..." in the audit.
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


def unlabeled(options: Sequence[str]) -> list[str]:
    """Remove the labels "A. ...", "B. ...", if every option has its own; otherwise "C. difficile" would lose its C."""
    texts = [option.strip() for option in options]
    letters = string.ascii_uppercase
    labels = [re.match(rf"\(?{letter}\s*[.:)]\s*", text) for letter, text in zip(letters, texts, strict=False)]
    bare = [text[label.end() :] for label, text in zip(labels, texts, strict=False) if label]
    return bare if len(bare) == len(texts) else texts
