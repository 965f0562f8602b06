# Turns what the study's config implies (lib/dualread/study/shards.py) into jobs. The other files of this folder only
# say what is made from what.
#
# A job is one call of `python -m dualread.store.run STAGE JOB`. Each of its entries is one artifact, with its own
# `spec` (all that the result depends on besides its inputs and the code) and its own key in the store.

import hashlib
import json
import os
import re
import shlex
import sys
import time
from functools import cache, partial
from types import SimpleNamespace

import dualread
from dualread.devices import ASSIGNED
from dualread.errors import ArtifactError, ConfigError, DualReadError
from dualread.plugins import declared, module_of
from dualread.specs.parts import Plugin
from dualread.specs.wire import as_mapping
from dualread.store.code import SOURCES_NAME, job_digests
from dualread.store.digest import StatCache, raw_digest
from dualread.store.files import replace_text
from dualread.store.layers import start_forkserver
from dualread.store.lock import write_lock
from dualread.store.repair import check_folders, forget_unrecorded, mend, mend_copies
from dualread.store.roots import register
from dualread.store.store import Store
from dualread.study.failures import read_failures, reasons, write_failures
from dualread.study.shards import StudyShards
from dualread.study.workflow import (
    as_planned,
    free_dead_locks,
    give_rules_the_resources_of_their_stage,
    job_environment,
    jobs_here,
    missing_outputs,
    prefer,
    runs_here,
    start_jobs_at_once,
)

if REPOSITORY not in Path(dualread.__file__).resolve().parents:
    raise ConfigError(
        f"{REPOSITORY}: the rules are from here, but the library is {Path(dualread.__file__).parent}."
        f" Use this checkout's environment (make env), or set PYTHONPATH={REPOSITORY / 'lib'}."
    )

STARTED = time.time()
RESULTS = f"results/{config['study']}"
FAILURES = Path(RESULTS, "failures.json")
FAILED = read_failures(FAILURES)
DATASETS, ACTORS, METHODS = config["datasets"], config["actors"], config["methods"]
CONDITIONS = config["conditions"]
SHARDS = StudyShards(STUDY)

# One thread per job: results do not depend on the number of cores, and jobs do not slow each other down. GPUs are assigned
# by a cluster's scheduler, or taken by the jobs. No command says so, or Snakemake would run its job again elsewhere.
ENVIRONMENT = dict(
    OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE", POLARS_MAX_THREADS="1", TOKENIZERS_PARALLELISM="false"
)
VARIABLES = {**ENVIRONMENT, **({ASSIGNED: "1"} if workflow.remote_exec else {})}
shell.prefix(f"export {' '.join(f'{name}={value}' for name, value in VARIABLES.items())}; ")


def one_of(names):
    """A wildcard's constraint: one of the names; no value at all where there are none."""
    return "|".join(names) or "(?!)"


wildcard_constraints:
    phantom=one_of(config.get("phantoms", {})),
    dataset=one_of(DATASETS),
    split="train|validation|test",
    backbone=one_of(config["backbones"]),
    actor=one_of(ACTORS),
    seed=one_of(sorted({str(seed) for b in config["backbones"] for a in ACTORS for seed in SHARDS.seeds(b, a)})),
    table=one_of(config["tables"]),


# --- Before anything is planned


if runs_here(workflow):
    RUNNING = free_dead_locks(Path(".snakemake"))
    try:
        check_folders(Path(RESULTS), Path(config["store"]), Path("tables"), Path("figures"))
        register(Path("results"), Store(Path(config["store"])))
        mend(Path(RESULTS), Store(Path(config["store"])))
        forget_unrecorded(Path(RESULTS), Store(Path(config["store"])), Path(".snakemake", "metadata"))
        mend_copies(Path("."), Path(RESULTS), config["study"])
    except DualReadError as error:
        sys.exit(f"\n{error}")

give_rules_the_resources_of_their_stage(
    workflow,
    ["_".join(filter(None, (actor, part))) for actor in SHARDS.answering for part in SHARDS.by_environment(actor)],
)


# --- Paths


def artifact(*names):
    """The file of an artifact that Snakemake tracks; the artifact itself is the folder."""
    return "/".join((RESULTS, *map(str, names), "MANIFEST.json"))


def log_file(*names):
    return "/".join((RESULTS, "logs", *names)) + ".log"


# Stands for a job's wildcards in the outputs of its rule.
ANY = SimpleNamespace(backbone="{backbone}", actor="{actor}", seed="{seed}")


def of_actor(kind, w, *names):
    return artifact(kind, w.backbone, w.actor, w.seed, *names)


