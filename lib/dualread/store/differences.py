"""What differs between two results of one output: the parts of their keys."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dualread.errors import ConfigError
from dualread.store.code import library, stage_roots
from dualread.store.digest import content
from dualread.store.key import Action
from dualread.store.manifest import RECORD_NAME, Manifest
from dualread.store.place import Target
from dualread.store.store import Store


def described(manifest: Manifest, record: Mapping[str, Any], seed: str = "") -> str:
    """Return the first half of a line about an artifact: stage, key, digest of the code with edits since, seconds."""
    action, seconds = manifest.action, f"{record['seconds']:.1f} s" if "seconds" in record else "time not recorded"
    return f"{action.stage} {manifest.key[:8]}{seed}  code {action.code[:8]}{edited(action, record)}  {seconds}"


def edited(action: Action, record: Mapping[str, Any]) -> str:
    """Return a remark on the modules that were edited since they computed the artifact, or "" if none were."""
    try:
        now = library().table(stage_roots(action.stage, action.spec))
    except ConfigError as error:
        return f" (code not found: {error})"
    then = record.get("modules", now)
    names = [name for name in sorted(then.keys() | now.keys()) if then.get(name) != now.get(name)]
    return f" (edited since: {', '.join(names)})" if names else ""


def predecessor(found: Target, store: Store) -> str | None:
    """Return the key of the previous artifact that the same stage wrote for the same output; None if there is none."""
    made = found.manifest
    record = store.record(made.key)
    output = json.dumps(record.get("output")).encode()
    earlier = []
    for key in store.stored_keys():
        # Most records are for other outputs, so parsing them would waste time.
        if key != made.key and output in (content(store.entry(key) / RECORD_NAME) or b""):
            other = store.record(key)
            if "output" in other and other["output"] == record.get("output") and other["written"] <= record["written"]:
                earlier.append((other["written"], key))
    keys = (key for _, key in sorted(earlier, reverse=True))
    return next((key for key in keys if (it := store.find(key)) and it.action.stage == made.action.stage), None)


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

    `old` and `new` are the digests of the modules of their codes, by name; empty if they were not recorded.
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
