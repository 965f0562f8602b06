"""What a data set loader has to provide, what it returns, and how it reports broken rows.

A loader is a module with `load_rows(folder, split, settings) -> Loaded`, perhaps with a class `Settings` that says what
`datasets.<name>.settings` may hold (`schema.plugin_settings`), and with these literals, which are read without
importing it:

    HUB_FILES   for each split, patterns of the files that it needs from the hub's repository (`data/test-*.parquet`);
                these are the splits of the data set
    TERMS       one or two sentences for people: license, citation, where the official files are, and whether one has
                to apply for access

If they are known, these help `dualread plan`:

    SIZES       for each split {"open": questions, "closed": questions, "images": images}, with the default settings
    DOWNLOAD_GB size of the download, in gigabytes

A loader keeps or drops rows by fixed rules. Every rule that can drop a row has an `AuditStep`, even if it drops none. A
loader selects nothing at random and decodes no image: `dualread.data.questions` selects questions, checks images and
identifies them.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dualread.grading.canonical import canonical


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One question of an official file, with its text unchanged and its fields renamed.

    Attributes:
        official_id: The id of the question in the data set; becomes the end of `sample_id`.
        question: The question, verbatim.
        reference_answers: Accepted gold answers, verbatim; one or more, possibly an empty string.
        answer_type: "open" or "closed".
        content_family: The content family that the data set records, in lower case; None if it records none.
        options: Visible options of a multiple-choice question; empty for other questions.
        modality: Imaging modality; None if the data set records none.
        location: Part of the body; None if the data set records none.
        image: Absolute path of the official image file, or the image's bytes if the official table holds them. Equal
            bytes are one object, so that a table with many questions per image needs little memory.
        image_name: The name of the image in the data set, equal for all questions on one image.
        source_row: 0-based row of the official file.
        donor_id: `official_id` of the same-question donor, in the same split, if the data set itself names one; else
            None.
        patient: The patient, or case, as the data set names it, equal in all its splits; None if it names none.
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
    patient: str | None = None


@dataclass(frozen=True, kw_only=True)
class AuditStep:
    """One step from the official file to the table of questions: how many rows it kept and dropped, and why."""

    step: str
    kept: int
    dropped: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The rows of one split, the official file that they come from, and the audit of the rows that were dropped."""

    file: Path
    rows: Sequence[Row]
    audit: Sequence[AuditStep]


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
