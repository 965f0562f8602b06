"""Donors that a data set names itself: each has to be what a computed donor would be."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from dualread.errors import refuse
from dualread.grading.canonical import canonical

# A question and its donor agree in these.
SAME = ("dataset", "split", "question_key")


def golds(references: Sequence[str]) -> list[str]:
    """Return the canonical gold answers that are not empty, sorted."""
    return sorted({canonical(reference) for reference in references} - {""})


def named_pairs(manifest: pl.DataFrame) -> list[dict]:
    """Return the pairs that the table of questions names (`donor_sample_id`), with the columns of the pairs table.

    Raises:
        DataError: A named donor is not in `manifest`, asks another question, shows the same image or patient, or has no
            other gold answer; the message lists up to ten violations.
    """
    rows = {row["sample_id"]: row for row in manifest.iter_rows(named=True)}
    named = [(row, rows.get(row["donor_sample_id"])) for row in rows.values() if row["donor_sample_id"] is not None]
    refuse(
        f"{source['sample_id']}: its donor {source['donor_sample_id']} {problem}. Correct or remove its donor_id."
        for source, donor in named
        for problem in _violations(source, donor)
    )
    return [
        {
            "sample_id": source["sample_id"],
            "donor_sample_id": donor["sample_id"],
            "question_key": source["question_key"],
            "source_image_id": source["image_id"],
            "donor_image_id": donor["image_id"],
            "n_candidates": 1,
        }
        for source, donor in named
        if donor is not None
    ]


def _violations(source: Mapping[str, Any], donor: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield each reason why `donor` cannot be the donor of `source`."""
    if donor is None:
        yield "is not in the table of questions"
        return
    if any(source[column] != donor[column] for column in SAME):
        yield "does not ask the same question"
    if source["pixel_sha256"] == donor["pixel_sha256"]:
        yield "shows the same image"
    elif source["cluster_id"] == donor["cluster_id"]:
        yield "shows an image of the same patient"
    gold, other = (set(golds(row["reference_answers"])) for row in (source, donor))
    if not gold or not other or gold & other:
        yield "does not have another gold answer"
