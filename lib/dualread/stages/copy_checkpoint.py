"""Stage copy_checkpoint: a checkpoint from a folder or the hub, untrained or trained elsewhere -> an actor.

Output: checkpoint/ (weights, tokenizer, chat template, image processor) and an empty train_log.parquet, the same files
as for an actor that is trained here.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from dualread.artifacts.schemas.train_log import TRAIN_LOG
from dualread.artifacts.tables import from_rows, write_table
from dualread.specs.actors import CopyCheckpointSpec


def compute(spec: CopyCheckpointSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Copy the spec's repository, or the folder that is the input `source`.

    The checkpoint is checked before it is copied, because a model may have many gigabytes.

    Raises:
        ArtifactError: It cannot be downloaded, is not a complete checkpoint, or has NaN or
            infinite values.
    """
    from dualread.models.backbones.checkpoint import LEFT_OUT, check, check_values, download

    if (repository := spec.repository) is not None:
        name, folder = repository.hub, download(repository.hub, repository.revision)
    else:
        name, folder = str(inputs["source"]), inputs["source"]
    check(folder, spec.model)
    check_values(folder)
    # It becomes part of the store, so that a pulled store can be used without the hub or the folder.
    shutil.copytree(folder, out / "checkpoint", symlinks=False, ignore=shutil.ignore_patterns(*LEFT_OUT))
    write_table(out / "train_log.parquet", from_rows([], TRAIN_LOG), TRAIN_LOG)
    n_files = sum(path.is_file() for path in (out / "checkpoint").rglob("*"))
    return f"copied {n_files} files of {name}"
