"""Stage copy_checkpoint: a checkpoint from a folder or the hub, untrained or trained elsewhere -> an actor.

Output: checkpoint/ (weights, tokenizer, chat template, image processor) and an empty train_log.parquet, the same files
as for an actor that is trained here. An adapter is merged into its base.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from dualread.artifacts.tables import from_rows, write_table
from dualread.schema.backbones import CopyCheckpointSpec
from dualread.schema.base import Repository
from dualread.schema.columns import TRAIN_LOG


def compute(spec: CopyCheckpointSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Copy the spec's repository, or the folder that is the input `source`; or merge an adapter into it.

    An adapter is the spec's or the input `adapter`. The input `base` is the actor that it changes where it is neither
    of the two above. The checkpoint is checked before it is copied, because a model may have many gigabytes.
    """
    from dualread.models.backbones.checkpoint import LEFT_OUT, check, check_values
    from dualread.models.backbones.processor import load_processor
    from dualread.models.backbones.tokenizer import forget_calls

    folder = inputs["base"] / "checkpoint" if "base" in inputs else _folder(spec.repository, inputs.get("source"))
    name = folder if spec.repository is None else spec.repository.hub
    check(folder, spec.model)
    check_values(folder)
    # It becomes part of the store, so that a pulled store can be used without the hub or the folder.
    if spec.adapter is None:
        shutil.copytree(folder, out / "checkpoint", symlinks=False, ignore=shutil.ignore_patterns(*LEFT_OUT))
        forget_calls(out / "checkpoint")
        n_files = sum(path.is_file() for path in (out / "checkpoint").rglob("*"))
        summary = f"copied {n_files} files of {name}"
    else:
        from dualread.models.adapters import merge

        adapter, base_name = _folder(spec.adapter.repository, inputs.get("adapter")), spec.adapter.base
        n_modules = merge(adapter, folder, out / "checkpoint", spec.model, base_name=base_name)
        summary = f"merged an adapter of {n_modules} modules ({adapter}) into {base_name or name}"
        template = adapter / "chat_template.jinja"
        if template.is_file() and template.read_text("utf-8") != load_processor(folder, spec.model).chat_template:
            summary += f"; the base's chat template is used, and {template} differs from it"
    write_table(out / "train_log.parquet", from_rows([], TRAIN_LOG), TRAIN_LOG)
    return summary


def _folder(repository: Repository | None, folder: Path | None) -> Path:
    """Return the folder of a repository, downloaded, or the one that is given."""
    from dualread.models.backbones.checkpoint import download

    if repository is not None:
        return download(repository.hub, repository.revision)
    assert folder is not None, "there is a repository or a folder"
    return folder
