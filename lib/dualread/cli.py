"""The program `dualread`: look at what the workflow will do and has made. The workflow itself is run by `snakemake`."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from dualread import evaluating, report
from dualread.errors import ConfigError, DualReadError, did_you_mean
from dualread.store import commands
from dualread.store.lineage import Found, damages, differences, find_key, find_target, predecessor, tree
from dualread.store.manifest import MANIFEST_NAME, read_manifest
from dualread.store.store import Store

_TARGET = (
    "a table (tables/main.tex), an artifact's directory (results/embedded/metrics), a file in one, or the first"
    " digits of a key as the log prints them (3fa2c1d0)"
)
_TOP = """
Look at what the workflow will do, and at what it has made. To make it, run snakemake:

    dualread plan                           what the study costs, before anything starts
    snakemake --cores 8 tables/main.tex     build a table and everything it needs
    dualread verify tables/main.tex         re-read every file that the table rests on
    dualread explain tables/main.tex        show what it was made from, down to the raw images
    dualread gc                             show what no study needs any more, and remove it with --delete
    dualread store push /mnt/shared/store   share what was computed; `store pull` gets it
    dualread restore results.lock           show the tables of a pulled store without computing
    dualread schema predictions             what the columns of a file mean
    dualread report results/embedded        one HTML page of the study: tables, figures, audits, times, keys
    dualread evaluate predictions.csv       every metric of confidences made anywhere, without the workflow
"""
_PLAN = """
Print what a study will do before anything starts: questions, jobs and models by stage, CPU and GPU hours, disk, and
what has to be downloaded or put in place, with its size and terms; at the end, how all this was found. Run it in the
repository, with the files that snakemake would get:

    dualread plan                                                          the study of config.yaml
    dualread plan --configfile workflow/studies/paper.yaml --gpus 8        another one
    dualread plan --configfile workflow/studies/paper.yaml workflow/selections/rlvr.yaml      a part of it

Times of tiny models are measured; those of checkpoints are computed from the `size` of their backbone and can be wrong
by a factor of two. What is in the store already costs nothing again and is counted all the same.
"""
_SCHEMA = """
Print the columns of the parquet files that stages exchange: name, dtype, whether null is allowed, meaning.
Without TABLE, all of them.
"""
_VERIFY = """
Read every file that TARGET rests on again, through all stages down to the raw data, and compare its sha256 with the
one that was recorded when the file was written. One line for each file that is damaged or missing; the exit code is 1
if there is any. Nothing is changed. To have what is damaged or missing made again, and nothing else computed:

    snakemake --cores 8 --forceall tables/main.tex
"""
_EXPLAIN = """
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


