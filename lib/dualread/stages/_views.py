"""Read views of answers: replies, choices or hidden states, with one row per answer in the order of the answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from dualread.artifacts.schemas.choices import CHOICES
from dualread.artifacts.schemas.features import FEATURES
from dualread.artifacts.schemas.generations import GENERATIONS
from dualread.artifacts.tables import read_parts, read_table
from dualread.artifacts.tensors import lazy_tensors
from dualread.errors import ArtifactError, ConfigError
from dualread.readers.base import Answers, View


def read_views(names: Sequence[str], inputs: Mapping[str, Path], answers: Answers, *, where: str) -> tuple[View, ...]:
    """Return the views `names` of `answers`, in this order.

    The actor is not asked about an invalid answer: such an answer has no texts and NaN for every choice. Hidden states
    exist for every answer.

    Args:
        names: Entries of `views` in the config.
        inputs: The artifact of each view under its name.
        answers: Answers under one condition.
        where: The shard that errors name.

    Raises:
        ConfigError: The artifact of a view is not among the inputs.
        ArtifactError: A view belongs to another condition, or has questions that are not among the answers.
    """
    for name in names:
        if name not in inputs:
            raise ConfigError(f"{where}: the reader reads the view {name}, but there is no input for it. Add it.")
    return tuple(_view(name, inputs[name], answers, where=f"{where}: view {name}") for name in names)


def _view(name: str, folder: Path, answers: Answers, *, where: str) -> View:
    ids = answers.table["sample_id"].to_list()
    condition = f"{answers.table['condition'][0]}/{name}" if ids else None
    if (folder / "choices.parquet").exists():
        frame = _checked(read_table(folder / "choices.parquet", CHOICES), ids, condition, where)
        return View(name=name, log_probs=_log_probs(frame, ids))
    if (folder / "features.parquet").exists():
        frame = _checked(read_table(folder / "features.parquet", FEATURES), ids, condition, where)
        rows = dict(frame.select("sample_id", "row").iter_rows())
        if missing := [i for i in ids if i not in rows]:
            raise ArtifactError(
                f"{where}: {len(missing)} answers were not replayed, such as {missing[0]}. Replay again."
            )
        rows_of = np.array([rows[i] for i in ids], dtype=np.int64)
        return View(name=name, source=lazy_tensors(folder / "features.safetensors"), rows=rows_of)
    frame = _checked(read_parts(folder, GENERATIONS), ids, condition, where).sort("sample_id", "sample_index")
    found = frame.group_by("sample_id").agg("text", "token_log_probs")
    texts = {i: tuple(of) for i, of in found.select("sample_id", "text").iter_rows()}
    log_probs = pl.DataFrame({"sample_id": ids}, schema={"sample_id": pl.String}).join(
        found.select("sample_id", "token_log_probs"), on="sample_id", how="left", maintain_order="left"
    )
    return View(name=name, texts=tuple(texts.get(i, ()) for i in ids), token_log_probs=log_probs["token_log_probs"])


def _checked(frame: pl.DataFrame, ids: list[str], condition: str | None, where: str) -> pl.DataFrame:
    if other := frame.filter(pl.col("condition") != condition)["condition"].to_list():
        raise ArtifactError(f"{where}: belongs to the condition {other[0]!r}, expected {condition!r}. Make it again.")
    if unknown := sorted(set(frame["sample_id"]) - set(ids)):
        raise ArtifactError(f"{where}: has {len(unknown)} rows without an answer, such as {unknown[0]}. Make it again.")
    return frame


def _log_probs(frame: pl.DataFrame, ids: list[str]) -> dict[str, np.ndarray]:
    values: dict[str, dict[str, float]] = {}
    for sample_id, choice, log_prob in frame.select("sample_id", "choice", "log_prob").iter_rows():
        values.setdefault(choice, {})[sample_id] = log_prob
    return {choice: np.array([of.get(i, np.nan) for i in ids]) for choice, of in values.items()}
