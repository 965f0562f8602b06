"""Same-question donors: for each question, another image on which the same question has another gold answer.

The question that gets another image is the source; the question that lends its image is the donor. Both agree in data
set, split, normalized question, the `match_on` columns (the imaging modality, where a data set records it), number and
roles of their images, of which all are swapped. They differ in cluster (patient, or image), in pixels and in canonical
gold answer. If a source has several candidates, the one with the smallest sha256 of
`<sample_id of the source>|<sample_id of the candidate>` is its donor. So the choice depends neither on the order of the
rows nor on confidences, which do not exist yet.

That rule takes one digest per pair. In a group of more than `candidates.LARGEST_COMPARED` questions that agree in all
of this, the candidates stand in a ring instead, in the order of the sha256 of their sample_id. The donor is the first
candidate from the sha256 of `<sample_id of the source>|` on; the last digest is followed by the first.

With a role, the images of this role are exchanged alone: source and donor show the same images in all other roles, such
as one prior image before several visits, and are mostly of one patient.

A data set may name its donors itself (column `donor_sample_id`). These are then checked and used, and no donor is
computed (`candidates.named_pairs`).
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from dualread.artifacts.tables import from_rows
from dualread.data import candidates
from dualread.errors import ConfigError, DataError, did_you_mean
from dualread.schema.columns import PAIRS

__all__ = ["count_pairs", "pair"]


def pair(manifest: pl.DataFrame, match_on: Sequence[str], role: str | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
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
        role: The role of the images that are exchanged; by default, all are.

    Returns:
        pairs: One row per source, sorted by `sample_id`, with the columns that `dualread schema pairs` lists; no row
            if there is no pair. `n_candidates` counts the questions that could have been the donor; it is 1 for a
            named donor.
        audit: One row: `rule` (in words), `n_questions` (rows of `manifest`), `n_eligible` (rows with a named donor;
            or, if donors are computed, rows with a non-empty gold answer and a value in every `match_on` column),
            `n_pairs`, and `mean_candidates` (mean of `n_candidates`; null if there are no pairs).

    Raises:
        ConfigError: `match_on` names a column that `manifest` does not have.
        DataError: A named donor is not in `manifest`, asks another question, shows the same image or patient, or has no
            other gold answer; the message lists up to ten violations. Or there is a role, and no pair.
    """
    _check_columns(manifest, match_on)
    if manifest["donor_sample_id"].is_not_null().any():
        eligible, rule = manifest.filter(pl.col("donor_sample_id").is_not_null()), "named by the data set"
        pairs = from_rows(candidates.named_pairs(manifest, role), PAIRS)
    else:
        eligible, rule = candidates.eligible(manifest, match_on, role), _rule(match_on, role)
        rows, groups, n_large = candidates.groups_of(eligible, match_on)
        matches = np.array([match for group in groups for match in group.pairs()], dtype=np.int64).reshape(-1, 3)
        sources, donors, n_candidates = matches.T
        source = rows[sources].select("sample_id", "question_key", source_image_id="image_id")
        donor = rows[donors].select(donor_sample_id="sample_id", donor_image_id="image_id")
        pairs = pl.concat([source, donor], how="horizontal")
        pairs = pairs.with_columns(n_candidates=pl.Series(n_candidates, dtype=pl.Int32)).select(list(PAIRS.columns))
        rule += _of_large(n_large)
    if role is not None and pairs.is_empty():
        known = ", ".join(sorted(set(manifest["image_roles"].explode().drop_nulls()))) or "none"
        raise DataError(
            f"pairing.role: {role!r}: no question has another gold answer where its {role!r} image is exchanged alone."
            f" Roles of images: {known}. Correct the role, or leave it out: then all images are exchanged."
        )
    pairs = pairs.sort("sample_id")
    return pairs, _audit(rule, manifest, eligible, pairs["n_candidates"])


def count_pairs(manifest: pl.DataFrame, match_on: Sequence[str], role: str | None = None) -> pl.DataFrame:
    """Return the audit that `pair` gives where donors are computed, without choosing any.

    Raises:
        ConfigError: As `pair`.
    """
    _check_columns(manifest, match_on)
    eligible = candidates.eligible(manifest, match_on, role)
    _, groups, n_large = candidates.groups_of(eligible, match_on)
    counts = [n for group in groups for n in map(group.n_candidates, range(len(group.rows))) if n]
    return _audit(_rule(match_on, role) + _of_large(n_large), manifest, eligible, pl.Series(counts, dtype=pl.Int32))


def _rule(match_on: Sequence[str], role: str | None) -> str:
    rule = f"match on {', '.join(match_on) or 'nothing'}"
    return rule if role is None else f"{rule}, and on all images but {role!r}"


def _of_large(n_groups: int) -> str:
    if not n_groups:
        return ""
    groups = f"{n_groups} group{'s' * (n_groups > 1)} of more than {candidates.LARGEST_COMPARED:,} questions"
    return f"; in {groups}, the next candidate by sha256 of its id"


def _audit(rule: str, manifest: pl.DataFrame, eligible: pl.DataFrame, counts: pl.Series) -> pl.DataFrame:
    numbers = {"n_questions": manifest.height, "n_eligible": eligible.height, "n_pairs": len(counts)}
    schema = {"rule": pl.String, **dict.fromkeys(numbers, pl.Int64), "mean_candidates": pl.Float64}
    return pl.DataFrame([{"rule": rule, **numbers, "mean_candidates": counts.mean()}], schema=schema)


def _check_columns(manifest: pl.DataFrame, match_on: Sequence[str]) -> None:
    for column in match_on:
        if column not in manifest.columns:
            meant = did_you_mean(column, manifest.columns)
            raise ConfigError(f"pairing.match_on: no column {column!r}. Known: {', '.join(manifest.columns)}.{meant}")