class _Parser(argparse.ArgumentParser):
    """A parser that offers the nearest verb or option where one is unknown; argparse uses it for the verbs as well."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as the base class does, but refuse an option that this verb does not have."""
        options, rest = super().parse_known_args(args, namespace)
        if unknown := [word.partition("=")[0] for word in rest if word.startswith("--")]:
            known = [option for option in self._option_string_actions if option.startswith("--")]
            meant = did_you_mean(unknown[0], known)
            self.error(f"{unknown[0]}: no such option. Known: {', '.join(known)}.{meant}")
        return options, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            meant = did_you_mean(value, action.choices)
            raise argparse.ArgumentError(action, f"{value!r} is unknown. Known: {', '.join(action.choices)}.{meant}")


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except DualReadError as error:
        print(f"dualread {options.verb}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (head, less) has seen enough. What is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"dualread {options.verb}: {error}. Make it readable or writable, or free some space.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"dualread {options.verb}: interrupted; the same command goes on", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="dualread", description=_TOP, formatter_class=layout)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    plan = verbs.add_parser("plan", help="what a study costs, before anything starts", description=_PLAN)
    plan.add_argument("--configfile", metavar="FILE", type=Path, nargs="+", default=[], help="laid over config.yaml")
    plan.add_argument(
        "--cores", metavar="N", type=int, default=2, help="CPU cores to spread the work over (%(default)s)"
    )
    plan.add_argument("--gpus", metavar="N", type=int, default=1, help="GPUs to spread the work over (%(default)s)")
    plan.add_argument("--costs", metavar="FILE", type=Path, help="another lib/dualread/forecast/costs.yaml")
    plan.set_defaults(run=_plan)
    schema = verbs.add_parser("schema", help="what the columns of a file mean", description=_SCHEMA)
    schema.add_argument("table", metavar="TABLE", nargs="?", help="manifest, pairs, generations, graded, ...")
    schema.set_defaults(run=_schema)
    verify = verbs.add_parser("verify", help="re-read everything a table rests on", description=_VERIFY)
    verify.set_defaults(run=_verify)
    explain = verbs.add_parser("explain", help="what an artifact was made from, and why again", description=_EXPLAIN)
    explain.add_argument("--cell", metavar="WORDS", help="one number of a table: backbone, method, dataset, metric")
    explain.add_argument("--sample", metavar="ID", help="with --cell: this question, for every seed")
    explain.add_argument("--rows", metavar="N", type=int, default=2, help="with --cell: N questions (%(default)s)")
    explain.add_argument("--why", action="store_true", help="say what made it another artifact than an earlier one")
    explain.add_argument("--other", metavar="KEY", help="with --why: that one, by the first digits of its key")
    explain.set_defaults(run=_explain)
    evaluate = verbs.add_parser("evaluate", help="metrics of your own predictions", description=evaluating.DESCRIPTION)
    evaluating.add_arguments(evaluate)
    evaluate.set_defaults(run=evaluating.run)
    page = verbs.add_parser("report", help="one HTML page of a finished study", description=report.DESCRIPTION)
    report.add_arguments(page)
    page.set_defaults(run=report.run)
    stored = commands.add_verbs(verbs)
    for verb in (verify, explain):
        verb.add_argument("target", metavar="TARGET", help=_TARGET)
    for verb in (verify, explain, *stored):
        verb.add_argument("--store", type=Path, default=Path("results/store"), help="folder of the store (%(default)s)")
    for verb in (plan, schema, verify, explain, evaluate, page, *stored):
        verb.formatter_class = layout
    return parser


def _plan(options: argparse.Namespace) -> int:
    from dualread.forecast.report import COSTS, forecast  # imports polars, which verify and explain do not need
    from dualread.forecast.study import load

    root = Path(__file__).resolve().parents[2]
    config = load(options.configfile, root)
    results = Path("results", config["study"])
    costs = options.costs or COSTS
    machine = {"cores": options.cores, "gpus": options.gpus}
    for line in forecast(config, root=root, results=results, files=options.configfile, costs=costs, **machine):
        print(line)
    return 0


def _schema(options: argparse.Namespace) -> int:
    from dualread.artifacts.schemas import all_schemas  # imports polars, which the other verbs do not need

    schemas = all_schemas()
    if options.table is not None and options.table not in schemas:
        meant = did_you_mean(options.table, schemas)
        raise ConfigError(f"{options.table}: no such table. Known: {', '.join(schemas)}.{meant}")
    for table in [options.table] if options.table else schemas:
        print(f"{table}.parquet")
        width = max(map(len, schemas[table].columns))
        for name, column in schemas[table].columns.items():
            dtype = f"{column.dtype}{' or null' if column.nullable else ''}"
            print(f"  {name:<{width}}  {dtype:<16}  {column.meaning}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    store = Store(options.store)
    found = find_target(options.target, store)
    count = 0
    for sentence in damages(found, store):
        count += 1
        print(sentence, flush=True)
    print(f"{options.target}: " + (f"{count} damaged or missing" if count else "intact, down to the raw data"))
    return 1 if count else 0


def _explain(options: argparse.Namespace) -> int:
    store = Store(options.store)
    found = find_target(options.target, store)
    if options.cell is not None:
        return _explain_cell(options, found, store)
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


def _explain_cell(options: argparse.Namespace, found: Found, store: Store) -> int:
    from dualread.explaining.report import explain_cell  # imports polars, which the rest of explain does not need

    for line in explain_cell(found, store, words=options.cell, sample_id=options.sample, n_rows=options.rows):
        print(line)
    return 0
