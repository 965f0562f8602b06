"""The candidates among which a question finds its donor, and the donors that a data set names itself.

Candidates agree with the question in all that pairs share. A named donor has to be what a computed one would be.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from dualread.errors import refuse
from dualread.grading.canonical import canonical

# Questions in a group up to which every two are compared. A digest takes .34 microseconds, so a million questions in
# groups of this size take 11 minutes at most; in one group they would take four days. The largest group of the paper's
# study has 257 questions (SLAKE-train).
LARGEST_COMPARED = 2_000


def eligible(manifest: pl.DataFrame, match_on: Sequence[str], role: str | None) -> pl.DataFrame:
    """Return the rows that can be in a pair, with three new columns.

    `gold` are the gold answers in canonical form, sorted; `exchanged` is what their images are that a pair exchanges,
    and `kept` what the others are (see `exchange`).
    """
    shown = manifest.select("image_roles", "pixel_sha256s", "cluster_id").iter_rows(named=True)
    kept, exchanged = zip(*(exchange(row, role) for row in shown), strict=True) if manifest.height else ((), ())
    forms = [golds(references) for references in manifest["reference_answers"].to_list()]
    texts = pl.List(pl.String)
    return manifest.with_columns(
        pl.Series("gold", forms, dtype=texts),
        pl.Series("kept", kept, dtype=pl.String),
        pl.Series("exchanged", exchanged, dtype=texts),
    ).filter(
        *(pl.col(name).list.len() > 0 for name in ("gold", "exchanged")),
        *(pl.col(column).is_not_null() for column in match_on),
    )


def groups_of(eligible: pl.DataFrame, match_on: Sequence[str]) -> tuple[pl.DataFrame, Iterator["Group"], int]:
    """Return the rows that can be in a pair, groups of them, and how many of the groups are large.

    `eligible` is what the function of this name returns. The rows of a group agree in all that a pair has to share.
    Groups are left out in which all exchange the same (whose first name is one), or have the same gold answer.
    """
    same = [*dict.fromkeys([*SAME, *match_on]), "kept"]
    rows = eligible.filter(
        pl.col("exchanged").list.first().n_unique().over(same) > 1,
        pl.col("gold").list.join("\x1f").n_unique().over(same) > 1,
    )
    ids, golds, exchanged = (rows[name].to_list() for name in ("sample_id", "gold", "exchanged"))
    numbers_of = {name: i for i, name in enumerate(dict.fromkeys(chain.from_iterable(exchanged)))}  # take less memory
    keys = [
        frozenset((*(numbers_of[name] for name in names), *forms))
        for names, forms in zip(exchanged, golds, strict=True)
    ]
    numbers = rows.select(pl.struct(same).rank("dense")).to_series().to_numpy()
    order = np.argsort(numbers, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if rows.height else []
    n_large = sum(len(part) > LARGEST_COMPARED for part in parts)
    return rows, (Group(part.tolist(), ids, keys) for part in parts), n_large


class Group:
    """Questions that agree in all that a pair shares, in the order of sha256(sample_id); `rows` are their places."""

    def __init__(self, rows: Sequence[int], ids: Sequence[str], keys: Sequence[frozenset[int | str]]) -> None:
        """Sort the `rows`; `ids` and `keys` (what source and donor must not share) are those of the whole table."""
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


def exchange(row: Mapping[str, Any], role: str | None) -> tuple[str, list[str]]:
    """Return what a question's images have to share with those of its donor, and what names those that are exchanged.

    All images are exchanged, with the cluster; with a `role`, those of this role alone, and all others are the same.
    """
    roles, pixels = row["image_roles"] or [""] * len(row["pixel_sha256s"]), row["pixel_sha256s"]
    if role is None:
        return " ".join([str(len(pixels)), *roles]), [f"cluster {row['cluster_id']}", *pixels]
    kept = ["" if own == role else pixel for own, pixel in zip(roles, pixels, strict=True)]
    return " ".join([*roles, *kept]), [pixel for own, pixel in zip(roles, pixels, strict=True) if own == role]


def named_pairs(manifest: pl.DataFrame, role: str | None = None) -> list[dict]:
    """Return the pairs that the table of questions names (`donor_sample_id`), with the columns of the pairs table."""
    rows = {row["sample_id"]: row for row in manifest.iter_rows(named=True)}
    named = [(row, rows.get(row["donor_sample_id"])) for row in rows.values() if row["donor_sample_id"] is not None]
    refuse(
        f"{source['sample_id']}: its donor {source['donor_sample_id']} {problem}. Correct or remove its donor_id."
        for source, donor in named
        for problem in _violations(source, donor, role)
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


def _violations(source: Mapping[str, Any], donor: Mapping[str, Any] | None, role: str | None) -> Iterator[str]:
    """Yield each reason why `donor` cannot be the donor of `source`."""
    if donor is None:
        yield "is not in the table of questions"
        return
    if any(source[column] != donor[column] for column in SAME):
        yield "does not ask the same question"
    (kept, exchanged), (others, lent) = exchange(source, role), exchange(donor, role)
    if kept != others:
        also = "" if role is None else f", or other images besides {role!r}"
        yield f"shows another number of images, or images in other roles{also}"
    if not exchanged or not set(exchanged[role is None :]).isdisjoint(lent):
        yield "shows the same image" + ("" if role is None else f" as {role!r}, or none")
    elif exchanged[:1] == lent[:1]:
        yield "shows an image of the same patient"
    gold, other = (set(golds(row["reference_answers"])) for row in (source, donor))
    if not gold or not other or gold & other:
        yield "does not have another gold answer"
