# Turns the shards of the study (lib/dualread/study/shards.py: what the config implies) into jobs. The other files of this
# folder only say what is made from what.
#
# A job is one call of `python -m dualread.store.run STAGE JOB`; its entries are the artifacts that it makes, each with its own
# `spec` (all that the result depends on besides its inputs and the code) and its own key in the store.

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import sys
import time
from functools import cache
from types import SimpleNamespace

import dualread
from dualread.errors import ArtifactError, ConfigError, DualReadError
from dualread.study.shards import StudyShards
from dualread.plugins import declared, module_of
from dualread.store.code import SOURCES_NAME, code_digest
from dualread.store.digest import StatCache, raw_digest
from dualread.store.files import read_json, replace_text
from dualread.store.lock import write_lock
from dualread.store.repair import check_folders, mend, mend_copies
from dualread.store.roots import register
from dualread.store.store import HOST, Store

if REPOSITORY not in Path(dualread.__file__).resolve().parents:
    raise ConfigError(
        f"{REPOSITORY}: the rules are from here, but the library is {Path(dualread.__file__).parent}."
        f" Use this checkout's environment (make env), or set PYTHONPATH={REPOSITORY / 'lib'}."
    )

STARTED = time.time()
RESULTS = f"results/{config['study']}"
FAILURES = Path(RESULTS, "failures.json")
try:
    FAILED = dict(read_json(FAILURES))
except (OSError, ValueError, TypeError):  # there are none, or a kill left half of them
    FAILED = {}
DATASETS, ACTORS, METHODS = config["datasets"], config["actors"], config["methods"]
CONDITIONS = config["conditions"]
SHARDS = StudyShards(STUDY)

# One thread a job: results then do not depend on the number of cores, and jobs that share cores do not fight for them.
shell.prefix("export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE POLARS_MAX_THREADS=1 TOKENIZERS_PARALLELISM=false; ")


def one_of(names):
    """A wildcard's constraint: one of the names, and nothing at all where there are none."""
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