def plugin(family, name):
    return Plugin(module=module_of(family, name))


def model_of(name):
    """The fields that the spec of every stage with a model has."""
    return {"backbone": name, "model": STUDY.backbones[name].opening()}


def facts_of(w):
    """The facts of an actor's checkpoint, or of the one that it is trained from."""
    if w.actor in SHARDS.given:
        return of_actor("actors", w)
    own = w.actor == SHARDS.base or STUDY.actors[w.actor].checkpoints
    return of_actor("facts", w) if own else artifact("facts", w.backbone, SHARDS.base, 0)


# --- Jobs: functions of the wildcards


def entry(output, spec, **inputs):
    return {
        "spec": as_mapping(spec),
        "inputs": {k: v for k, v in inputs.items() if v},
        "output": os.path.dirname(output),
    }


def once(describe):
    """`describe`, called once per job: Snakemake asks for its inputs and for each of its parameters."""
    known = {}

    def described(wildcards):
        key = tuple(sorted(wildcards.items()))
        if key not in known:
            known[key] = describe(wildcards)
        return known[key]

    return described


def inputs_of(describe):
    """Snakemake's input: the artifacts that a job reads and does not make itself."""

    def function(wildcards):
        inputs, entries = describe(wildcards)
        made = {f"{e['output']}/MANIFEST.json" for e in entries}
        paths = [*inputs.values(), *(path for e in entries for path in e["inputs"].values())]
        return list(dict.fromkeys(p for p in paths if p.endswith("/MANIFEST.json") and p not in made))

    return function


