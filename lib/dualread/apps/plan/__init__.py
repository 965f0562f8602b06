"""`dualread plan`: what a study will cost, before anything starts.

`study.work` counts its jobs and `study.costs` has what a unit of work takes; `memory` says what a GPU has to hold,
`storage` what the disk has to hold and what is downloaded; `report` prints the result.
"""

import argparse
from pathlib import Path

from dualread.apps.text import check_repository

HELP = "estimate what a study costs, before anything starts"
DESCRIPTION = """
Print what a study will do, before anything starts: the number of questions; jobs, CPU and GPU time of each stage with a
model; memory of a GPU; disk; what has to be downloaded or put in place, with its size and terms; and where each of
them was measured. Run it in the folder of the repository, with the same config files as snakemake:

    dualread plan                                                          the study of config.yaml
    dualread plan --configfile workflow/studies/paper.yaml --gpus 8        another study
    dualread plan --configfile workflow/studies/paper.yaml workflow/selections/rlvr.yaml      a part of it
    dualread plan --configfile workflow/studies/paper.yaml --measured      beside what its results took so far
    dualread plan --configfile workflow/studies/paper.yaml --pilot mine.yaml               with times of this machine

Times are those of a table, lib/dualread/study/costs.yaml, which says where each was measured and which were not. With
--pilot, they are multiplied by what the jobs of a smaller study took on this machine, stage by stage. Results that are
already in the store are included, although they cost nothing.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    files = {"metavar": "FILE", "type": Path, "nargs": "+"}
    parser.add_argument("--configfile", **files, default=[], help="merged into config.yaml")
    parser.add_argument("--cores", metavar="N", type=int, default=2, help="number of CPU cores (%(default)s)")
    parser.add_argument("--gpus", metavar="N", type=int, default=1, help="number of GPUs (%(default)s)")
    costs = "laid over lib/dualread/study/costs.yaml, such as workflow/costs/rtx_4090.yaml"
    parser.add_argument("--costs", metavar="FILE", type=Path, help=costs)
    pilot = "the config files of a study with results, whose times are taken"
    parser.add_argument("--pilot", **files, help=pilot)
    measured = "compare the time of each stage with what the study's results took"
    parser.add_argument("--measured", action="store_true", help=measured)


def run(options: argparse.Namespace) -> int:
    """Print the plan of the study that `options` name; return the exit code."""
    from dualread.apps.plan.report import comparison, forecast, measured  # here, because --help needs no polars
    from dualread.store.store import Store
    from dualread.study.costs import Costs
    from dualread.study.files import load
    from dualread.study.work import PlannedStudy

    check_repository()

    def planned(files: list[Path]) -> PlannedStudy:
        config = load(files, Path())
        results = Path("results", config.study)
        return PlannedStudy(config, Costs(options.costs), root=Path(), results=results, files=files)

    study, pilot = planned(options.configfile), {}
    if options.pilot:
        piloted = planned(options.pilot)
        stages = measured(piloted, Path("results", piloted.config["study"]), Store(Path(piloted.config["store"])))
        pilot = {stage: took / seconds for stage, _, _, seconds, took, *_ in stages if seconds and took}
    lines = (
        comparison(study, Path("results", study.config["study"]), Store(Path(study.config["store"])))
        if options.measured
        else forecast(study, cores=options.cores, gpus=options.gpus, pilot=pilot)
    )
    for line in lines:
        print(line)
    return 0