def free_dead_locks():
    """Hold, until this process ends, a lock that no killed process holds; where none is held, remove Snakemake's own.

    A SIGKILL leaves Snakemake's lock behind, and every later run would ask for --unlock first.
    """
    folder = Path(".snakemake")
    folder.mkdir(exist_ok=True)
    running = (folder / "running").open("a+")
    # Where somebody else is at work, or the file system knows no such locks, Snakemake's own lock decides; and where the
    # last one was another machine, since some file systems keep such locks to themselves.
    with contextlib.suppress(OSError):
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
        running.seek(0)
        if running.read() in ("", HOST):
            for lock in folder.glob("locks/*.lock"):
                lock.unlink(missing_ok=True)
            running.truncate(0)
            running.write(HOST)
            running.flush()
    with contextlib.suppress(OSError):
        fcntl.flock(running, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return running


if workflow.is_main_process and not workflow.output_settings.dryrun:
    RUNNING = free_dead_locks()
    try:
        check_folders(Path(RESULTS), Path(config["store"]), Path("tables"), Path("figures"))
        register(Path("results"), Store(Path(config["store"])))
        mend(Path(RESULTS), Store(Path(config["store"])))
        mend_copies(Path("."), Path(RESULTS), config["study"])
    except DualReadError as error:
        sys.exit(f"\n{error}")

# A profile's `set-resources` speaks of stages; Snakemake knows rules, of which some stages have one for each actor. Jobs
# on a cluster are told the result.
if workflow.is_main_process:
    by_stage = workflow.resource_settings.overwrite_resources
    by_actor = {f"{stage}_{actor}": given for stage, given in by_stage.items() for actor in SHARDS.answering}
    workflow.resource_settings.overwrite_resources = {**by_actor, **by_stage}


# --- Paths


def artifact(*names):
    """The tracked file of an artifact; the artifact itself is its folder."""
    return "/".join((RESULTS, *map(str, names), "MANIFEST.json"))


def log_file(*names):
    return "/".join((RESULTS, "logs", *names)) + ".log"


# In place of a job's wildcards, for the outputs of its rule.
ANY = SimpleNamespace(backbone="{backbone}", actor="{actor}", seed="{seed}")


def of_actor(kind, w, *names):
    return artifact(kind, w.backbone, w.actor, w.seed, *names)


def plugin(family, name):
    return {"module": module_of(family, name)}


def backbone_spec(name):
    """The keys that every stage with a model has; `model` holds the backbone's settings."""
    backbone = config["backbones"][name]
    return {"backbone": name, "family": plugin("backbones", backbone["family"]), "model": backbone["settings"]}


# --- Jobs: functions of the wildcards


def entry(output, spec, **inputs):
    return {"spec": spec, "inputs": {k: v for k, v in inputs.items() if v}, "output": os.path.dirname(output)}


def inputs_of(describe):
    """The artifacts that a job reads and does not make itself, as Snakemake's input."""

    def function(wildcards):
        inputs, entries = describe(wildcards)
        made = {f"{e['output']}/MANIFEST.json" for e in entries}
        paths = [*inputs.values(), *(path for e in entries for path in e["inputs"].values())]
        return list(dict.fromkeys(p for p in paths if p.endswith("/MANIFEST.json") and p not in made))

    return function


def job_file(stage, job):
    """Write a job down, unless it is, whole, and return the path, which holds the digest of the text.

    The command names the file: jobs outgrow what a command line may hold, and an error message prints the command.
    """
    text = json.dumps(job, indent=1, sort_keys=True)
    path = Path(RESULTS, "jobs", stage, f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json")
    if not path.is_file() or path.read_bytes() != text.encode():
        replace_text(path, text)
    return str(path)


def params_of(stage, describe):
    """The job, digests of what its text does not show (the code of its entries, its raw inputs), and its failures."""

    def job(wildcards):
        inputs, entries = describe(wildcards)
        return job_file(stage, {"store": config["store"], "inputs": inputs, "entries": entries})

    def code(wildcards):
        sources = Path(config["store"], SOURCES_NAME)
        digests = {code_digest(stage, e["spec"], sources) for e in describe(wildcards)[1]}
        return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()

    def raw(wildcards):
        paths = [path for e in describe(wildcards)[1] for path in e["inputs"].values()]
        return [digest_of_raw(path) for path in paths if not path.endswith("/MANIFEST.json")]

    def failed(wildcards):
        return [FAILED.get(f"{e['output']}/MANIFEST.json") for e in describe(wildcards)[1]]

    return {"job": job, "code": code, "raw": raw, "failed": failed}


@cache
def digest_of_raw(path):
    stat_cache = StatCache(Path(config["store"]) / "stat-cache.json")
    try:
        digest = raw_digest(Path(path), stat_cache)
    except ArtifactError as error:
        return str(error)  # the job says so itself, in better words than Snakemake would
    stat_cache.save()
    return digest


def run(stage, environment=None):
    """The command of a job. Its messages go to the terminal and, for later, to the log.

    `environment` is the stamp of one that is not Snakemake's own; it knows this checkout's library by its path.
    """
    python = shlex.quote(sys.executable)
    if environment:
        python = f"PYTHONPATH={shlex.quote(str(REPOSITORY / 'lib'))} {os.path.dirname(environment)}/bin/python"
    return f"{python} -m dualread.store.run {stage} {{params.job}} --log {{log:q}}"


def stage(describe, output, *, actor=None, only={}, after=(), environment=None, resources={}, local=False):
    """Define the rule that runs the stage that is called as `describe` is.

    `describe` returns, for the wildcards of a job, the inputs that its entries share, and the entries. `output` is the
    artifact that a job makes, or a list of them. `actor`: the rule is for this one alone, because actors differ in
    their artifacts and a rule's outputs are fixed. `only`: what the wildcards may be. `after`: what has to be there
    first and is in no key. A `local` stage runs where Snakemake runs, on a cluster too.
    """
    name = describe.__name__
    outputs = [output] if isinstance(output, str) else output
    wildcards = re.findall(r"{\w+}", outputs[0])

    rule:
        name:
            f"{name}_{actor}" if actor else name
        input:
            inputs_of(describe),
            after=after,
            environment=environment or [],
        output:
            outputs,
        log:
            log_file(name, *wildcards),
        wildcard_constraints:
            **({"actor": actor} if actor else only),
        localrule: local
        resources:
            **resources,
        params:
            **params_of(name, describe),
        shell:
            run(name, environment)


def environment_of(family, name):
    """The stamp of the environment that a plugin runs in (its ENVIRONMENT), or None where that is Snakemake's own.

    A stamp's folder is named by the lock file and by the digest of what is installed: studies share it, and an edited
    lock makes another one.
    """
    if not (environment := declared(family, name, "ENVIRONMENT")):
        return None
    build = config["machine"][environment]
    lock = environment if build == "cuda" else f"{environment}-{build}"
    installed = [(REPOSITORY / "envs" / file).read_bytes() for file in ("torch.txt", f"{lock}.lock")]
    digest = hashlib.sha256(b"".join([*installed, repr(sys.version_info[:2]).encode()])).hexdigest()
    return f"results/environments/{lock}-{digest[:16]}/READY"


def failures():
    """Yield what the logs of this run's failed jobs say, one text a job."""
    for path in sorted(Path(RESULTS, "logs").rglob("*.log")):
        if path.stat().st_mtime >= STARTED:
            text = path.read_text(errors="replace").rstrip()
            if reason := re.search(r"^\[\w+\] error: ", text, re.MULTILINE):
                yield f"{text[reason.start():]}\n  (log: {path})"
            elif not re.search(r"^\[\w+\] (done|interrupted.*)\Z", text, re.MULTILINE):
                yield (
                    f"{path}: this job was killed, perhaps for lack of memory. Run the same command again: artifacts"
                    " that it finished are kept. To run fewer models at once, raise machine.model_job_memory_gb; on a"
                    " cluster, raise the stage's mem_mb or runtime in the profile."
                )


def note_failures():
    """Write down when the jobs that failed, or were not reached, did so; a part of their params from then on.

    Snakemake 9.27 records a failed job as if it had finished: what it read would count as seen, and while older
    results lie below it the next call would find nothing to do and leave them as they are.
    """
    files = [file for job in workflow.dag.needrun_jobs() for file in job.output if not os.path.exists(file)]
    replace_text(FAILURES, json.dumps({**FAILED, **dict.fromkeys(files, STARTED)}, indent=1))


# Snakemake 9.27 starts at most 100 jobs per second, and no setting says "no limit". For the sake of that limit it looks at
# all ready jobs again one second after each look at which some were ready: every finished job adds such a series of looks,
# and in a long run they take a fifth of a core. Jobs of this machine never come near the limit.
onstart:
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


# The last words, below Snakemake's own, are the failed jobs' (wherever they ran).
onerror:
    note_failures()
    print("", *failures(), sep="\n", file=sys.stderr)


# What a study's results were, in one small file that can be kept with a paper: `dualread restore` shows them again.
onsuccess:
    try:
        write_lock(Path(RESULTS), Store(Path(config["store"])))
    except (ArtifactError, OSError) as error:
        print(f"warning: results.lock was not written: {error}", file=sys.stderr)


def manifests(shards):
    return {f"manifest/{d}/{s}": artifact("manifests", d, s) for d, s, *_ in shards}


def pairs(shards):
    return {f"pairs/{d}/{s}": artifact("pairs", d, s) for d, s, *_ in shards if SHARDS.has_pairs(d, s)}


def answer_spec(w, *shard):
    """What generation and replay of a shard, or of a view of it, have in common."""
    return {
        **backbone_spec(w.backbone),
        **{"actor": w.actor, "seed": int(w.seed)},
        **SHARDS.asked(w.actor, shard),
    }


def shard_inputs(w, dataset, split, condition, view=None, *, generations=False):
    """Manifest, pairs where the donor's image is shown, and, if wanted, the completions that the shard is about."""
    answered = CONDITIONS[condition].get("completions", condition)
    return {
        "manifest": artifact("manifests", dataset, split),
        "pairs": artifact("pairs", dataset, split) if SHARDS.shows_donors(condition) else None,
        "generations": of_actor("generations", w, dataset, split, answered) if view or generations else None,
    }


def shard_artifact(kind, w, *shard):
    """The artifact of `kind` of a shard; that of a view is called one, whatever made it."""
    return of_actor("views" if len(shard) == 4 else kind, w, *shard)


def answers(w, kinds, wanted):
    """The artifacts of `kinds` of the actor's shards in `wanted`, and their manifests, by name."""
    return {
        **manifests(wanted),
        **{f"{kind}/{'/'.join(shard)}": of_actor(kind, w, *shard) for kind in kinds for shard in wanted},
    }
