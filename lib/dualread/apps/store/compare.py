"""`dualread compare`: which artifacts, tables and figures of two results folders differ in their bytes."""

import argparse
from pathlib import Path

from dualread.store.differences import Compared, compared

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
    found = compared(options.before, options.after)
    changed = [one for one in found.changed if one.stage not in options.ignore]
    for one in changed:
        more = f" and {len(one.files) - _SHOWN} more" if len(one.files) > _SHOWN else ""
        where = "; first here" if one.is_first else ""
        print(f"{one.stage} {one.place}: {', '.join(one.files[:_SHOWN])}{more}{where}")
    for folder, places in ((options.before, found.only_before), (options.after, found.only_after)):
        for place in places:
            print(f"only in {folder}: {place}")
    print(_sums(found, len(changed)))
    return int(bool(changed or found.only_before or found.only_after))


def _sums(found: Compared, n_changed: int) -> str:
    ignored = len(found.changed) - n_changed
    text = f"{found.n_equal} artifacts with equal bytes, {n_changed} with others"
    text += f", {ignored} of ignored stages with others" if ignored else ""
    return f"{text}, {len(found.only_before)} and {len(found.only_after)} that only one folder has"
