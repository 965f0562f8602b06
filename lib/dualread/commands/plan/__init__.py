"""`dualread plan`: estimate what a study will cost from its config, before anything starts.

`sizes` counts questions and images, `models` and `work` convert the counts to jobs and seconds, `memory` and `peaks`
say what a GPU has to hold, and `storage` what the disk has to hold and what is downloaded; `report` prints the result.
`costs.yaml` holds the cost of each unit of work.
"""

import argparse
from pathlib import Path

from dualread.errors import ConfigError

HELP = "estimate what a study costs, before anything starts"
DESCRIPTION = """
Print what a study will do, before anything starts: the number of questions; jobs, loaded models and CPU and GPU time of
each stage; memory of a GPU; disk space; what has to be downloaded or put in place, with its size and terms; and how
these numbers were estimated. Run it in the folder of the repository, with the same config files as snakemake:

    dualread plan                                                          the study of config.yaml
    dualread plan --configfile workflow/studies/paper.yaml --gpus 8        another study
    dualread plan --configfile workflow/studies/paper.yaml workflow/selections/rlvr.yaml      a part of it
    dualread plan --configfile workflow/studies/paper.yaml --measured      beside what its results took so far

The times of tiny models were measured. The times of larger models are computed from the `size` of their backbone and
can be wrong by a factor of two. Results that are already in the store are included, although they cost nothing.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument(
        "--configfile", metavar="FILE", type=Path, nargs="+", default=[], help="merged into config.yaml"
    )
    parser.add_argument("--cores", metavar="N", type=int, default=2, help="number of CPU cores (%(default)s)")
    parser.add_argument("--gpus", metavar="N", type=int, default=1, help="number of GPUs (%(default)s)")
    parser.add_argument(
        "--costs",
        metavar="FILE",
        type=Path,
        help="laid over lib/dualread/commands/plan/costs.yaml, such as workflow/costs/rtx_4090.yaml",
    )

    parser.add_argument(
        "--measured", action="store_true", help="compare the time of each stage with what the study's results took"
    )


def run(options: argparse.Namespace) -> int:
    """Print the plan of the study that `options` name; return the exit code.

    Raises:
        ConfigError: The current directory is not the folder of the repository, or the study is not valid.
    """
    from dualread.commands.plan.report import COSTS, forecast  # here, because --help does not need polars
    from dualread.study.files import load

    root = Path()
    if not Path("config.yaml").is_file():
        raise ConfigError(
            f"{Path.cwd()}: no config.yaml here. Expected the folder of the repository, where snakemake runs. Change to"
            " it and run the same command again."
        )
    config = load(options.configfile, root)
    results = Path("results", config.study)
    costs = options.costs or COSTS
    if options.measured:
        from dualread.commands.plan.measured import comparison

        for line in comparison(config, root=root, files=options.configfile, costs=costs):
            print(line)
        return 0
    machine = {"cores": options.cores, "gpus": options.gpus}
    for line in forecast(config, root=root, results=results, files=options.configfile, costs=costs, **machine):
        print(line)
    return 0
