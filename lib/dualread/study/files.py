"""The files of a study, merged as Snakemake merges them, and checked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dualread.errors import ConfigError
from dualread.store.files import plain
from dualread.study.config import resolve
from dualread.study.sections import Config

_MOST_BYTES, _MOST_ENTRIES = 10**7, 10**6


def load(files: Sequence[Path], root: Path) -> Config:
    """Return the study of `files`, laid over the repository's config.yaml in this order.

    Folders of checkpoints are not looked for, because a forecast reads none of them.

    Args:
        files: The files that follow --configfile in a call of Snakemake.
        root: The repository.

    Raises:
        ConfigError: A file is missing or holds no mapping, or the study is not valid.
    """
    merged: dict[str, Any] = {}
    for file in (root / "config.yaml", *files):
        merged = laid_over(merged, read(file))
    return resolve(merged, source=", ".join(["config.yaml", *(file.name for file in files)]))


def laid_over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge as Snakemake does with --configfile: mappings key by key, everything else replaced."""
    both = {key: value for key, value in changes.items() if isinstance(value, dict) and isinstance(base.get(key), dict)}
    return {**base, **changes, **{key: laid_over(base[key], value) for key, value in both.items()}}


def read(file: Path) -> dict[str, Any]:
    """Return the contents of a file of a study.

    Raises:
        ConfigError: The file is missing, is no YAML, or holds no mapping.
    """
    try:
        content = parsed(plain(file).read_bytes())
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{file}{_place(error)}. Correct it there, or in the lines above.") from error
    except (OSError, ValueError, TypeError, yaml.YAMLError) as error:
        raise ConfigError(f"{file}: cannot be read ({error}). Name a YAML file; run in a checkout.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: holds a {type(content).__name__}, expected sections of a config.")
    return content


def parsed(text: bytes) -> Any:
    """Return what a YAML text holds, in bounded time and memory.

    An alias stands for all of what it names, so that ten short lines can stand for a thousand million entries.

    Raises:
        ValueError: The text is too long, nested too deeply, or its aliases stand for too much.
        yaml.YAMLError: It is no YAML.
    """
    if len(text) > _MOST_BYTES:
        raise ValueError(f"it has {len(text)} bytes, expected at most {_MOST_BYTES}")
    try:
        loader = yaml.SafeLoader(text.decode("utf-8-sig"))
        node = loader.get_single_node()
        if node is None:
            return None
        if (n := _entries(node, {})) > _MOST_ENTRIES:
            raise ValueError(f"its aliases stand for {n:.1e} entries, expected at most {_MOST_ENTRIES}")
        return loader.construct_document(node)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _entries(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many nodes a node stands for, each alias written out; `known` are those counted before."""
    if (found := known.get(id(node))) is None:
        known[id(node)] = _MOST_ENTRIES + 1  # a node inside itself
        inside = node.value if isinstance(node, yaml.CollectionNode) else ()
        parts = (part for one in inside for part in (one if isinstance(one, tuple) else (one,)))
        found = known[id(node)] = 1 + sum(_entries(part, known) for part in parts)
    return found


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f": line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{where}: not YAML: {', '.join(filter(None, [error.problem, error.context]))}"
