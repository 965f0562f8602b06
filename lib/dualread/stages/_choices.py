"""Read the choices of an actor's questions, with their probabilities and which one is right."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from dualread.artifacts.tables import read_table
from dualread.data.questions.roles import OF_UNIT, unit_of
from dualread.evaluation.answer_sets import Choices, group_subset, set_rows
from dualread.evaluation.columns import numbered
from dualread.grading.canonical import is_correct
from dualread.grading.options import choices_by_name
from dualread.readers.replies import choice_probabilities
from dualread.schema.columns import CHOICES, MANIFEST
from dualread.schema.metrics import ComputeMetricsSpec
from dualread.stages._joined import grouped_by, read

_OF_MANIFEST = ("sample_id", "options", "answer_type", "reference_answers", "cluster_id")


def answer_set_rows(
    spec: ComputeMetricsSpec, data_split: tuple[str, str], inputs: Mapping[str, Path]
) -> Iterator[dict]:
    """Yield the metrics of answer sets of a (data set, split) and of its groups; none if the method reads no choices.

    One threshold is for all groups. The questions without a value of a column are a group without a name.
    """
    if spec.choices is None:
        return
    dataset, _, split = spec.thresholds_from.partition("/")
    chosen_on = choices_of(*read_scored(spec.choices, (dataset, split), inputs))
    unit = unit_of(read(inputs, f"manifest/{spec.thresholds_from}", MANIFEST, OF_UNIT))
    rows, names = read_scored(spec.choices, data_split, inputs)
    subsets = [("all", rows)]
    for by, labels in grouped_by(inputs, f"manifest/{'/'.join(data_split)}", spec.subgroups or ()).items():
        for (group,), members in sorted(labels.group_by("group"), key=str):
            subsets.append((group_subset(by, group), rows.join(members, on="sample_id", how="semi")))
    for subset, part in subsets:
        judged_on, percents = choices_of(part, names), spec.metrics.miss_percent or ()
        yield from set_rows(chosen_on, judged_on, percents, unit=unit, subset=subset)


def read_named(manifest: Path) -> dict[str, dict[str, str]]:
    """Return the choices of each question that has some, by name."""
    rows = read_table(manifest / "manifest.parquet", MANIFEST, ("sample_id", "options", "answer_type"))
    named = ((sample_id, choices_by_name(options, kind)) for sample_id, options, kind in rows.iter_rows())
    return {sample_id: choices for sample_id, choices in named if choices}


def read_scored(
    view: str, data_split: tuple[str, str], inputs: Mapping[str, Path]
) -> tuple[pl.DataFrame, Sequence[str]]:
    """Return the questions of a (data set, split) with a column of log-probabilities per choice, and these columns."""
    place = "/".join(data_split)
    manifest = read(inputs, f"manifest/{place}", MANIFEST, _OF_MANIFEST)
    path = inputs[f"view/{view}/{place}/original"] / "choices.parquet"
    scored = read_table(path, CHOICES, ("sample_id", "choice", "log_prob")).pivot("choice", index="sample_id")
    rows = manifest.join(scored, on="sample_id", how="left", validate="1:1", maintain_order="left")
    return rows, [name for name in scored.columns if name != "sample_id"]


def choices_of(rows: pl.DataFrame, names: Sequence[str]) -> Choices:
    """Return the choices of some questions; `names` are the columns of their log-probabilities in nats.

    A question whose right answer is none of its choices is left out and counted: no set can have it.
    """
    probabilities = choice_probabilities({name: rows[name].fill_null(np.nan).to_numpy() for name in names}, len(rows))
    right: list[int | None] = []
    for options, kind, references in rows.select("options", "answer_type", "reference_answers").iter_rows():
        choices = choices_by_name(options, kind)
        right.append(next((names.index(name) for name, text in choices.items() if is_correct(text, references)), None))
    has_choices = ~np.isnan(probabilities).all(axis=1)
    known = has_choices & np.array([place is not None for place in right], dtype=np.bool_)
    of_right = probabilities[np.flatnonzero(known), [right[k] or 0 for k in np.flatnonzero(known)]]
    cluster = numbered(rows["cluster_id"])[known]
    n_without = int((~has_choices).sum())
    return Choices(probabilities[known], of_right, cluster, n_without, len(rows) - n_without - int(known.sum()))
