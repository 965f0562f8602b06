"""Same-question donors: for each question, another image on which the same question has another gold answer.

The question that gets another image is the source; the question that lends its image is the donor. Both agree in data
set, split, normalized question and the `match_on` columns (the imaging modality, where a data set records it). They
differ in image, in pixels and in canonical gold answer. If a source has several candidates, the one with the smallest
sha256 of `<sample_id of the source>|<sample_id of the candidate>` is its donor. So the choice depends neither on the
order of the rows nor on confidences, which do not exist yet.

A data set may name its donors itself (column `donor_sample_id`). These are then checked and used, and no donor is
computed (`named_donors`).
"""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from dualread.artifacts.schemas.pairs import PAIRS
from dualread.artifacts.tables import from_rows
from dualread.data.named_donors import SAME, golds, named_pairs
from dualread.errors import ConfigError, did_you_mean

__all__ = ["pair"]


def pair(manifest: pl.DataFrame, match_on: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give every question of a table that has a same-question donor its donor.

    Being a donor is not symmetric, and one question may be the donor of several. A question without a non-empty
    canonical gold answer is neither a source nor a donor. Gold answers differ if the two questions have no canonical
    form of a reference answer in common.

    If any row names a donor (`donor_sample_id`), the named donors are the only pairs, and `match_on` does not apply.

    Args:
        manifest: The table of questions, with the columns that `dualread schema manifest` lists. Data sets and splits
            may be mixed: a pair never joins two of them.
        match_on: Further columns in which source and donor have to agree; may be empty. A null agrees with nothing,
            not even with another null.

    Returns:
        pairs: One row per source, sorted by `sample_id`, with the columns that `dualread schema pairs` lists; no row
            if there is no pair. `n_candidates` counts the questions that could have been the donor; it is 1 for a
            named donor.
        audit: One row: `rule` (in words), `n_questions` (rows of `manifest`), `n_eligible` (rows with a named donor;
            or, if donors are computed, rows with a non-empty gold answer and a value in every `match_on` column),
            `n_pairs`, and `mean_candidates` (mean of `n_candidates`; null if there are no pairs).

    Raises:
        ConfigError: `match_on` names a column that `manifest` does not have.
        DataError: A named donor is not in `manifest`, asks another question, shows the same image, or has no other gold
            answer; the message lists up to ten violations.
    """
    _check_columns(manifest, match_on)
    if manifest["donor_sample_id"].is_not_null().any():
        eligible, rule = manifest.filter(pl.col("donor_sample_id").is_not_null()), "named by the data set"
        records = named_pairs(manifest)
    else:
        eligible, rule = _eligible(manifest, match_on), f"match on {', '.join(match_on) or 'nothing'}"
        records = [record for group in _groups(eligible, match_on) for record in _pairs_of_group(group)]
    pairs = from_rows(records, PAIRS).sort("sample_id")
    audit = {
        "rule": rule,
        "n_questions": manifest.height,
        "n_eligible": eligible.height,
        "n_pairs": pairs.height,
        "mean_candidates": pairs["n_candidates"].mean(),
    }
    counts = dict.fromkeys(("n_questions", "n_eligible", "n_pairs"), pl.Int64)
    return pairs, pl.DataFrame([audit], schema={"rule": pl.String, **counts, "mean_candidates": pl.Float64})


def _check_columns(manifest: pl.DataFrame, match_on: Sequence[str]) -> None:
    for column in match_on:
        if column not in manifest.columns:
            meant = did_you_mean(column, manifest.columns)
            raise ConfigError(f"pairing.match_on: no column {column!r}. Known: {', '.join(manifest.columns)}.{meant}")


def _eligible(manifest: pl.DataFrame, match_on: Sequence[str]) -> pl.DataFrame:
    """Return the rows that can be in a pair, with their sorted canonical gold answers in the new column `gold`."""
    forms = manifest["reference_answers"].map_elements(golds, return_dtype=pl.List(pl.String))
    return manifest.with_columns(forms.alias("gold")).filter(
        pl.col("gold").list.len() > 0, *(pl.col(column).is_not_null() for column in match_on)
    )


def _groups(eligible: pl.DataFrame, match_on: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield groups of rows that agree in all that a pair has to share, without groups of one picture or one gold."""
    same = list(dict.fromkeys([*SAME, *match_on]))
    candidates = eligible.filter(
        pl.col("pixel_sha256").n_unique().over(same) > 1, pl.col("gold").list.join("\x1f").n_unique().over(same) > 1
    )
    columns = ["sample_id", "question_key", "image_id", "pixel_sha256", "gold"]
    for group in candidates.partition_by(same, maintain_order=True):
        yield group.select(columns)


def _pairs_of_group(group: pl.DataFrame) -> Iterator[dict]:
    sample_ids = group["sample_id"].to_list()
    encoded = [sample_id.encode() for sample_id in sample_ids]
    image_ids = group["image_id"].to_list()
    images, pixels = _codes(image_ids), _codes(group["pixel_sha256"].to_list())
    golds = [frozenset(forms) for forms in group["gold"].to_list()]
    gold = _codes(golds)
    distinct = list(dict.fromkeys(golds))
    differs = np.array([[one.isdisjoint(other) for other in distinct] for one in distinct])
    for i, sample_id in enumerate(sample_ids):
        candidates = np.flatnonzero(differs[gold[i], gold] & (images != images[i]) & (pixels != pixels[i]))
        if candidates.size:
            start = hashlib.sha256(encoded[i] + b"|")
            donor = min(candidates, key=lambda j, start=start: _digest(start, encoded[j]))
            yield {
                "sample_id": sample_id,
                "donor_sample_id": sample_ids[donor],
                "question_key": group["question_key"][i],
                "source_image_id": image_ids[i],
                "donor_image_id": image_ids[donor],
                "n_candidates": int(candidates.size),
            }


def _codes(values: Sequence) -> np.ndarray:
    """Return the number of each value; values are numbered from 0 by first occurrence."""
    number = {value: k for k, value in enumerate(dict.fromkeys(values))}
    return np.array([number[value] for value in values])


def _digest(start, rest: bytes) -> bytes:
    digest = start.copy()
    digest.update(rest)
    return digest.digest()
