# DualRead: from images to the tables and figures of a study.
#   snakemake --cores 8                       everything of the study in config.yaml
#   snakemake --cores 8 tables/main.tex       one table
#   snakemake --cores 8 --configfile workflow/studies/slake_tiny.yaml     another study
# Rules say what is made from what; lib/dualread says how. There is one file per phase, in the order of the pipeline.

import gc
import sys
from pathlib import Path

from snakemake import __version__ as snakemake_version

from dualread.devices import gpus
from dualread.errors import ConfigError
from dualread.machine import model_slots
from dualread.study.config import resolve
from dualread.study.workflow import check_surroundings, check_version, limit

# What is imported by now stays. Searching it for garbage again and again takes a fifth of a run that has nothing to do.
gc.freeze()
gc.set_threshold(50_000)

REPOSITORY = Path(workflow.basedir)


configfile: REPOSITORY / "config.yaml"


try:
    check_version(snakemake_version)
    check_surroundings(Path.cwd())
    STUDY = resolve(
        config,
        source=", ".join(Path(file).name for file in [*workflow.configfiles[-1:], *workflow.configfiles[:-1]]),
        root=REPOSITORY,
    )
except ConfigError as error:
    sys.exit(f"\n{error}")  # Snakemake would print lines of its own code below the message
config = STUDY.as_mapping()

limit(workflow, "model_slots", model_slots(STUDY.machine.model_job_memory_gb))
if n_gpus := len(gpus()):
    limit(workflow, "gpu", n_gpus)


include: "rules/common.smk"
include: "rules/environments.smk"
include: "rules/manifests.smk"
include: "rules/pairing.smk"
include: "rules/actors.smk"
include: "rules/generation.smk"
include: "rules/given.smk"
include: "rules/grading.smk"
include: "rules/replay.smk"
include: "rules/readers.smk"
include: "rules/metrics.smk"
include: "rules/tables.smk"
include: "rules/figures.smk"
include: "rules/records.smk"
include: "rules/report.smk"
include: "rules/tuning.smk"


rule all:
    default_target: True
    input:
        expand("tables/{table}.tex", table=config["tables"]),
        "tables/preview.txt",
        expand("figures/{figure}.pdf", figure=config.get("figures", {})),
        RECORDS,
        f"{RESULTS}/report.html",
