"""`dualread compare`: which artifacts, tables and figures of two results folders differ in their bytes."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from dualread.digests import MANIFEST_NAME
from dualread.errors import ConfigError
from dualread.store.graph import artifacts_below
from dualread.store.manifest import Manifest, read_manifest
from dualread.store.store import Store

HELP = "say which results of two folders differ in their bytes"
DESCRIPTION = """
Compare two results folders, artifact by artifact, by the bytes of their files: after an edit that should change no
result, after an upgrade of packages, on another machine, or the results of a colleague. Keys may differ: only bytes
count. BEFORE and AFTER are results/<study> of the same study in two checkouts, or folders that hold several studies.

Each artifact that differs has a line with its files. Where all that it was made from is equal, the line ends with
"first here": the difference begins in this stage. Then follow the artifacts that only one folder has, and the sums. The
exit code is 1 if anything differs, else 0. Files without a MANIFEST.json, such as report.html, are not compared.

    dualread compare ../before/results/embedded results/embedded
"""
_SHOWN = 3  # files that are named of one artifact


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("before", metavar="BEFORE", type=Path, help="a results folder")
    parser.add_argument("after", metavar="AFTER", type=Path, help="the folder to compare it with")
    parser.add_argument("--ignore", metavar="STAGE", nargs="+", default=[], help="stages whose artifacts may differ")


def run(options: argparse.Namespace) -> int:
    """Print one line per artifact that differs or that only one folder has; return 1 if there are any, else 0."""
    old, new = (_artifacts(folder) for folder in (options.before, options.after))
    both = sorted(old.keys() & new.keys())
    changed = [place for place in both if old[place].files != new[place].files]
    named = [place for place in changed if new[place].action.stage not in options.ignore]
    first = {place for place in named if old[place].action.inputs == new[place].action.inputs}
    for place in sorted(named, key=lambda place: place not in first):
        before, after = old[place].files, new[place].files
        files = [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
        more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        where = "; first here" if place in first else ""
        print(f"{new[place].action.stage} {place}: {', '.join(files[:_SHOWN])}{more}{where}")
    only_before, only_after = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    for folder, places in ((options.before, only_before), (options.after, only_after)):
        for place in places:
            print(f"only in {folder}: {place}")
    ignored = f", {len(changed) - len(named)} of ignored stages with others" if len(changed) > len(named) else ""
    equal = f"{len(both) - len(changed)} artifacts with equal bytes, {len(named)} with others{ignored}"
    print(f"{equal}, {len(only_before)} and {len(only_after)} that only one folder has")
    return int(bool(named or only_before or only_after))


def _artifacts(folder: Path) -> Mapping[str, Manifest]:
    """Return the manifests of all artifacts below a folder, but not those of a store in it, by place."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder. Expected a results folder, such as results/embedded.")
    paths = {
        directory.relative_to(folder).as_posix(): directory
        for directory in artifacts_below(folder, Store(folder / "store"))
    }
    if not paths:
        raise ConfigError(f"{folder}: holds no MANIFEST.json, so no artifact. Expected a results folder.")
    return {place: read_manifest(directory / MANIFEST_NAME) for place, directory in paths.items()}
