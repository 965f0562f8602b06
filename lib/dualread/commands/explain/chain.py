"""The artifacts below a run, one line each: what made it, how long that took, how many rows it has, where it is."""

from collections.abc import Collection, Iterator
from pathlib import Path

import polars as pl

from dualread.commands.explain.runs import manifest_of
from dualread.errors import ArtifactError
from dualread.store.lineage import edited
from dualread.store.manifest import Manifest
from dualread.store.store import Store


class Chain:
    """Walks from artifacts to what they were made from, each once, and keeps in mind the versions that it met.

    `shards` are the (data set, split) pairs that matter: inputs of others are left out.
    """

    def __init__(self, store: Store, shards: Collection[tuple[str, str]]) -> None:
        self._store = store
        self._shards = set(shards)
        self._seen: set[str] = set()
        self._versions: dict[str, set[str]] = {}

    def lines(self, name: str, key: str, indent: str = "") -> Iterator[str]:
        """Yield the lines of the artifact `key`, called `name`, and of everything below it."""
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
        """Return the versions that the artifacts so far were made with; several, where they differ."""
        return ", ".join(f"{name} {' and '.join(sorted(found))}" for name, found in sorted(self._versions.items()))

    def _inputs(self, manifest: Manifest) -> list[str]:
        """Return the inputs to follow; first those that are deepest, so that what others share stands below them."""
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
        """Return the rows of an artifact's table, or the weights of a checkpoint or a reader."""
        folder, files = self._store.entry(manifest.key), manifest.files
        tables = [name for name in files if name.endswith(".parquet")]
        weights = [name for name in files if name.endswith("model.safetensors")]
        if weights:
            return f"{weights[0]} {files[weights[0]]['sha256'][:8]}  "
        return f"{sum(_n_rows(folder / name) for name in tables):,} rows  " if len(tables) == 1 else ""


def _shard(name: str) -> tuple[str, str] | None:
    """Return the (data set, split) that an input is of; None where its name holds none, as of a reader's inputs."""
    kind, *rest = name.split("/")
    if kind == "view":
        rest = rest[1:]
    return (rest[0], rest[1]) if kind != "parent" and len(rest) >= 2 else None


def _n_rows(path: Path) -> int:
    try:
        return pl.scan_parquet(path).select(pl.len()).collect().item()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ArtifactError(f"{path}: cannot be read ({error}). `dualread verify` says what is damaged.") from error
