"""What every data set loader returns, and how it reports broken rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualread.errors import DataError

CONTENT_FAMILIES = (
    "abnormality",
    "color",
    "knowledge",
    "modality",
    "organ",
    "plane",
    "position",
    "quantity",
    "shape",
    "size",
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One question of an official file, unchanged but for the names of its fields.

    Attributes:
        official_id: The data set's own id of the question; becomes the end of `sample_id`.
        question: Verbatim.
        reference_answers: Accepted gold answers, verbatim; one or more, possibly an empty string.
        answer_type: "open" or "closed".
        content_family: One of `CONTENT_FAMILIES`, or None where the data set records none.
        options: Visible options of a multiple-choice question; empty otherwise.
        modality: Imaging modality, or None where the data set records none.
        location: Part of the body, or None where the data set records none.
        image_path: Absolute path of the official image file.
        image_name: The data set's own identity of the image, equal for all questions on one image.
        source_row: 0-based row of the official file.
    """

    official_id: str
    question: str
    reference_answers: tuple[str, ...]
    answer_type: str
    content_family: str | None
    options: tuple[str, ...]
    modality: str | None
    location: str | None
    image_path: Path
    image_name: str
    source_row: int


@dataclass(frozen=True, kw_only=True)
class AuditStep:
    """One step of the way from the official file to the manifest: how many rows it kept and dropped, and why."""

    step: str
    kept: int
    dropped: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The rows of one split, the official file they come from, and the account of the rows left out."""

    file: Path
    rows: Sequence[Row]
    audit: Sequence[AuditStep]


def refuse(problems: Iterable[str], *, listed: int = 10) -> None:
    """Raise one DataError that lists the first `listed` of `problems`; do nothing when there are none.

    Broken rows are reported together, so that a person repairs a data set once and not once per row.
    """
    found = list(problems)
    if found:
        rest = [f"... and {len(found) - listed} more"] if len(found) > listed else []
        raise DataError("\n".join([*found[:listed], *rest]))
