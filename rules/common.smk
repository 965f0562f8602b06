# How a rule becomes a job.
#
# ARTIFACTS (study/artifacts.py) describes the artifacts of each stage: for the wildcards of a job, the inputs and the
# `spec` of each artifact, which is all that it depends on besides inputs and code. `stage(...)` makes a rule of such a
# description. Snakemake asks the rule which inputs a job reads and what its parameters are (study/jobs.py): it runs the job
# again if one of them has changed. The job is one call of `python -m dualread.store.run STAGE JOB` (store/run.py): each
# of its entries is one artifact, which is looked up in the store by its key, or computed.

import os
import re
from functools import partial

from dualread.study.artifact_paths import Run
from dualread.study.artifacts import StudyArtifacts
from dualread.study.shards import StudyShards
from dualread.study.tables import StudyTables

SHARDS = StudyShards(STUDY)  # who answers what, and which readers read which of it
TABLES = StudyTables(STUDY)


def one_of(names):
    """A wildcard's constraint: one of the names; no value at all where there are none."""
    return "|".join(names) or "(?!)"


wildcard_constraints:
    phantom=one_of(STUDY.phantoms),
    dataset=one_of(STUDY.datasets),
    split="train|validation|test",
    backbone=one_of(STUDY.backbones),
    actor=one_of(STUDY.actors),
    seed=one_of(sorted({str(seed) for b in STUDY.backbones for a in STUDY.actors for seed in SHARDS.seeds(b, a)})),
    table=one_of(STUDY.tables),


# --- Where everything is


def source_of(dataset, split):
    """Where a data set's official files are: a phantom, or a folder that exists, or what the hub has."""
    source = STUDY.datasets[dataset].source
    if source.phantom:
        return ARTIFACTS.at("phantoms", source.phantom)
    if source.folder and os.path.isdir(ARTIFACTS.folder(source.folder)):
        return ARTIFACTS.folder(source.folder)
    return ARTIFACTS.at("downloads", dataset)


ARTIFACTS = StudyArtifacts(STUDY, SHARDS, RESULTS, source_of, REPOSITORY)
ANY = Run("{backbone}", "{actor}", "{seed}")  # stands for a job's wildcards in the outputs of its rule


# --- From a description to a rule


def stage(describe, output, *, actor=None, part=None, only={}, after=(), environment=None, resources={}, local=False):
    """Define the rule of a stage, which has the name of the function `describe`, or of that of a `partial`.

    `describe` returns, for the wildcards of a job, the inputs that its entries share, and the entries. `output` is the
    artifact that a job makes, or a list of them. `actor`: the rule is for this one alone, because actors differ in
    their artifacts and a rule's outputs are fixed. `part`: a name that ends the rule's, where a stage has several
    rules. `only`: what the wildcards may be. `after`: what has to be there first and is in no key. `environment`: the
    stamp of one that is not Snakemake's own. A job takes the GPUs that its `resources` ask for. A `local` stage runs
    where Snakemake runs, on a cluster too.
    """
    name = getattr(describe, "func", describe).__name__
    rule_name = "_".join([name, *filter(None, [actor, part])])
    jobs = RUN.jobs(rule_name, name, describe, environment)
    outputs = [output] if isinstance(output, str) else output
    wildcards = re.findall(r"{\w+}", outputs[0])
    command = RUN.exports + jobs.command(REPOSITORY / "lib", on_gpus="gpu" in resources)
    # The more methods read an actor's answers, the longer is its way to the tables: it should not be the last one.
    methods = (lambda w: len(SHARDS.methods_of(w.actor))) if "{actor}" in wildcards else 0

    rule:
        name:
            rule_name
        input:
            jobs.inputs,
            after=after,
            environment=environment or [],
        output:
            outputs,
        log:
            "/".join((RESULTS, "logs", name, *wildcards, *filter(None, [part]))) + ".log",
        wildcard_constraints:
            **({"actor": actor} if actor else only),
        priority: methods
        localrule: local
        resources:
            **resources,
        params:
            **jobs.params,
        shell:
            command


# --- When the jobs begin and end (study/run.py)


def first_tables():
    """What needs no training comes first: it is there in a minute or two."""
    return [f"tables/{name}.tex" for name in STUDY.tables if SHARDS.base and TABLES.only_actor(name) == SHARDS.base]


onstart:
    RUN.begin(first_tables())


onerror:
    RUN.end_failed()


onsuccess:
    RUN.end()
