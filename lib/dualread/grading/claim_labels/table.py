"""The labels of claims are in a table: a radiologist's, or those of a model that judged them.

The table has the columns `question` (the sample_id of the question that the report answers), `text` (the claim's text)
and `label` (true, 1, yes, supported; false, 0, no, unsupported; empty where there is none), and perhaps `condition`:
what was shown, such as donor_fixed_prefix; without it, or where it is empty, the label is about the question's own
image. These are columns of claims.parquet, which every study of reports writes beside its grades: without `path`, no
claim has a label yet, and that table is what has to be labeled. A label belongs to the text of a claim, whichever actor
wrote it and wherever it stands in the report.

Rows of other questions and conditions are ignored. Labels whose text no claim has are counted in the log.
"""

from collections.abc import Sequence
from typing import Any

from dualread.errors import DataError
from dualread.grading.claim_labels.base import Claim
from dualread.grading.spans.base import rows_of
from dualread.progress import say
from dualread.schema.base import Name, NotEmpty, Section

_TRUE, _FALSE = ("true", "1", "yes", "supported"), ("false", "0", "no", "unsupported")


class Settings(Section):
    """Where the labels are."""

    path: NotEmpty | None = None
    """The table, relative to the repository: .csv, .tsv, .jsonl, .json or .parquet, also as .gz. Without it, no claim
    has a label."""
    assumed: dict[Name, bool] | None = None
    """{split: label} of claims that the table does not label, so that they are scored; no number about them means
    anything then, but their confidences."""


def supported(claims: Sequence[Claim], settings: Settings, source: Any) -> list[bool | None]:
    """See `base`.

    Raises:
        DataError: A row is not as described above, two rows give a claim different labels, or there are labels for
            these reports and not one of them is of a claim.
    """
    labels: dict[tuple[str, str, str], bool] = {}
    for number, row in enumerate(rows_of(source, ("question", "text"), ("condition", "label"), str(settings.path)), 1):
        where = f"{settings.path}: row {number}: {row['question']}"
        key = (row["question"], row.get("condition") or "original", row["text"])
        label = label_of(row.get("label"), where)
        if label is not None and labels.setdefault(key, label) != label:
            raise DataError(f"{where}: {row['text']!r} has another label in a row above. Keep one of them.")
    given = [labels.get((claim.sample_id, claim.condition, claim.text)) for claim in claims]
    reports = {(claim.sample_id, claim.condition) for claim in claims}
    texts = {(claim.sample_id, claim.condition, claim.text) for claim in claims}
    if others := [key for key in labels if key[:2] in reports and key not in texts]:
        example = f"such as {others[0][2]!r} of {others[0][0]}"
        if all(label is None for label in given):
            raise DataError(
                f"{settings.path}: has {len(others)} labels for these reports, {example}, but no claim has such a text."
                " Expected the texts in claims.parquet, character by character."
            )
        say(f"{settings.path}: {len(others)} labels are for no claim under {claims[0].condition}, {example}")
    assumed = [settings.assumed.get(claim.sample_id.split("/")[1]) for claim in claims] if settings.assumed else given
    return [label if other is None else other for label, other in zip(assumed, given, strict=True)]


def label_of(cell: str | None, where: str) -> bool | None:
    """Return what a cell says, None where it is empty; tables with missing numbers have 1.0 and 0.0."""
    word = (cell or "").strip().lower().removesuffix(".0")
    if word and word not in (*_TRUE, *_FALSE):
        raise DataError(
            f"{where}: the label is {cell!r}. Expected one of {', '.join(_TRUE)} or {', '.join(_FALSE)}, or nothing"
            " where the claim has no label."
        )
    return word in _TRUE if word else None
