# DualRead: from images to the tables and figures of a study.
#   snakemake --cores 8                       everything of the study in config.yaml
#   snakemake --cores 8 tables/main.tex       one table
#   snakemake --cores 8 --configfile workflow/studies/slake_tiny.yaml     another study
# It may also be a `module` of another workflow (docs/running.md, "In a workflow of your own").
# Rules say what is made from what; lib/dualread says how. There is one file per phase, in the order of the pipeline.

import gc
import sys
from pathlib import Path

from snakemake import __version__ as snakemake_version
from snakemake.utils import min_version

from dualread.errors import DualReadError
from dualread.study.config import resolve
from dualread.study.files import merged
from dualread.study.run import StudyRun, check
from dualread.study.workflow import asked_for

min_version("9.27")

IS_FIRST = not getattr(workflow, "default_target", None)  # no rule of a workflow that uses this as a module

# What is imported by now stays. Searching it for garbage again and again takes a fifth of a run that has nothing to do.
gc.freeze()
gc.set_threshold(50_000)

REPOSITORY = Path(workflow.snakefile).resolve().parent  # a module may be named by a link, or by a path with `..`

try:
    FILES, GIVEN = asked_for(workflow, config)
    # Of a file that is no YAML, Snakemake names neither the line nor the reason; and it merges in another order.
    MERGED = merged(FILES, REPOSITORY, GIVEN)
except DualReadError as error:
    sys.exit(f"\n{error}")


configfile: REPOSITORY / "config.yaml"


try:
    check(REPOSITORY, workflow, snakemake_version)
    source = ", ".join(["config.yaml", *(file.name for file in FILES)])
    STUDY = resolve(MERGED, source=source, root=REPOSITORY, given=GIVEN)
    RESULTS = f"results/{STUDY.study}"
    RUN = StudyRun(workflow, STUDY, RESULTS, FILES, GIVEN)
    RUN.before_planning()
except DualReadError as error:
    sys.exit(f"\n{error}")  # Snakemake would print lines of its own code below the message
config = STUDY.as_mapping()


include: "rules/common.smk"
include: "rules/environments.smk"
include: "rules/manifests.smk"
include: "rules/pairing.smk"
include: "rules/checkpoints.smk"
include: "rules/actors.smk"
include: "rules/generation.smk"
include: "rules/given.smk"
include: "rules/grading.smk"
include: "rules/replay.smk"
include: "rules/readers.smk"
include: "rules/metrics.smk"
include: "rules/difficulty.smk"
include: "rules/tables.smk"
include: "rules/figures.smk"
include: "rules/records.smk"
include: "rules/report.smk"


TABLE_FILES = expand("tables/{table}.tex", table=STUDY.tables)
FIGURE_FILES = expand("figures/{figure}.pdf", figure=STUDY.figures)


rule all:
    default_target: IS_FIRST
    input:
        TABLE_FILES,
        "tables/preview.txt",
        FIGURE_FILES,
        RECORDS,
        f"{RESULTS}/report.html",


RUN.plan(
    first_tables,
    tables=TABLE_FILES,
    figures=FIGURE_FILES,
    others=[f"{RESULTS}/report.html", "environments"],
)
