"""Two results folders side by side: which artifacts have other bytes. Keys are not compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualread.errors import ConfigError
from dualread.store.digest import MANIFEST_NAME
from dualread.store.manifest import Manifest, read_manifest


@dataclass(frozen=True, kw_only=True)
class Changed:
    """An artifact that has other bytes in the second folder.

    Attributes:
        place: Its directory below the results folder.
        stage: What makes it.
        files: Its files that differ, or that only one of both has.
        is_first: Whether all its inputs have equal bytes, so that the difference begins here.
    """

    place: str
    stage: str
    files: Sequence[str]
    is_first: bool


@dataclass(frozen=True, kw_only=True)
class Compared:
    """All artifacts of two results folders.

    Attributes:
        n_equal: How many have equal bytes.
        changed: Those that have not, sorted by place, the first in each chain of inputs before the others.
        only_before: Places that only the first folder has.
        only_after: Places that only the second folder has.
    """

    n_equal: int
    changed: Sequence[Changed]
    only_before: Sequence[str]
    only_after: Sequence[str]


def compared(before: Path, after: Path) -> Compared:
    """Compare two results folders by what the manifests of their artifacts say of their files.

    Raises:
        ArtifactError: A manifest is damaged.
        ConfigError: A folder holds no artifact.
    """
    old, new = _artifacts(before), _artifacts(after)
    both = sorted(old.keys() & new.keys())
    changed = [_changed(place, old[place], new[place]) for place in both if old[place].files != new[place].files]
    return Compared(
        n_equal=len(both) - len(changed),
        changed=sorted(changed, key=lambda one: not one.is_first),
        only_before=sorted(old.keys() - new.keys()),
        only_after=sorted(new.keys() - old.keys()),
    )


def _changed(place: str, old: Manifest, new: Manifest) -> Changed:
    names = sorted(old.files.keys() | new.files.keys())
    return Changed(
        place=place,
        stage=new.action.stage,
        files=[name for name in names if old.files.get(name) != new.files.get(name)],
        is_first=old.action.inputs == new.action.inputs,
    )


def _artifacts(folder: Path) -> Mapping[str, Manifest]:
    """Return the manifests of all artifacts below a folder, but not those of a store in it, by place."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder. Expected a results folder, such as results/embedded.")
    # An artifact is a folder of links into the store; below it is nothing else.
    found = {path.parent.relative_to(folder): path for path in folder.rglob(MANIFEST_NAME)}
    manifests = {
        place.as_posix(): read_manifest(path) for place, path in found.items() if place.parts[:1] != ("store",)
    }
    if not manifests:
        raise ConfigError(f"{folder}: holds no MANIFEST.json, so no artifact. Expected a results folder.")
    return manifests
