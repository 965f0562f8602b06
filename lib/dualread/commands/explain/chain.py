"""The artifacts that a run was made from, one line each: stage, key, code, seconds, rows, and where it is."""

from collections.abc import Collection, Iterator
from pathlib import Path

import polars as pl

from dualread.commands.explain.runs import manifest_of
from dualread.errors import ArtifactError
from dualread.store.lineage import edited
from dualread.store.manifest import Manifest
from dualread.store.store import Store


class Chain:
    """Walks from artifacts to their inputs, visiting each once, and collects the package versions.

    Args:
        store: The store that holds the artifacts.
        shards: The (data set, split) pairs of interest; inputs of other shards are left out.
    """

    def __init__(self, store: Store, shards: Collection[tuple[str, str]]) -> None:
        self._store = store
        self._shards = set(shards)
        self._seen: set[str] = set()
        self._versions: dict[str, set[str]] = {}

    def lines(self, name: str, key: str, indent: str = "") -> Iterator[str]:
        """Yield the lines of the artifact `key`, labelled `name`, and of everything that it was made from."""
        try:
            manifest = manifest_of(self._store, key)
        except ArtifactError:
            yield f"{indent}{name}: {key[:8]} is not in the store"
            return
        if key in self._seen:
            yield f"{indent}{name}: {key[:8]}, above"
            return
        self._seen.add(key)
        yield f"{indent}{name}: {self._described(manifest)}"
        for package, version in {"python": manifest.action.python, **manifest.action.packages}.items():
            self._versions.setdefault(package, set()).add(version)
        above = []
        for below in self._inputs(manifest):
            parent = manifest.input_keys.get(below)
            if parent is None:
                path = self._store.record(key).get("input_paths", {}).get(below, "raw data")
                yield f"{indent}  {below}: {path}, sha256 {manifest.action.inputs[below][:8]}"
            elif parent in self._seen:
                above.append(f"{below} {parent[:8]}")
            else:
                yield from self.lines(below, parent, indent + "  ")
        if above:
            yield f"{indent}  above: {', '.join(above)}"

    def versions(self) -> str:
        """Return the package versions of all artifacts visited so far; several versions of a package if they differ."""
        return ", ".join(f"{name} {' and '.join(sorted(found))}" for name, found in sorted(self._versions.items()))

    def _inputs(self, manifest: Manifest) -> list[str]:
        """Return the inputs to follow, deepest first: a shared input is printed at the end of its longest path."""
        names = [name for name in manifest.action.inputs if (shard := _shard(name)) is None or shard in self._shards]
        order = ("predictions", "reader", "parent", "features", "view", "graded", "generations", "actor", "pairs")
        ranks = {name: order.index(kind) for name in names if (kind := name.split("/")[0]) in order}
        return sorted(names, key=lambda name: (ranks.get(name, len(order)), name))

    def _described(self, manifest: Manifest) -> str:
        record, action = self._store.record(manifest.key), manifest.action
        seconds = f"{record['seconds']:.1f} s" if "seconds" in record else "time not recorded"
        seed = f"  seed {action.spec['seed']}" if "seed" in action.spec else ""
        code = f"code {action.code[:8]}{edited(action, record)}"
        held = self._held(manifest)
        where = record.get("output", "")
        return f"{action.stage} {manifest.key[:8]}{seed}  {code}  {seconds}  {held}{where}"

    def _held(self, manifest: Manifest) -> str:
        """Return the rows of an artifact's table, or the digest of its weights, or else what its stage said of it."""
        folder, files = self._store.entry(manifest.key), manifest.files
        tables = [name for name in files if name.endswith(".parquet")]
        weights = [name for name in files if name.endswith("model.safetensors")]
        if weights:
            return f"{weights[0]} {files[weights[0]]['sha256'][:8]}  "
        if len(tables) == 1:
            return f"{_n_rows(folder / tables[0]):,} rows  "
        return f"{summary}  " if (summary := self._store.record(manifest.key).get("summary")) else ""


def _shard(name: str) -> tuple[str, str] | None:
    """Return the (data set, split) of an input, or None if its name has none, as the inputs of a reader."""
    kind, *rest = name.split("/")
    if kind == "view":
        rest = rest[1:]
    return (rest[0], rest[1]) if kind != "parent" and len(rest) >= 2 else None


def _n_rows(path: Path) -> int:
    try:
        return pl.scan_parquet(path).select(pl.len()).collect().item()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ArtifactError(f"{path}: cannot be read ({error}). `dualread verify` says what is damaged.") from error
