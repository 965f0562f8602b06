"""What every data set loader is, what it returns, and how it reports broken rows.

A loader is a module with `load_rows(folder, split, settings) -> Loaded` and these literals, read without an import:

    SETTINGS    what `datasets.<name>.settings` may hold (see `dualread.plugins`)
    HUB_FILES   for each split the files of the hub's repository that it needs, as patterns (`data/test-*.parquet`);
                splits that are not there do not exist
    TERMS       one or two sentences for people: license, citation, where the official files are, whether access must
                be asked for

and, where they are known, for `dualread plan`:

    SIZES       for each split {"open": questions, "closed": questions, "images": images}, with the default settings
    DOWNLOAD_GB how much the hub, or whoever has the official files, sends

A loader keeps or drops rows by rules alone, and every rule that can drop a row has an `AuditStep`, zeros included. It
neither draws nor decodes anything: selections, image checks and identities are the manifest's business.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualread.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Row:
    """One question of an official file, unchanged but for the names of its fields.

    Attributes:
        official_id: The data set's own id of the question; becomes the end of `sample_id`.
        question: Verbatim.
        reference_answers: Accepted gold answers, verbatim; one or more, possibly an empty string.
        answer_type: "open" or "closed".
        content_family: The data set's own content family, in lower case, or None where it records none.
        options: Visible options of a multiple-choice question; empty otherwise.
        modality: Imaging modality, or None where the data set records none.
        location: Part of the body, or None where the data set records none.
        image: Absolute path of the official image file, or the image's bytes where the official table holds them
            (equal bytes are one object, so that a table with many questions an image stays small in memory).
        image_name: The data set's own identity of the image, equal for all questions on one image.
        source_row: 0-based row of the official file.
        donor_id: `official_id` of the row of the same split that the data set itself names as the same-question donor;
            None where it names none.
    """

    official_id: str
    question: str
    reference_answers: tuple[str, ...]
    answer_type: str
    content_family: str | None
    options: tuple[str, ...]
    modality: str | None
    location: str | None
    image: Path | bytes
    image_name: str
    source_row: int
    donor_id: str | None = None


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
