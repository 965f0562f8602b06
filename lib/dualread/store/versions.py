"""The versions of installed packages, as keys have them."""

import importlib.metadata
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec

# Distributions whose names differ from those of the packages that they install. This only saves time: other names are
# looked up among all installed distributions, which takes a tenth of a second.
_DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "PyYAML"}
_ABSENT = "not installed"


def public_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return {distribution: version} of the importable top-level names `packages`.

    Local labels are cut off (`2.13.0+cpu` becomes `2.13.0`), so that a laptop finds entries that a cluster computed. A
    package that is not installed is listed as "not installed", since the stage may import it in a branch that does not
    run here.
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
        versions = tuple(row for name in _providers().get(package, ()) for row in _installed(name))
    return versions or ((_normal(known), _ABSENT),)


def _installed(distribution: str) -> tuple[tuple[str, str], ...]:
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ()
    return ((_normal(distribution), version.partition("+")[0]),)


@cache
def _providers() -> dict[str, list[str]]:
    return {package: sorted(names) for package, names in importlib.metadata.packages_distributions().items()}


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
