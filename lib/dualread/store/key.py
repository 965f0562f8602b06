"""The key of a result: a digest of everything that can change it, by which the store finds it.

An edit that reaches none of its fields computes nothing again, and an edit that is taken back finds what was there
before it. Machine, time and paths are no fields: they are recorded, and change no result. `dualread explain --why`
shows in which fields two results of one output differ. Next: `dualread.store.store`, which finds the entry of a key.
"""

import importlib.metadata
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any

from dualread.digests import digest_of

FIELDS = ("stage", "code", "spec", "inputs", "packages", "python")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Distributions whose names differ from those of the packages that they install. This only saves time: other names are
# looked up among all installed distributions, which takes a tenth of a second.
_DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "PyYAML"}
_ABSENT = "not installed"


@dataclass(frozen=True, kw_only=True)
class Action:
    """Everything that determines a result; two equal actions share one entry of the store."""

    stage: str  # name of the stage
    code: str  # digest of the code closure
    spec: Mapping[str, Any]  # the stage's settings, as plain JSON values
    inputs: Mapping[str, str]  # {input name: content digest}
    packages: Mapping[str, str]  # {distribution: public version} of all imported packages
    python: str = PYTHON  # major and minor version of Python

    def fields(self) -> dict[str, Any]:
        """Return the action as a JSON object."""
        return {name: getattr(self, name) for name in FIELDS}

    @cached_property
    def recipe(self) -> str:
        """The digest of what is known of the action before its inputs are there, on every machine."""
        return digest_of({"stage": self.stage, "code": self.code, "spec": self.spec, "python": self.python})

    @cached_property
    def key(self) -> str:
        """The action's name in the store."""
        return digest_of(self.fields())


def public_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return {distribution: version, or "not installed"} of the importable top-level names `packages`.

    Local labels are cut off (`2.13.0+cpu` becomes `2.13.0`), so that a laptop finds entries that a cluster computed. A
    package that is not installed counts, since the stage may import it in a branch that does not run here.
    """
    return {name: version for package in sorted(packages) for name, version in _versions(package)}


def replaced(versions: Mapping[str, str]) -> list[str]:
    """Return those distributions of which now another version is installed than `versions` says, with both versions."""
    now = {name: dict(_installed(name)).get(name, _ABSENT) for name in versions}
    return [f"{name} ({versions[name]}, now {now[name]})" for name in versions if now[name] != versions[name]]


@cache
def _versions(package: str) -> tuple[tuple[str, str], ...]:
    known = _DISTRIBUTIONS.get(package, package)
    versions = _installed(known)
    if not versions and find_spec(package) is not None:
        versions = tuple(row for name in sorted(_providers().get(package, ())) for row in _installed(name))
    return versions or ((_normal(known), _ABSENT),)


def _installed(distribution: str) -> tuple[tuple[str, str], ...]:
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ()
    return ((_normal(distribution), version.partition("+")[0]),)


_providers = cache(lambda: importlib.metadata.packages_distributions())


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
