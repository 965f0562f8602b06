# Turns the study's config into jobs. The other files of this folder only say what is made from what.
#
# A job is one call of `python -m dualread.run STAGE JOB`; its entries are the artifacts that it makes, each with its own
# `spec` (all that the result depends on besides its inputs and the code) and its own key in the store.

import hashlib
import json
import os
import re
import shlex
import sys
import time
from functools import cache

import dualread
from dualread import plugins
from dualread.errors import ArtifactError, ConfigError
from dualread.store.code import code_digest
from dualread.store.digest import StatCache, raw_digest

if REPOSITORY not in Path(dualread.__file__).resolve().parents:
    raise ConfigError(
        f"{REPOSITORY}: the rules are from here, but the library is {Path(dualread.__file__).parent}."
        f" Use this checkout's environment (make env), or set PYTHONPATH={REPOSITORY / 'lib'}."
    )

STARTED = time.time()
RESULTS = f"results/{config['study']}"
FAILURES = Path(RESULTS, "failures.json")
FAILED = json.loads(FAILURES.read_text()) if FAILURES.exists() else {}
DATASETS, ACTORS, METHODS = config["datasets"], config["actors"], config["methods"]
ID = next(name for name, dataset in DATASETS.items() if dataset.get("id"))
# The actor that is the backbone as it comes: the one without a training.
BASE = next(name for name, actor in ACTORS.items() if "training" not in actor)

# Actors that a method reads; nobody waits for the answers of others.
ANSWERING = [actor for actor in ACTORS if any(method["actor"] == actor for method in METHODS.values())]

# One thread a job: results then do not depend on the number of cores, and jobs that share cores do not fight for them.
shell.prefix("export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE POLARS_MAX_THREADS=1 TOKENIZERS_PARALLELISM=false; ")


wildcard_constraints:
    phantom="|".join(config.get("phantoms", {})),
    dataset="|".join(DATASETS),
    split="train|validation|test",
    backbone="|".join(config["backbones"]),
    actor="|".join(ACTORS),
    seed=r"\d+",
    table="|".join(config["tables"]),


# --- Paths


def artifact(*names):
    """The tracked file of an artifact; the artifact itself is its folder."""
    return "/".join((RESULTS, *map(str, names), "MANIFEST.json"))


def log_file(*names):
    return "/".join((RESULTS, "logs", *names)) + ".log"


def of_actor(kind, w, *names):
    return artifact(kind, w.backbone, w.actor, w.seed, *names)


# --- What the config implies


def seeds(actor):
    return config["seeds"] if "training" in ACTORS[actor] else [0]


def methods_of(actor):
    return [name for name, method in METHODS.items() if method["actor"] == actor]


def parents(method):
    return METHODS[method].get("parents", {})


@cache
def reads(method, what):
    """Whether the reader, or one that it builds on, has `what`: FEATURES of the replay, or the split that it is FITTED_ON."""
    value = plugins.declared("readers", METHODS[method]["reader"], what)
    return bool(value) or any(reads(parent, what) for parent in parents(method).values())


def shards(actor):
    """(data set, split, condition) of everything that the actor answers; train only where a reader is fitted on it."""
    is_fitted_on = any(reads(method, "FITTED_ON") for method in methods_of(actor))
    return [
        (name, split, condition)
        for name, dataset in DATASETS.items()
        for split in dataset["splits"]
        if split != "train" or is_fitted_on
        for condition, shown in config["conditions"].items()
        if shown["image"] != "donor" or split in dataset.get("pairing", {}).get("splits", [])
    ]


def prompt_of(actor, dataset, condition):
    """The first that says so: the actor (its own output format), the condition, the data set."""
    for entry in (ACTORS[actor], config["conditions"][condition], DATASETS[dataset]):
        if "prompt" in entry:
            return {"name": entry["prompt"], "file": f"prompts/{entry['prompt']}.txt"}


def plugin(family, name):
    return {"module": f"{family}.{name}"}


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
    """Write a job down, unless it is, and return the path, which holds the digest of the text.

    The command names the file: jobs outgrow what a command line may hold, and an error message prints the command.
    """
    text = json.dumps(job, indent=1, sort_keys=True)
    path = Path(RESULTS, "jobs", stage, f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(text)
        temporary.replace(path)
    return str(path)


def params_of(stage, describe):
    """The job, digests of what its text does not show (the code of its entries, its raw inputs), and its failures."""

    def job(wildcards):
        inputs, entries = describe(wildcards)
        return job_file(stage, {"store": config["store"], "inputs": inputs, "entries": entries})

    def code(wildcards):
        digests = {code_digest(stage, e["spec"]) for e in describe(wildcards)[1]}
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


def run(stage):
    """The command of a job. Its messages go to the terminal and, for later, to the log."""
    return f"{shlex.quote(sys.executable)} -m dualread.run {stage} {{params.job}} --log {{log:q}}"


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
                    " that it finished are kept. To run fewer models at once, raise machine.model_job_memory_gb."
                )


def note_failures():
    """Write down when the jobs that failed, or were not reached, did so; a part of their params from then on.

    Snakemake 9.27 records a failed job as if it had finished: what it read would count as seen, and while older
    results lie below it the next call would find nothing to do and leave them as they are.
    """
    files = [file for job in workflow.dag.needrun_jobs() for file in job.output if not os.path.exists(file)]
    FAILURES.parent.mkdir(parents=True, exist_ok=True)
    FAILURES.write_text(json.dumps({**FAILED, **dict.fromkeys(files, STARTED)}, indent=1))


# The last words, below Snakemake's own, are the failed jobs' (wherever they ran).
onerror:
    note_failures()
    print("", *failures(), sep="\n", file=sys.stderr)


def manifests(shards):
    return {f"manifest/{d}/{s}": artifact("manifests", d, s) for d, s, *_ in shards}


def pairs(shards):
    return {
        f"pairs/{d}/{s}": artifact("pairs", d, s)
        for d, s, *_ in shards
        if s in DATASETS[d].get("pairing", {}).get("splits", [])
    }


def answer_spec(w, dataset, split, condition):
    """What generation and replay of a shard have in common."""
    decoding = config["conditions"][condition].get("decoding", config["generation"]["decoding"])
    budget = {k: v for k, v in ACTORS[w.actor].items() if k == "max_completion_tokens"}
    return {
        **backbone_spec(w.backbone),
        **{"actor": w.actor, "seed": int(w.seed), "dataset": dataset, "split": split, "condition": condition},
        "prompt": prompt_of(w.actor, dataset, condition),
        "image": config["conditions"][condition]["image"],
        "decoding": {**decoding, **budget},
    }


def shard_inputs(w, dataset, split, condition, *kinds):
    """Manifest, pairs where the donor's image is shown, and this shard's artifacts of `kinds`."""
    shown = config["conditions"][condition]["image"]
    return {
        "manifest": artifact("manifests", dataset, split),
        "pairs": artifact("pairs", dataset, split) if shown == "donor" else None,
        **{kind: of_actor(kind, w, dataset, split, condition) for kind in kinds},
    }


def answers(w, kinds, wanted):
    """The artifacts of `kinds` of the actor's shards in `wanted`, and their manifests, by name."""
    return {
        **manifests(wanted),
        **{f"{kind}/{'/'.join(shard)}": of_actor(kind, w, *shard) for kind in kinds for shard in wanted},
    }


def reported(actor):
    """Shards that get confidences: all but those of the training split."""
    return [shard for shard in shards(actor) if shard[1] != "train"]
