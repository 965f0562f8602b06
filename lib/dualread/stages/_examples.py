"""Read the answers on which a reader is fitted, with labels, hidden states and views."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dualread.artifacts.tables import read_table
from dualread.artifacts.tensors import lazy_tensors
from dualread.errors import ArtifactError
from dualread.readers.base import Examples
from dualread.readers.join import OF_FEATURES, OF_GRADED, OF_MANIFEST, committed, join_answers
from dualread.schema.base import DatasetSplit
from dualread.schema.columns import FEATURES, GRADED, MANIFEST
from dualread.stages._views import read_views

# The roles in each split that a reader may see.
PARTITIONS = {"train": ("fit", "stop", "calibration"), "validation": ("validation",)}


def read_examples(
    asked: DatasetSplit, names: Sequence[str], of_parents: Sequence[str], inputs: Mapping[str, Path], where: str
) -> Examples:
    """Return the committed answers of one split with their labels.

    Args:
        asked: The split.
        names: The views that the reader reads.
        of_parents: Those that the readers on which it builds read besides.
        inputs: `manifest`, `graded`; `features` where states are read; `view/<name>` for each view.
        where: The reader that errors name.

    Raises:
        ArtifactError: An answer belongs to a role that readers may not see.
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
