"""The artifacts that a run was made from, one line each: stage, key, code, seconds, rows, and where it is."""

from collections.abc import Collection
from pathlib import Path

import polars as pl

from dualread.errors import ArtifactError
from dualread.store.differences import described
from dualread.store.graph import Graph, Lineage
from dualread.store.manifest import Manifest
from dualread.store.store import Store


class Chain(Lineage):
    """The lines of several runs, which share artifacts.

    Args:
        store: The store that holds the artifacts.
        shards: The (data set, split) pairs of interest; inputs of other shards are left out.
    """

    def __init__(self, store: Store, shards: Collection[tuple[str, str]]) -> None:
        super().__init__(Graph(store), self._line, self._followed)
        self._store, self._shards = store, set(shards)

    def versions(self) -> str:
        """Return the package versions of all artifacts shown so far; several versions of a package if they differ."""
        by_package: dict[str, set[str]] = {}
        for manifest in self.shown.values():
            for package, version in {"python": manifest.action.python, **manifest.action.packages}.items():
                by_package.setdefault(package, set()).add(version)
        return ", ".join(f"{name} {' and '.join(sorted(versions))}" for name, versions in sorted(by_package.items()))

    def _followed(self, manifest: Manifest) -> list[str]:
        """Return the inputs to follow, deepest first: a shared input is printed at the end of its longest path."""
        names = [name for name in manifest.action.inputs if (shard := _shard(name)) is None or shard in self._shards]
        order = ("predictions", "reader", "parent", "features", "view", "graded", "generations", "actor", "pairs")
        ranks = {name: order.index(kind) for name in names if (kind := name.split("/")[0]) in order}
        return sorted(names, key=lambda name: (ranks.get(name, len(order)), name))

    def _line(self, manifest: Manifest) -> str:
        record, action = self._store.record(manifest.key), manifest.action
        seed = f"  seed {action.spec['seed']}" if "seed" in action.spec else ""
        return f"{described(manifest, record, seed)}  {self._held(manifest)}{record.get('output', '')}"

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
