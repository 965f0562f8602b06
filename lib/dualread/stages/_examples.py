"""Read the answers on which a reader is fitted, with labels, hidden states and views."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dualread.artifacts.schemas.features import FEATURES
from dualread.artifacts.schemas.graded import GRADED
from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.tables import read_table
from dualread.artifacts.tensors import lazy_tensors
from dualread.errors import ArtifactError
from dualread.readers.base import Examples
from dualread.readers.join import committed, join_answers
from dualread.stages._views import read_views

# The roles in each split that a reader may see.
PARTITIONS = {"train": ("fit", "stop", "calibration"), "validation": ("validation",)}


def read_examples(spec: Mapping[str, Any], inputs: Mapping[str, Path], where: str) -> Examples:
    """Return the committed answers of one split with their labels.

    Args:
        spec: examples {"dataset", "split"}, views [names].
        inputs: `manifest`, `graded`; `features` where states are read; `view/<name>` for each view.
        where: The reader that errors name.

    Raises:
        ArtifactError: An answer belongs to another split, or to a role that readers may not see.
    """
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
    graded = committed(read_table(inputs["graded"] / "graded.parquet", GRADED))
    index = read_table(inputs["features"] / "features.parquet", FEATURES) if "features" in inputs else None
    source = lazy_tensors(inputs.get("features", Path()) / "features.safetensors")
    answers = join_answers(manifest, graded.drop("correct"), index, source, where=where)
    dataset, split = spec["examples"]["dataset"], spec["examples"]["split"]
    found = set(zip(answers.table["dataset"], answers.table["split"], strict=True))
    if found - {(dataset, split)}:
        raise ArtifactError(f"{where}: found answers of {sorted(found)}. Expected only {dict(spec['examples'])}.")
    if strange := sorted(set(answers.table["role"]) - set(PARTITIONS[split])):
        seen = ", ".join(PARTITIONS[split])
        raise ArtifactError(f"{where}: found answers of role {', '.join(strange)}. Expected only {seen}.")
    views = {name: inputs[f"view/{name}"] for name in spec["views"] if f"view/{name}" in inputs}
    answers = replace(answers, views=read_views(spec["views"], views, answers, where=where))
    return Examples(answers=answers, correct=graded["correct"].to_numpy())
