"""Read the answers on which a reader is fitted, and views of answers: replies, choices, states, or groups.

A view has one row per answer, in the order of the answers.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from dualread.artifacts.tables import each_part, read_table
from dualread.artifacts.tensors import lazy_tensors
from dualread.errors import ArtifactError, ConfigError
from dualread.readers.answers import OF_FEATURES, OF_GRADED, OF_MANIFEST, committed, join_answers
from dualread.readers.base import Answers, Examples, ViewAnswers
from dualread.schema.base import DatasetSplit
from dualread.schema.columns import CHOICES, FEATURES, GENERATIONS, GRADED, GROUPS, MANIFEST

_OF_COMPLETIONS = ("sample_id", "condition", "sample_index", "text", "token_log_probs")
# The roles in each split that a reader may see.
PARTITIONS = {"train": ("fit", "stop", "calibration"), "validation": ("validation",)}


def read_examples(
    asked: DatasetSplit, names: Sequence[str], of_parents: Sequence[str], inputs: Mapping[str, Path], where: str
) -> Examples:
    """Return the committed answers of one split with their labels, and the views that the reader and its parents read.

    Inputs: `manifest`, `graded`; `features` where states are read; `view/<name>` for each view.
    """
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST, OF_MANIFEST)
    graded = committed(read_table(inputs["graded"] / "graded.parquet", GRADED, (*OF_GRADED, "correct")))
    index = read_table(inputs["features"] / "features.parquet", FEATURES, OF_FEATURES) if "features" in inputs else None
    source = lazy_tensors(inputs.get("features", Path()) / "features.safetensors")
    answers = join_answers(manifest, graded.drop("correct"), index, source, where=where)
    if strange := sorted(set(answers.table["role"]) - set(PARTITIONS[asked.split])):
        seen = ", ".join(PARTITIONS[asked.split])
        raise ArtifactError(f"{where}: found answers of role {', '.join(strange)}. Expected only {seen}.")
    folders = {name: inputs[f"view/{name}"] for name in (*names, *of_parents) if f"view/{name}" in inputs}
    views, others = (read_views(group, folders, answers, where=where) for group in (names, of_parents))
    answers = replace(answers, views=views, others=others)
    return Examples(answers=answers, correct=graded["correct"].to_numpy())


def read_views(
    names: Sequence[str], inputs: Mapping[str, Path], answers: Answers, *, where: str
) -> tuple[ViewAnswers, ...]:
    """Return the views `names` of the answers under one condition, in this order; `inputs` has the artifact of each.

    The actor is not asked about an invalid answer: such an answer has no texts and NaN for every choice. Hidden states
    exist for every answer.
    """
    for name in names:
        if name not in inputs:
            raise ConfigError(f"{where}: the reader reads the view {name}, but there is no input for it. Add it.")
    return tuple(_view(name, inputs[name], answers, where=f"{where}: view {name}") for name in names)


def _view(name: str, folder: Path, answers: Answers, *, where: str) -> ViewAnswers:
    places = {sample_id: row for row, sample_id in enumerate(answers.table["sample_id"])}
    if (folder / "choices.parquet").exists():
        frame = _checked(read_table(folder / "choices.parquet", CHOICES), places, where)
        values: dict[str, dict[str, float]] = {}
        for sample_id, choice, log_prob in frame.select("sample_id", "choice", "log_prob").iter_rows():
            values.setdefault(choice, {})[sample_id] = log_prob
        log_probs = {choice: np.array([answered.get(i, np.nan) for i in places]) for choice, answered in values.items()}
        return ViewAnswers(name=name, log_probs=log_probs)
    if (folder / "groups.parquet").exists():
        frame = _checked(read_table(folder / "groups.parquet", GROUPS), places, where)
        pairs: dict[str, dict[tuple[str, str], tuple[float, bool]]] = {sample_id: {} for sample_id in places}
        for sample_id, answer, compared, similarity, same in frame.iter_rows():
            pairs[sample_id][answer, compared] = similarity, same
        return ViewAnswers(name=name, pairs=tuple(pairs.values()))
    if (folder / "features.parquet").exists():
        frame = _checked(read_table(folder / "features.parquet", FEATURES), places, where)
        rows = dict(frame.select("sample_id", "row").iter_rows())
        if missing := [i for i in places if i not in rows]:
            raise ArtifactError(
                f"{where}: {len(missing)} answers were not replayed, such as {missing[0]}. Replay again."
            )
        rows_of = np.array([rows[i] for i in places], dtype=np.int64)
        return ViewAnswers(name=name, source=lazy_tensors(folder / "features.safetensors"), rows=rows_of)
    parts = (_checked(part, places, where) for part in each_part(folder, GENERATIONS, _OF_COMPLETIONS))
    return _completions(name, parts, places, where)


def _completions(name: str, parts: Iterable[pl.DataFrame], places: Mapping[str, int], where: str) -> ViewAnswers:
    """Return the view of completions, which are taken part by part: there may be eight per answer, with few texts."""
    texts: list[list[str]] = [[] for _ in places]
    known: dict[str, str] = {}
    log_probs = [
        pl.DataFrame(schema={"place": pl.Int64, "token_log_probs": GENERATIONS.columns["token_log_probs"].dtype})
    ]
    for part in parts:
        ordered = part.sort("sample_id", "sample_index")
        of_part = []
        for sample_id, index, text in ordered.select("sample_id", "sample_index", "text").iter_rows():
            of_part.append(place := places[sample_id])
            if index != len(texts[place]):
                raise ArtifactError(
                    f"{where}: {sample_id} has the completion {index}, expected {len(texts[place])}. Make it again."
                )
            texts[place].append(known.setdefault(text, text))
        log_probs.append(ordered.select(place=pl.Series(of_part, dtype=pl.Int64), token_log_probs="token_log_probs"))
    answers = pl.DataFrame({"place": range(len(places))}, schema={"place": pl.Int64})
    of_answers = pl.concat(log_probs).group_by("place").agg("token_log_probs")
    grouped = answers.join(of_answers, on="place", how="left", maintain_order="left")["token_log_probs"]
    return ViewAnswers(name=name, texts=tuple(map(tuple, texts)), token_log_probs=grouped)


def _checked(frame: pl.DataFrame, known: Container[str], where: str) -> pl.DataFrame:
    if unknown := sorted(i for i in frame["sample_id"].unique() if i not in known):
        raise ArtifactError(f"{where}: has {len(unknown)} rows without an answer, such as {unknown[0]}. Make it again.")
    return frame
