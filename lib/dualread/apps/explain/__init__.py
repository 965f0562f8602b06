"""`dualread explain`: what an artifact was made from; with `--cell`, where one printed number comes from.

`cells` finds the printed number and the runs that it is the mean of; `report` puts them into text, with the artifacts
that a run was made from and single questions. Everything is read from the store, in which each artifact names its
inputs.
"""

import argparse
import os
from pathlib import Path

from dualread.store.differences import differences, predecessor
from dualread.store.graph import Lineage
from dualread.store.place import HELP as STORE_HELP
from dualread.store.place import (
    Target,
    find_key,
    find_target,
    last_plan,
    last_planned,
    read_study,
    store_of,
    study_folder,
)
from dualread.store.store import Store

HELP = "show what a result was made from, or why it was recomputed"
TARGET = (
    "a table (tables/main.tex), an artifact's directory (results/embedded/metrics), a file in one, or the first"
    " digits of a key as printed in the log (3fa2c1d0)"
)
DESCRIPTION = """
Print what TARGET was made from, one line per artifact: stage, key, digest of the code, seconds and spec, with its
inputs indented below it, and last what its stage said when it computed the artifact, such as what experiments found
about a checkpoint. Modules that were edited since are listed; the workflow would recompute such an artifact.

With --cell, print instead where one number of a table comes from: the seeds that it is the mean of and, for each
seed, its metrics, predictions, readers, features, grades, completions, actor and manifest, with key, code digest,
seconds and number of rows; the lines of code that declare the metric and build the table; the package versions; and
the first questions, with donor, completion, tokens that were read, and confidence. Give words that identify one cell,
in any order; they may include a seed. If no cell has all words, the nearest cells are listed.

    dualread explain tables/main.tex --cell qwen3-vl-tiny,dualread,slake,auroc
    dualread explain tables/main.tex --cell "qwen3-vl-tiny dualread ood6 auroc 17" --sample vqa_rad/test/12
    dualread explain tables/paired.tex --cell method=dualread,baseline=psr,slake,auroc

With --again, print instead why the workflow would make TARGET again: the modules, fields of the spec, packages and
raw inputs that have changed since TARGET, or an artifact behind it, was made, with the pictures that are others now.
Of many artifacts with the same reasons, three are named. Specs are those of the last plan: run `snakemake -n` with
the study first.

    dualread explain tables/main.tex --again

With --why, print instead why TARGET differs from an earlier artifact: the modules, fields of the spec, inputs and
packages that changed. The earlier artifact is the previous one of the same stage and output, unless --other names one.

    dualread explain tables/main.tex --why
"""
_LOOKED_UP = (
    "If an artifact is made again, the jobs that read it are looked at, too. A job whose key is in the store is not"
    " computed: its artifact is taken from there."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("target", metavar="TARGET", help=TARGET)
    parser.add_argument("--cell", metavar="WORDS", help="one number of a table: backbone, method, dataset, metric")
    parser.add_argument("--sample", metavar="ID", help="with --cell: show this question for every seed")
    parser.add_argument("--rows", metavar="N", type=int, default=2, help="with --cell: show N questions (%(default)s)")
    parser.add_argument("--again", action="store_true", help="show why the workflow would make it again")
    parser.add_argument("--why", action="store_true", help="show why it differs from an earlier artifact")
    parser.add_argument(
        "--other", metavar="KEY", help="with --why: the earlier artifact, by the first digits of its key"
    )
    parser.add_argument("--store", type=Path, help=STORE_HELP)


def run(options: argparse.Namespace) -> int:
    """Explain the target in `options`; return the exit code."""
    store = store_of(options.target, options.store)
    target = find_target(options.target, store)
    if options.cell is not None:
        from dualread.apps.explain.report import explain_cell  # here, because the rest does not need polars

        for line in explain_cell(target, store, words=options.cell, sample_id=options.sample, n_rows=options.rows):
            print(line)
        return 0
    if options.again:
        return _again(target, store)
    if not options.why and options.other is None:
        for line in Lineage(store).lines(target.manifest.key):
            print(line)
        if summary := store.record(target.manifest.key).get("summary"):
            print(f"its stage said: {summary}")
        return 0
    other = find_key(options.other, store) if options.other else predecessor(target, store)
    new = target.manifest
    if other is None:
        print(f"{new.action.stage} {new.key[:8]}: the store holds no earlier artifact of the same output")
        return 0
    old = store.manifest(other)
    print(f"{new.action.stage} {new.key[:8]} differs from {old.key[:8]} in:")
    for line in differences(old, new, store):
        print(f"  {line}")
    print(f"Their files are {'identical' if old.digest == new.digest else 'different'}.")
    return 0


def _again(target: Target, store: Store) -> int:
    from dualread.study.again import reasons  # here, because nothing else needs it
    from dualread.study.files import changed_settings

    folder = study_folder(target.copy or target.directory)
    if folder and target.copy is not None and (last := last_planned(folder)) != folder:
        planned = last / os.path.relpath(target.directory, folder)
        print(
            f"{target.copy}: shows the study {folder.name}, and a run of {last.name}, which was planned last, makes it"
            f" a copy of {planned}; to see why that would be made, run: dualread explain {planned} --again"
        )
        return 0
    if folder and "settings" in (noted := read_study(last_plan(folder))):
        files, changed = changed_settings(noted, folder)
        print(f"of the study {noted['settings'].get('study')} ({', '.join(files)}), as it was planned last")
        for line in changed:
            print(f"the settings changed since then, so run `snakemake -n` first: {line}")
    lines = list(reasons(target.manifest, store, dry_runs=True))
    for line in [*lines, _LOOKED_UP] if lines else ["nothing has changed since it was made"]:
        print(line)
    return 0
