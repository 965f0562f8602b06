"""`dualread compare`: which artifacts, tables and figures of two results folders differ in their bytes."""

import argparse
from pathlib import Path

from dualread.store.differences import compared

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
    comparison = compared(options.before, options.after)
    changed = [artifact for artifact in comparison.changed if artifact.stage not in options.ignore]
    for artifact in changed:
        more = f" and {len(artifact.files) - _SHOWN} more" if len(artifact.files) > _SHOWN else ""
        where = "; first here" if artifact.is_first else ""
        print(f"{artifact.stage} {artifact.place}: {', '.join(artifact.files[:_SHOWN])}{more}{where}")
    for folder, places in ((options.before, comparison.only_before), (options.after, comparison.only_after)):
        for place in places:
            print(f"only in {folder}: {place}")
    text = f"{comparison.n_equal} artifacts with equal bytes, {len(changed)} with others"
    if n_ignored := len(comparison.changed) - len(changed):
        text += f", {n_ignored} of ignored stages with others"
    print(f"{text}, {len(comparison.only_before)} and {len(comparison.only_after)} that only one folder has")
    return int(bool(changed or comparison.only_before or comparison.only_after))
