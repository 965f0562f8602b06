"""`dualread explain`: what an artifact was made from; with `--cell`, where one printed number comes from.

`cells` finds the printed number, `runs` what it is a mean of, `chain` the artifacts below a run, `samples` the rows of
single questions in them; `report` is all of it as text. Everything is read from the store alone, by the names that
artifacts have for their inputs.
"""

import argparse
from pathlib import Path

from dualread.store.lineage import Found, differences, find_key, find_target, predecessor, tree
from dualread.store.manifest import MANIFEST_NAME, read_manifest
from dualread.store.store import Store

HELP = "what an artifact was made from, and why again"
TARGET = (
    "a table (tables/main.tex), an artifact's directory (results/embedded/metrics), a file in one, or the first"
    " digits of a key as the log prints them (3fa2c1d0)"
)
DESCRIPTION = """
Print what TARGET was made from, one line for each artifact: stage, key, digest of the code, time it took, spec; its
inputs are indented below it. Code that was edited since is named: such an artifact would be computed again.

With --cell, print instead where one number of a table comes from: the seeds that it is a mean of and, for each, its
metrics, predictions, readers, features, grades, completions, actor and manifest, with key, code digest, seconds and
rows; the versions of all of it; and the first questions, with completion and confidence. Any words that leave one cell
will do, in any order; a seed may follow. A wrong word lists the nearest cells.

    dualread explain tables/main.tex --cell qwen3-vl-tiny,dualread,slake,auroc
    dualread explain tables/main.tex --cell "qwen3-vl-tiny dualread ood6 auroc 17" --sample vqa_rad/test/12
    dualread explain tables/paired.tex --cell method=dualread,baseline=psr,slake,auroc

With --why, print instead what made it another artifact than an earlier one: which module of the code was edited, which
field of the spec, which input, which package. Without --other, the earlier one is what the same stage had written for
the same output before.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads to `parser`."""
    parser.add_argument("target", metavar="TARGET", help=TARGET)
    parser.add_argument("--cell", metavar="WORDS", help="one number of a table: backbone, method, dataset, metric")
    parser.add_argument("--sample", metavar="ID", help="with --cell: this question, for every seed")
    parser.add_argument("--rows", metavar="N", type=int, default=2, help="with --cell: N questions (%(default)s)")
    parser.add_argument("--why", action="store_true", help="say what made it another artifact than an earlier one")
    parser.add_argument("--other", metavar="KEY", help="with --why: that one, by the first digits of its key")
    parser.add_argument("--store", type=Path, default=Path("results/store"), help="folder of the store (%(default)s)")


def run(options: argparse.Namespace) -> int:
    """Explain the target of `options`; return the exit code."""
    store = Store(options.store)
    found = find_target(options.target, store)
    if options.cell is not None:
        return _cell(options, found, store)
    if not options.why and options.other is None:
        for line in tree(found, store):
            print(line)
        return 0
    other = find_key(options.other, store) if options.other else predecessor(found, store)
    new = found.manifest
    if other is None:
        print(f"{new.action.stage} {new.key[:8]}: nothing earlier was written for the same output")
        return 0
    old = read_manifest(store.entry(other) / MANIFEST_NAME)
    print(f"{new.action.stage} {new.key[:8]} is not {old.key[:8]} because:")
    for line in differences(old, new, store):
        print(f"  {line}")
    same = "the same files" if old.digest == new.digest else "different files"
    print(f"The two hold {same}.")
    return 0


def _cell(options: argparse.Namespace, found: Found, store: Store) -> int:
    from dualread.commands.explain.report import explain_cell  # imports polars, which the rest of explain does not need

    for line in explain_cell(found, store, words=options.cell, sample_id=options.sample, n_rows=options.rows):
        print(line)
    return 0
