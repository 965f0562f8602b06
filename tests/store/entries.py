"""Create entries of a store without running a stage."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dualread.store.key import Action
from dualread.store.manifest import Manifest
from dualread.store.results import link
from dualread.store.store import Store

HOUR = 3600.0


def publish(
    store: Store,
    stage: str,
    files: Mapping[str, str] | Callable[[Path], Any],
    *,
    spec: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Manifest] | None = None,
    raw: Mapping[str, str] | None = None,
    output: Path | None = None,
    **record: Any,
) -> Manifest:
    """Publish an entry of `files` (texts by name, or a function that writes them), and link it to `output`.

    `raw` are the digests of inputs that are raw data.
    """
    inputs = inputs or {}
    digests = {name: manifest.digest for name, manifest in inputs.items()} | dict(raw or {})
    action = Action(stage=stage, code="c" * 64, spec=spec or {}, inputs=digests, packages={"polars": "2.1.0"})
    with store.scratch(action.key) as scratch:
        if callable(files):
            files(scratch)
        else:
            for name, text in files.items():
                (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                (scratch / name).write_text(text)
        keys = {name: manifest.key for name, manifest in inputs.items()}
        record = {"seconds": 1.5, "output": str(output), **record}
        manifest = store.publish(scratch, action, input_keys=keys, record=record)
    if output is not None:
        link(store.entry(manifest.key), manifest, output)
    return manifest


def grow_old(path: Path, seconds: float) -> None:
    """Set back the times of `path`, and of everything in it, by `seconds`."""
    for one in (path, *path.rglob("*")):
        changed = one.stat().st_mtime - seconds
        os.utime(one, (changed, changed))
