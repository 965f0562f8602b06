"""An actor that comes as a checkpoint, from a folder or the hub: a backbone as it is, or one trained elsewhere.

Output: checkpoint/ (weights, tokenizer, chat template, image processor) and an empty train_log.parquet, the same form
as an actor that is trained here.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread.artifacts.schemas.train_log import TRAIN_LOG
from dualread.artifacts.tables import from_rows, write_table
from dualread.errors import ArtifactError

_LEFT_OUT = ("*.bin", "*.pt", "*.pth", "*.gguf", "*.md", ".git*", ".cache")  # other formats of the weights, and pages
_NEEDED = ("config.json", "tokenizer_config.json", "preprocessor_config.json|processor_config.json", "*.safetensors")


def compute(spec: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    """Copy the hub repository `spec["source"]` ({"hub", "revision"}), or the raw input `source`, a folder.

    Raises:
        ArtifactError: A file that every checkpoint has is not there.
    """
    if "hub" in spec["source"]:
        from huggingface_hub import snapshot_download

        name, revision = spec["source"]["hub"], spec["source"]["revision"]
        folder = Path(snapshot_download(name, revision=revision, ignore_patterns=list(_LEFT_OUT)))
    else:
        name, folder = str(inputs["source"]), inputs["source"]
    # It becomes part of the store, so that whoever pulls a store can run without the hub or the folder.
    shutil.copytree(folder, out / "checkpoint", symlinks=False, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    for needed in _NEEDED:
        if not any(path for pattern in needed.split("|") for path in (out / "checkpoint").glob(pattern)):
            raise ArtifactError(f"{name}: no file {needed.replace('|', ' or ')}. Expected a checkpoint in safetensors.")
    write_table(out / "train_log.parquet", from_rows([], TRAIN_LOG), TRAIN_LOG)
    n_files = sum(path.is_file() for path in (out / "checkpoint").rglob("*"))
    return f"copied {n_files} files of {name}"
