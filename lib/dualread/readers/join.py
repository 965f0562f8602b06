"""Join what is known about an actor's answers: the manifest, the graded completions, and the index of the replay."""

from collections.abc import Callable

import numpy as np
import polars as pl

from dualread.errors import ArtifactError
from dualread.readers.answers import TOKENS
from dualread.readers.base import COLUMNS, Answers

KEY = ("sample_id", "condition")
# The columns that are read of each table.
OF_MANIFEST = ("sample_id", "dataset", "split", "role", "question_key")
OF_GRADED = (*KEY, "sample_index", "canonical_answer", "verbalized_confidence", "parse_status")
OF_FEATURES = (*KEY, "sample_index", "row", *TOKENS)


def committed(graded: pl.DataFrame) -> pl.DataFrame:
    """Return the committed answers (sample_index 0), one per row, sorted by sample_id and condition."""
    return graded.filter(pl.col("sample_index") == 0).sort(KEY)


def join_answers(
    manifest: pl.DataFrame,
    graded: pl.DataFrame,
    index: pl.DataFrame | None,
    source: Callable[[str], np.ndarray],
    *,
    where: str,
) -> Answers:
    """Return the answers in the order of `graded`, the `committed` rows of a graded table without `correct`.

    Each answer gets the manifest's row with its sample_id. Under a donor condition this is the question about the
    source image, which is the one that was asked. `index` is the features table of the replay, None where none is read,
    and `source` returns a named tensor of it.

    Raises:
        ArtifactError: An answer of the shard `where` occurs twice, or the manifest or the replay lacks it.
    """
    assert "correct" not in graded.columns, "labels must not reach a reader that scores"
    if n_twice := len(graded) - graded.select(KEY).n_unique():
        raise ArtifactError(f"{where}: {n_twice} answers occur twice in graded.parquet. Grade the shard again.")
    table = _joined(graded, manifest.select(OF_MANIFEST), ["sample_id"], f"{where}: manifest.parquet lacks")
    if index is None:
        return Answers(table=table.select(COLUMNS), source=source, rows=np.zeros(len(table), dtype=np.int64))
    places = index.filter(pl.col("sample_index") == 0).select(*KEY, "row", *TOKENS)
    read = _joined(table, places, list(KEY), f"{where}: features.parquet lacks")
    return Answers(table=table.select(COLUMNS), source=source, rows=read["row"].to_numpy(), tokens=read.select(TOKENS))


def _joined(rows: pl.DataFrame, others: pl.DataFrame, on: list[str], complaint: str) -> pl.DataFrame:
    missing = rows.join(others, on=on, how="anti")["sample_id"].to_list()
    if missing:
        shown = ", ".join(sorted(missing)[:5])
        raise ArtifactError(f"{complaint} {len(missing)} graded answers, such as {shown}. Make the shard again.")
    return rows.join(others, on=on, how="left", validate="m:1", maintain_order="left")
