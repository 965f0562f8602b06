"""Same-question donors: for each question, another image on which the same question has another gold answer.

The question that gets another image is the source; the question that lends its image is the donor. Both agree in data
set, split, normalized question and the `match_on` columns (the imaging modality, where a data set records it). They
differ in image, in pixels and in canonical gold answer. If a source has several candidates, the one with the smallest
sha256 of `<sample_id of the source>|<sample_id of the candidate>` is its donor. So the choice depends neither on the
order of the rows nor on confidences, which do not exist yet.

That rule takes one digest per pair. In a group of more than `LARGEST_COMPARED` questions that agree in all
of this, the candidates stand in a ring instead, in the order of the sha256 of their sample_id. The donor is the first
candidate from the sha256 of `<sample_id of the source>|` on; the last digest is followed by the first.

A data set may name its donors itself (column `donor_sample_id`). These are then checked and used, and no donor is
computed (`named_donors`).
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from dualread.artifacts.tables import from_rows
from dualread.errors import ConfigError, did_you_mean, refuse
from dualread.grading.canonical import canonical
from dualread.schema.columns import PAIRS

__all__ = ["LARGEST_COMPARED", "SAME", "Group", "count_pairs", "golds", "groups_of", "named_pairs", "pair"]


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
        pairs = from_rows(named_pairs(manifest), PAIRS)
    else:
        eligible, rule = _eligible(manifest, match_on), _rule(match_on)
        rows, groups, n_large = groups_of(eligible, match_on)
        matches = np.array([match for group in groups for match in group.pairs()], dtype=np.int64).reshape(-1, 3)
        pairs, rule = _table(rows, *matches.T), rule + _of_large(n_large)
    pairs = pairs.sort("sample_id")
    return pairs, _audit(rule, manifest, eligible, pairs["n_candidates"])


def count_pairs(manifest: pl.DataFrame, match_on: Sequence[str]) -> pl.DataFrame:
    """Return the audit that `pair` gives where donors are computed, without choosing any.

    Raises:
        ConfigError: As `pair`.
    """
    _check_columns(manifest, match_on)
    eligible = _eligible(manifest, match_on)
    _, groups, n_large = groups_of(eligible, match_on)
    counts = [n for group in groups for n in map(group.n_candidates, range(len(group.rows))) if n]
    return _audit(_rule(match_on) + _of_large(n_large), manifest, eligible, pl.Series(counts, dtype=pl.Int32))


def _rule(match_on: Sequence[str]) -> str:
    return f"match on {', '.join(match_on) or 'nothing'}"


def _of_large(n_groups: int) -> str:
    if not n_groups:
        return ""
    groups = f"{n_groups} group{'s' * (n_groups > 1)} of more than {LARGEST_COMPARED:,} questions"
    return f"; in {groups}, the next candidate by sha256 of its id"


def _table(rows: pl.DataFrame, sources: np.ndarray, donors: np.ndarray, counts: np.ndarray) -> pl.DataFrame:
    """Return the pairs from places in `rows`, which need not be sorted."""
    source = rows[sources].select("sample_id", "question_key", source_image_id="image_id")
    donor = rows[donors].select(donor_sample_id="sample_id", donor_image_id="image_id")
    pairs = pl.concat([source, donor], how="horizontal")
    return pairs.with_columns(n_candidates=pl.Series(counts, dtype=pl.Int32)).select(list(PAIRS.columns))


def _audit(rule: str, manifest: pl.DataFrame, eligible: pl.DataFrame, counts: pl.Series) -> pl.DataFrame:
    numbers = {"n_questions": manifest.height, "n_eligible": eligible.height, "n_pairs": len(counts)}
    schema = {"rule": pl.String, **dict.fromkeys(numbers, pl.Int64), "mean_candidates": pl.Float64}
    return pl.DataFrame([{"rule": rule, **numbers, "mean_candidates": counts.mean()}], schema=schema)


def _check_columns(manifest: pl.DataFrame, match_on: Sequence[str]) -> None:
    for column in match_on:
        if column not in manifest.columns:
            meant = did_you_mean(column, manifest.columns)
            raise ConfigError(f"pairing.match_on: no column {column!r}. Known: {', '.join(manifest.columns)}.{meant}")


def _eligible(manifest: pl.DataFrame, match_on: Sequence[str]) -> pl.DataFrame:
    """Return the rows that can be in a pair, with their sorted canonical gold answers in the new column `gold`."""
    forms = [golds(references) for references in manifest["reference_answers"].to_list()]
    return manifest.with_columns(pl.Series("gold", forms, dtype=pl.List(pl.String))).filter(
        pl.col("gold").list.len() > 0, *(pl.col(column).is_not_null() for column in match_on)
    )


# Questions in a group up to which every two are compared. A digest takes .34 microseconds, so a million questions in
# groups of this size take 11 minutes at most; in one group they would take four days. The largest group of the paper's
# study has 257 questions (SLAKE-train).
LARGEST_COMPARED = 2_000


def groups_of(eligible: pl.DataFrame, match_on: Sequence[str]) -> tuple[pl.DataFrame, Iterator["Group"], int]:
    """Return the rows that can be in a pair, groups of them, and how many of the groups are large.

    The rows of a group agree in all that a pair has to share. Groups with one picture or one gold answer are left out.

    Args:
        eligible: Questions with gold answers, in canonical form and sorted (`gold`).
        match_on: Further columns in which the rows of a group agree.
    """
    same = list(dict.fromkeys([*SAME, *match_on]))
    rows = eligible.filter(
        pl.col("pixel_sha256").n_unique().over(same) > 1, pl.col("gold").list.join("\x1f").n_unique().over(same) > 1
    )
    ids, golds = rows["sample_id"].to_list(), rows["gold"].to_list()
    # Positive numbers for images and negative ones for pixels take a quarter of the memory of their names.
    images, pixels = (rows[name].rank("dense").to_list() for name in ("image_id", "pixel_sha256"))
    keys = [frozenset((image, -pixel, *forms)) for image, pixel, forms in zip(images, pixels, golds, strict=True)]
    numbers = rows.select(pl.struct(same).rank("dense")).to_series().to_numpy()
    order = np.argsort(numbers, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if rows.height else []
    n_large = sum(len(part) > LARGEST_COMPARED for part in parts)
    return rows, (Group(part.tolist(), ids, keys) for part in parts), n_large


class Group:
    """Questions that agree in all that a pair has to share, in the order of the sha256 of their sample_id.

    Attributes:
        rows: Their places in the table.
    """

    def __init__(self, rows: Sequence[int], ids: Sequence[str], keys: Sequence[frozenset[int | str]]) -> None:
        """Sort the `rows`; `ids` and `keys` are those of the whole table.

        Args:
            rows: Places in the table.
            ids: The sample_id of each row.
            keys: What a source and its donor must not have in common: image, pixels, and gold answers.
        """
        ring = sorted((hashlib.sha256(ids[row].encode()).digest(), row) for row in rows)
        self.rows = [row for _, row in ring]
        self._digests = [digest for digest, _ in ring]
        self._ids = [ids[row].encode() for row in self.rows]
        self._keys = [keys[row] for row in self.rows]
        self._places: dict[int | str, list[int]] = {}  # the questions that have a key
        for i, row_keys in enumerate(self._keys):
            for key in row_keys:
                self._places.setdefault(key, []).append(i)
        self._rings: dict[int | str, list[int]] = {}

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Yield the place of each source in the table, that of its donor, and the number of candidates."""
        choose = self._smallest if len(self.rows) <= LARGEST_COMPARED else self._next
        for i, row in enumerate(self.rows):
            if n := self.n_candidates(i):
                yield row, self.rows[choose(i)], n

    def n_candidates(self, i: int) -> int:
        """Return how many questions have no key in common with question `i`.

        The questions with its most frequent key are counted, and only the others are looked at one by one.
        """
        frequent, *rest = sorted(self._keys[i], key=lambda key: -len(self._places[key]))
        also = {j for key in rest for j in self._places[key] if frequent not in self._keys[j]}
        return len(self.rows) - len(self._places[frequent]) - len(also)

    def _smallest(self, i: int) -> int:
        """Return the candidate of the smallest digest with question `i`."""
        start = hashlib.sha256(self._ids[i] + b"|")

        def digest(j: int) -> bytes:
            both = start.copy()
            both.update(self._ids[j])
            return both.digest()

        others = {j for key in self._keys[i] for j in self._places[key]}
        return min((j for j in range(len(self.rows)) if j not in others), key=digest)

    def _next(self, i: int) -> int:
        """Return the first candidate in the ring from the digest of question `i` on."""
        frequent = max(self._keys[i], key=lambda key: len(self._places[key]))
        ring = range(len(self.rows))
        if 2 * len(self._places[frequent]) > len(ring):  # such as "yes": go through the other questions alone
            if frequent not in self._rings:
                self._rings[frequent] = [j for j, keys in enumerate(self._keys) if frequent not in keys]
            ring = self._rings[frequent]
        start = bisect_left(self._digests, hashlib.sha256(self._ids[i] + b"|").digest())
        first = bisect_left(ring, start)
        turn = (ring[(first + step) % len(ring)] for step in range(len(ring)))
        return next(j for j in turn if self._keys[j].isdisjoint(self._keys[i]))


# A question and its donor agree in these.
SAME = ("dataset", "split", "question_key")


def golds(references: Sequence[str]) -> list[str]:
    """Return the canonical gold answers that are not empty, sorted."""
    return sorted({canonical(reference) for reference in references} - {""})


def named_pairs(manifest: pl.DataFrame) -> list[dict]:
    """Return the pairs that the table of questions names (`donor_sample_id`), with the columns of the pairs table.

    Raises:
        DataError: A named donor is not in `manifest`, asks another question, shows the same image, or has no other gold
            answer; the message lists up to ten violations.
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
    if any(source[column] == donor[column] for column in ("image_id", "pixel_sha256")):
        yield "shows the same image"
    gold, other = (set(golds(row["reference_answers"])) for row in (source, donor))
    if not gold or not other or gold & other:
        yield "does not have another gold answer"
