"""`dualread plan`: what a study will cost, from its config alone, before anything starts.

`sizes` counts questions and images, `models` and `work` turn them into jobs and seconds, `storage` into disk and
downloads, `report` prints all of it. `costs.yaml` holds what one unit of work costs.
"""

import argparse
from pathlib import Path

HELP = "what a study costs, before anything starts"
DESCRIPTION = """
Print what a study will do before anything starts: questions, jobs and models by stage, CPU and GPU hours, disk, and
what has to be downloaded or put in place, with its size and terms; at the end, how all this was found. Run it in the
repository, with the files that snakemake would get:

    dualread plan                                                          the study of config.yaml
    dualread plan --configfile workflow/studies/paper.yaml --gpus 8        another one
    dualread plan --configfile workflow/studies/paper.yaml workflow/selections/rlvr.yaml      a part of it

Times of tiny models are measured; those of checkpoints are computed from the `size` of their backbone and can be wrong
by a factor of two. What is in the store already costs nothing again and is counted all the same.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads to `parser`."""
    parser.add_argument("--configfile", metavar="FILE", type=Path, nargs="+", default=[], help="laid over config.yaml")
    parser.add_argument(
        "--cores", metavar="N", type=int, default=2, help="CPU cores to spread the work over (%(default)s)"
    )
    parser.add_argument("--gpus", metavar="N", type=int, default=1, help="GPUs to spread the work over (%(default)s)")
    parser.add_argument("--costs", metavar="FILE", type=Path, help="another lib/dualread/commands/plan/costs.yaml")


def run(options: argparse.Namespace) -> int:
    """Print the plan of the study that `options` names; return the exit code."""
    from dualread.commands.plan.report import COSTS, forecast  # imports polars, which `--help` does not need
    from dualread.study.files import load

    root = Path(__file__).resolve().parents[4]
    config = load(options.configfile, root)
    results = Path("results", config.study)
    costs = options.costs or COSTS
    machine = {"cores": options.cores, "gpus": options.gpus}
    for line in forecast(config, root=root, results=results, files=options.configfile, costs=costs, **machine):
        print(line)
    return 0
