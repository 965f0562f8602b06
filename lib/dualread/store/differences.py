"""In which parts of their keys two results of one output differ."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dualread.store.key import Action
from dualread.store.manifest import Manifest
from dualread.store.store import Store


def differences(old: Manifest, new: Manifest, store: Store) -> Iterator[str]:
    """Yield one line per part of the key in which two artifacts differ, from `old` to `new`."""
    before, after = old.action, new.action
    if before.stage != after.stage:
        yield f"stage: {before.stage} -> {after.stage}"
    modules = [store.record(manifest.key).get("modules", {}) for manifest in (old, new)]
    yield from changed(before, after, *modules)
    for line in differing("input", before.inputs, after.inputs):
        name = line.split()[1].rstrip(":")
        keys = [manifest.input_keys.get(name, "")[:8] for manifest in (old, new)]
        yield line + (f"; to see why, run: dualread explain {keys[1]} --why --other {keys[0]}" if all(keys) else "")


def changed(before: Action, after: Action, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield one line per part in which two actions differ, besides stage and inputs.

    Args:
        before: The earlier action.
        after: The later one.
        old: The digests of the modules of the earlier code, by name; empty if they were not recorded.
        new: Those of the later code.
    """
    if before.code != after.code:
        recorded = old and new
        yield from differing("code", old, new, show=False) if recorded else ["code: changed (modules not recorded)"]
    yield from differing("spec", flat(before.spec), flat(after.spec))
    if before.python != after.python:
        yield f"python: {before.python} -> {after.python}"
    yield from differing("package", before.packages, after.packages)


def short(value: Any) -> str:
    """Return `value` as text for one line; of a digest its beginning."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:12] if len(text) == 64 and " " not in text else text if len(text) <= 80 else f"{text[:77]}..."


def differing(kind: str, old: Mapping[str, Any], new: Mapping[str, Any], *, show: bool = True) -> Iterator[str]:
    """Yield one line per name in which two mappings differ; `show` prints the values."""
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"{kind} {name}: removed"
        elif name not in old:
            yield f"{kind} {name}: added" + (f" ({short(new[name])})" if show else "")
        elif old[name] != new[name]:
            yield f"{kind} {name}: " + (f"{short(old[name])} -> {short(new[name])}" if show else "changed")


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return the leaves of nested mappings by their dotted names."""
    if isinstance(value, Mapping) and value:
        parts = (flat(member, f"{prefix}.{name}" if prefix else name) for name, member in value.items())
        return {name: leaf for part in parts for name, leaf in part.items()}
    return {prefix: value}
