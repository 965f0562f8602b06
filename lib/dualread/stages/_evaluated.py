"""One method's confidences on one (data set, split), joined with the grades, out of a stage's inputs."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.schemas import Schema
from dualread.artifacts.schemas.graded import GRADED
from dualread.artifacts.schemas.pairs import PAIRS
from dualread.artifacts.tables import read_table
from dualread.errors import ArtifactError
from dualread.evaluation.join import Evaluated, evaluate


def evaluated(
    dataset: str,
    split: str,
    manifest: pl.DataFrame,
    predictions: pl.DataFrame,
    inputs: Mapping[str, Path],
    *,
    run: str = "",
) -> Evaluated:
    """Read the grades (and pairs, where they are an input) of a (data set, split) and join the predictions with them.

    Args:
        dataset: Config name of the data set.
        split: train, validation or test.
        manifest: Its manifest table.
        predictions: Of one method and actor; those of other data sets and splits are left aside.
        inputs: graded/<run><dataset>/<split>/<condition>, and pairs/<dataset>/<split> where there are donors.
        run: "<backbone>/<actor>/<seed>/" where the inputs are those of several.

    Raises:
        ArtifactError: An input is missing, or predictions, grades, manifest and pairs do not fit together.
    """
    prefix = f"graded/{run}{dataset}/{split}/"
    shard = predictions.filter((pl.col("dataset") == dataset) & (pl.col("split") == split))
    return evaluate(
        where=f"{run}{dataset}/{split}",
        manifest=manifest,
        pairs=read(inputs, name, PAIRS) if (name := f"pairs/{dataset}/{split}") in inputs else None,
        predictions={str(key[0]): part for key, part in shard.partition_by("condition", as_dict=True).items()},
        graded={name.removeprefix(prefix): read(inputs, name, GRADED) for name in inputs if name.startswith(prefix)},
    )


def read(inputs: Mapping[str, Path], name: str, schema: Schema) -> pl.DataFrame:
    """Read the table of `schema` in the input called `name`.

    Raises:
        ArtifactError: There is no such input or table.
    """
    if name not in inputs:
        raise ArtifactError(f"no input {name!r}; given: {', '.join(sorted(inputs))}.")
    return read_table(inputs[name] / f"{schema.name}.parquet", schema)
