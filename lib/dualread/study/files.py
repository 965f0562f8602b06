"""The files of a study, merged and checked."""

import copy
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from dualread import limits
from dualread.errors import ConfigError
from dualread.schema.study import Config
from dualread.source_snapshot import ROOT
from dualread.store.differences import differing, flat
from dualread.store.digest import plain
from dualread.study.config import resolve


def load(files: Sequence[Path], root: Path) -> Config:
    """Return the study of `files`, laid over the config.yaml of the repository `root` in this order.

    Folders of checkpoints are not looked for, because a forecast reads none of them.
    """
    return resolve(merged(files, root), source=", ".join(["config.yaml", *(file.name for file in files)]))


def merged(files: Sequence[Path], root: Path, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the entries of the config.yaml of the repository `root`, and of `files` and `given` laid over it in this
    order.

    So what a file adds comes after what it is laid over. Snakemake's own merging has the entries of later files first.
    """
    config: dict[str, Any] = {}
    for changes in (*map(read, (root / "config.yaml", *files)), given or {}):
        config = laid_over(config, changes)
    return config


def selection(files: Sequence[Path], given: Mapping[str, Any] | None = None) -> str | None:
    """Return which part of a study its files select, as text; None for a whole study.

    A study may itself be a part of config.yaml. A selection is what a file says that names no study.
    """
    entries = [*map(read, files), given or {}]
    chosen = [entry["only"] for entry in entries if isinstance(entry.get("only"), dict) and "study" not in entry]
    both = {key: names for only in chosen for key, names in only.items() if names is not None}
    return "; ".join(f"{key}: {', '.join(map(str, names))}" for key, names in both.items() if names) or None


def changed_settings(planned: Mapping[str, Any], folder: Path) -> tuple[list[str], list[str]]:
    """Return the files of a study, and a line per setting that differs from those of its study.json, `planned`.

    Where a study is stored and what a machine has is no setting of a result. Snakemake ran, and found the files, two
    folders above the results in `folder`.
    """
    files = list(planned.get("files", []))
    try:
        config = merged([folder.parent.parent / file for file in files], ROOT.parents[1], planned.get("given"))
        now = resolve(config, with_plugins=False).as_mapping()  # the files and `given` may be somebody else's
    except ConfigError as error:
        return ["config.yaml", *files], [str(error)]
    before, after = ({**settings, "store": None, "machine": None} for settings in (planned["settings"], now))
    return ["config.yaml", *files], list(differing("setting", flat(before), flat(after)))


def laid_over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge as Snakemake does with --configfile: mappings key by key, everything else replaced."""
    both = {key: value for key, value in changes.items() if isinstance(value, dict) and isinstance(base.get(key), dict)}
    return {**base, **changes, **{key: laid_over(base[key], value) for key, value in both.items()}}


def read(file: Path) -> dict[str, Any]:
    """Return the contents of a file of a study."""
    try:
        content = parsed(plain(file).read_bytes())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}: line {mark.line + 1}, column {mark.column + 1}" if mark else f"{file}"
        problem = ", ".join(filter(None, [error.problem, error.context]))
        raise ConfigError(f"{where}: not YAML: {problem}. Correct it there, or in the lines above.") from error
    except (OSError, ValueError, TypeError, yaml.YAMLError) as error:
        raise ConfigError(f"{file}: cannot be read ({error}). Name a YAML file; run in a checkout.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: holds a {type(content).__name__}, expected sections of a config.")
    return content


def parsed(text: bytes) -> Any:
    """Return what a YAML text holds, in bounded time and memory.

    An alias stands for all of what it names, so that ten short lines can stand for a thousand million entries.
    """
    if len(text) > limits.YAML_BYTES:
        raise ValueError(f"it has {len(text)} bytes, expected at most {limits.YAML_BYTES}")
    try:
        return copy.deepcopy(_constructed(text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


@lru_cache(maxsize=4)  # every study is laid over the same config.yaml, which takes a twentieth of a second
def _constructed(text: bytes) -> Any:
    loader = yaml.SafeLoader(text.decode("utf-8-sig"))
    node = loader.get_single_node()
    if node is None:
        return None
    if (n := _entries(node, {})) > limits.YAML_ENTRIES:
        raise ValueError(f"its aliases stand for {n:.1e} entries, expected at most {limits.YAML_ENTRIES}")
    return loader.construct_document(node)


def _entries(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many nodes a node stands for, each alias written out; `known` are those counted before."""
    if (count := known.get(id(node))) is None:
        known[id(node)] = limits.YAML_ENTRIES + 1  # a node inside itself
        _refuse_doubles(node)
        inside = node.value if isinstance(node, yaml.CollectionNode) else ()
        parts = (part for child in inside for part in (child if isinstance(child, tuple) else (child,)))
        count = known[id(node)] = 1 + sum(_entries(part, known) for part in parts)
    return count


def _refuse_doubles(node: yaml.Node) -> None:
    first: dict[tuple[str, str], int] = {}
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(key, yaml.ScalarNode) and not key.tag.endswith(":merge"):
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in first:
                problem = f"{key.value!r} is there twice, first in line {first[name]}"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            first[name] = line