def job_file(stage, job):
    """Write a job to a file, unless that is there and whole; return its path, which holds the digest of the text.

    The command names the file: jobs outgrow what a command line may hold, and an error message prints the command.
    """
    text = json.dumps(job, indent=1, sort_keys=True)
    path = Path(RESULTS, "jobs", stage, f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json")
    if not path.is_file() or path.read_bytes() != text.encode():
        replace_text(path, text)
    return str(path)


def params_of(stage, describe, environment):
    """The job, the digests of what its text does not show (code, packages, raw inputs), and when it failed last."""
    sources = Path(config["store"], SOURCES_NAME)

    def job(wildcards):
        inputs, entries = describe(wildcards)
        return job_file(stage, {"store": config["store"], "inputs": inputs, "entries": entries})

    def planned(wildcards):
        specs, file = [e["spec"] for e in describe(wildcards)[1]], Path(job(wildcards)).with_suffix(".planned")
        code, packages = as_planned(workflow, file, lambda: job_digests(stage, specs, sources))
        return [code, "-" if environment else packages]

    def raw(wildcards):
        paths = [path for e in describe(wildcards)[1] for path in e["inputs"].values()]
        return [digest_of_raw(path) for path in paths if not path.endswith("/MANIFEST.json")]

    def failed(wildcards):
        return [FAILED.get(f"{e['output']}/MANIFEST.json") for e in describe(wildcards)[1]]

    return {"job": job, "planned": planned, "raw": raw, "failed": failed}


@cache
def digest_of_raw(path):
    stat_cache = StatCache(Path(config["store"]) / "stat-cache.json")
    try:
        digest = raw_digest(Path(path), stat_cache)
    except ArtifactError as error:
        return str(error)  # the job will say it in better words than Snakemake
    stat_cache.save()
    return digest


def run(stage, environment=None, on_gpus=False):
    """The command of a job. Its messages go to the terminal and to the log.

    `on_gpus`: the job takes the GPUs that its resources ask for.
    `environment` is the stamp of one that is not Snakemake's own; it knows this checkout's library by its path.
    """
    program = f"{shlex.quote(sys.executable)} -m dualread.store.forked"
    if environment:
        python = f"PYTHONPATH={shlex.quote(str(REPOSITORY / 'lib'))} {os.path.dirname(environment)}/bin/python"
        program = f"{python} -m dualread.store.run"
    gpus = " --gpus {resources.gpu}" if on_gpus else ""
    return f"{program} {stage} {{params.job}} --planned {{params.planned}} --log {{log:q}}{gpus}"


FORKED = {}  # the stage of each rule whose jobs run in Snakemake's own environment


def stage(describe, output, *, actor=None, part=None, only={}, after=(), environment=None, resources={}, local=False):
    """Define the rule of a stage, which has the name of the function `describe`.

    `describe` returns, for the wildcards of a job, the inputs that its entries share, and the entries. `output` is the
    artifact that a job makes, or a list of them. `actor`: the rule is for this one alone, because actors differ in
    their artifacts and a rule's outputs are fixed. `part`: a name, and what `describe` gets besides the wildcards, where
    a rule makes a part of the artifacts alone. `only`: what the wildcards may be. `after`: what has to be there
    first and is in no key. A `local` stage runs where Snakemake runs, on a cluster too.
    """
    name, part_name = describe.__name__, [part[0]] if part and part[0] else []
    describe = once(partial(describe, part=part[1]) if part else describe)
    rule_name = "_".join([name, *filter(None, [actor]), *part_name])
    if not environment:
        FORKED[rule_name] = name
    outputs = [output] if isinstance(output, str) else output
    wildcards = re.findall(r"{\w+}", outputs[0])
    command = run(name, environment, on_gpus="gpu" in resources)
    # The more methods read an actor's answers, the longer is its way to the tables: it should not be the last one.
    methods = (lambda w: len(SHARDS.methods_of(w.actor))) if "{actor}" in wildcards else 0

    rule:
        name:
            rule_name
        input:
            inputs_of(describe),
            after=after,
            environment=environment or [],
        output:
            outputs,
        log:
            log_file(name, *wildcards, *part_name),
        wildcard_constraints:
            **({"actor": actor} if actor else only),
        priority: methods
        localrule: local
        resources:
            **resources,
        params:
            **params_of(name, describe, environment),
        shell:
            command


def environment_of(family, name):
    """The stamp file of the environment in which a plugin runs (its ENVIRONMENT); None if that is Snakemake's own.

    A stamp's folder is named by the lock file and by the digest of what is installed: studies share it, and an edited
    lock makes another one.
    """
    if not (environment := declared(family, name, "ENVIRONMENT")):
        return None
    build = config["machine"].get(environment, "cuda")  # of most environments there is one build
    lock = environment if build == "cuda" else f"{environment}-{build}"
    installed = [(REPOSITORY / "envs" / file).read_bytes() for file in ("torch.txt", f"{lock}.lock")]
    digest = hashlib.sha256(b"".join([*installed, repr(sys.version_info[:2]).encode()])).hexdigest()
    return f"results/environments/{lock}-{digest[:16]}/READY"


# What needs no training comes first: it is there in a minute or two.
onstart:
    start_jobs_at_once(workflow)
    of_base = [name for name in config["tables"] if SHARDS.base and SHARDS.only_actor(name) == SHARDS.base]
    prefer(workflow, [f"tables/{name}.tex" for name in of_base])
    start_forkserver(jobs_here(workflow, FORKED), Path(config["store"], SOURCES_NAME), job_environment(ENVIRONMENT))


# What failed jobs said, wherever they ran, comes last, below Snakemake's own lines.
onerror:
    write_failures(FAILURES, FAILED, missing_outputs(workflow), STARTED)
    print("", *reasons(Path(RESULTS, "logs"), since=STARTED), sep="\n", file=sys.stderr)


# One small file names all results of the study. Kept with a paper, it lets `dualread restore` show them again.
onsuccess:
    try:
        write_lock(Path(RESULTS), Store(Path(config["store"])))
    except (ArtifactError, OSError) as error:
        print(f"warning: results.lock was not written: {error}", file=sys.stderr)


def manifests(shards):
    return {f"manifest/{d}/{s}": artifact("manifests", d, s) for d, s, *_ in shards}


def pairs(shards):
    return {f"pairs/{d}/{s}": artifact("pairs", d, s) for d, s, *_ in shards if SHARDS.has_pairs(d, s)}


def asked(w, shard):
    """The fields that the specs of generation and replay of a shard, or of a view of it, have in common."""
    return {**model_of(w.backbone), "actor": w.actor, "seed": int(w.seed), "shard": SHARDS.asked(w.actor, shard)}


def shard_inputs(w, dataset, split, condition, view=None, *, generations=False):
    """The manifest; the pairs if the donor's image is shown; on request, the completions that the shard is about."""
    answered = STUDY.conditions[condition].completions or condition
    return {
        "manifest": artifact("manifests", dataset, split),
        "pairs": artifact("pairs", dataset, split) if SHARDS.shows_donors(condition) else None,
        "generations": of_actor("generations", w, dataset, split, answered) if view or generations else None,
    }


def shard_artifact(kind, w, *shard):
    """The artifact of `kind` of a shard; all artifacts of views are in one folder, whatever stage makes them."""
    return of_actor("views" if len(shard) == 4 else kind, w, *shard)


def answers(w, kinds, wanted):
    """The artifacts of `kinds` of the actor's shards in `wanted`, and their manifests, by name."""
    return {
        **manifests(wanted),
        **{f"{kind}/{'/'.join(shard)}": of_actor(kind, w, *shard) for kind in kinds for shard in wanted},
    }
