# Turns the study's config into jobs. The other files of this folder only say what is made from what.
#
# A job is one call of `python -m dualread.run STAGE JOB`; its entries are the artifacts that it makes, each with its own
# `spec` (all that the result depends on besides its inputs and the code) and its own key in the store.

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from functools import cache

import dualread
from dualread.errors import ConfigError
from dualread.store.code import code_digest
from dualread.store.digest import StatCache, raw_digest

if REPOSITORY not in Path(dualread.__file__).resolve().parents:
    raise ConfigError(
        f"{REPOSITORY}: the rules are from here, but the library is {Path(dualread.__file__).parent}."
        f" Use this checkout's environment (make env), or set PYTHONPATH={REPOSITORY / 'lib'}."
    )

RESULTS = f"results/{config['study']}"
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


def shards(actor):
    """(data set, split, condition) of everything that the actor answers."""
    is_fitted_on = any(METHODS[name].get("fitted", True) for name in methods_of(actor))
    return [
        (name, split, condition)
        for name, dataset in DATASETS.items()
        for split in dataset["splits"]
        if is_fitted_on or split == "test"
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


def params_of(stage, describe):
    """The job, and digests of what its text does not show: the code of its entries, and its raw inputs."""

    def spec(wildcards):
        inputs, entries = describe(wildcards)
        return json.dumps({"store": config["store"], "inputs": inputs, "entries": entries}, sort_keys=True)

    def code(wildcards):
        digests = {code_digest(stage, e["spec"]) for e in describe(wildcards)[1]}
        return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()

    def raw(wildcards):
        paths = [path for e in describe(wildcards)[1] for path in e["inputs"].values()]
        return [digest_of_raw(path) for path in paths if not path.endswith("/MANIFEST.json")]

    return {"spec": spec, "code": code, "raw": raw}


@cache
def digest_of_raw(path):
    stat_cache = StatCache(Path(config["store"]) / "stat-cache.json")
    digest = raw_digest(Path(path), stat_cache.sha256)
    stat_cache.save()
    return digest


def run(stage):
    """The command of a job. Its messages go to the terminal and, for later, to the log."""
    return f"{shlex.quote(sys.executable)} -m dualread.run {stage} {{params.spec:q}} 2> >(tee {{log:q}} >&2)"


def draw_phantom(w):
    return {}, [entry(artifact("phantoms", w.phantom), {"name": w.phantom, **config["phantoms"][w.phantom]})]


def download_dataset(w):
    source = DATASETS[w.dataset]["source"]
    return {}, [entry(artifact("downloads", w.dataset), {key: source[key] for key in ("hub", "revision")})]


def source_of(dataset):
    """Where a data set's official files are: a folder that exists, else the hub; or a phantom."""
    source = DATASETS[dataset]["source"]
    if "phantom" in source:
        return artifact("phantoms", source["phantom"])
    if "folder" in source and (REPOSITORY / source["folder"]).exists():
        return os.path.relpath(REPOSITORY / source["folder"])
    if "hub" in source:
        return artifact("downloads", dataset)
    raise ConfigError(
        f"datasets.{dataset}.source.folder: {source['folder']!r}: no such folder under {REPOSITORY}."
        " Put the official files there, or add `hub` and `revision`."
    )


def build_manifest(w):
    dataset = DATASETS[w.dataset]
    spec = {
        "dataset": w.dataset,
        "split": w.split,
        "loader": plugin("datasets", dataset["loader"]),
        "settings": dataset.get("settings", {}),
        "roles": dataset["roles"][w.split],
        "seed": dataset["seed"],
    }
    return {}, [entry(artifact("manifests", w.dataset, w.split), spec, source=source_of(w.dataset))]


def manifests(shards):
    return {f"manifest/{d}/{s}": artifact("manifests", d, s) for d, s, *_ in shards}


def pairs(shards):
    return {
        f"pairs/{d}/{s}": artifact("pairs", d, s)
        for d, s, *_ in shards
        if s in DATASETS[d].get("pairing", {}).get("splits", [])
    }


def check_leakage(w):
    everything = [(name, split) for name, dataset in DATASETS.items() for split in dataset["splits"]]
    return manifests(everything), [entry(artifact("leakage"), {})]


def pair_donors(w):
    spec = {"match_on": DATASETS[w.dataset]["pairing"]["match_on"]}
    return {}, [entry(artifact("pairs", w.dataset, w.split), spec, manifest=artifact("manifests", w.dataset, w.split))]


def prepare_base(w):
    source = config["backbones"][w.backbone]["source"]
    inputs = {}
    if "pretrain" in source:
        pool = source["pretrain"]["pool"]
        if "dataset" in pool:
            inputs["manifest"] = artifact("manifests", pool["dataset"], "train")
        opened = {**plugin("pools", pool["name"]), "settings": pool.get("settings", {})}
        source = {"pretrain": {**source["pretrain"], "pool": opened}}
    return {}, [
        entry(artifact("actors", w.backbone, w.actor, 0), {**backbone_spec(w.backbone), "source": source}, **inputs)
    ]


def train_actor(w):
    actor = ACTORS[w.actor]
    spec = {
        **backbone_spec(w.backbone),
        "actor": w.actor,
        "seed": int(w.seed),
        "training": plugin("training", actor["training"]),
        "reward": plugin("rewards", actor["reward"]),
        "prompt": prompt_of(w.actor, ID, "original"),
        "settings": actor["settings"],
    }
    inputs = {"base": artifact("actors", w.backbone, BASE, 0), "manifest": artifact("manifests", ID, "train")}
    return inputs, [entry(of_actor("actors", w), spec)]


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


def generate(w):
    engine = {**plugin("generation", config["generation"]["engine"]), **config["generation"].get("settings", {})}
    return {"actor": of_actor("actors", w)}, [
        entry(
            of_actor("generations", w, *shard),
            {**answer_spec(w, *shard), "engine": engine},
            **shard_inputs(w, *shard),
        )
        for shard in shards(w.actor)
    ]


def grade(w):
    contract = ACTORS[w.actor].get("contract", "single")
    return {}, [
        entry(
            of_actor("graded", w, *shard),
            {"contract": contract, **dict(zip(("dataset", "split", "condition"), shard))},
            **shard_inputs(w, *shard, "generations"),
        )
        for shard in shards(w.actor)
    ]


def replay(w):
    settings = {**config["replay"]["settings"], **{k: config["replay"][k] for k in ("kappa", "agreement")}}
    return {"actor": of_actor("actors", w)}, [
        entry(
            of_actor("features", w, *shard),
            {**answer_spec(w, *shard), **settings},
            **shard_inputs(w, *shard, "generations"),
        )
        for shard in shards(w.actor)
    ]


def answers(w, kinds, wanted):
    """The artifacts of `kinds` of the actor's shards in `wanted`, and their manifests, by name."""
    return {
        **manifests(wanted),
        **{f"{kind}/{'/'.join(shard)}": of_actor(kind, w, *shard) for kind in kinds for shard in wanted},
    }


def method_spec(w, method):
    spec = {"backbone": w.backbone, "actor": w.actor, "seed": int(w.seed), "method": method}
    return {
        **spec,
        "reader": plugin("readers", METHODS[method]["reader"]),
        "settings": METHODS[method].get("settings", {}),
    }


def parents(w, method, prefix="parent"):
    """Readers that a reader builds on, and those that these build on: parent/post, parent/post/state."""
    found = {}
    for role, parent in METHODS[method].get("parents", {}).items():
        name = f"{prefix}/{role}"
        found |= {name: of_actor("readers", w, parent), **parents(w, parent, name)}
    return found


def fit_readers(w):
    """The original questions of train and validation: what a role allows is the reader's business, and tested."""
    wanted = [s for s in shards(w.actor) if s[0] == ID and s[1] != "test" and s[2] == "original"]
    return answers(w, ("graded", "features"), wanted), [
        entry(of_actor("readers", w, method), method_spec(w, method), **parents(w, method))
        for method in methods_of(w.actor)
    ]


def reported(actor):
    """Shards that get confidences: all but those of the training split."""
    return [shard for shard in shards(actor) if shard[1] != "train"]


def score_answers(w):
    return answers(w, ("graded", "features"), reported(w.actor)), [
        entry(
            of_actor("predictions", w, method),
            method_spec(w, method),
            reader=of_actor("readers", w, method),
            **parents(w, method),
        )
        for method in methods_of(w.actor)
    ]


def compute_metrics(w):
    wanted = reported(w.actor)
    spec = {
        **{"study": config["study"], "backbone": w.backbone, "actor": w.actor, "seed": int(w.seed)},
        "datasets": {name: {"splits": sorted({s for d, s, _ in wanted if d == name})} for name, _, _ in wanted},
        **config["metrics"],
    }
    return {**answers(w, ("graded",), wanted), **pairs(wanted)}, [
        entry(
            of_actor("metrics", w, method), {**spec, "method": method}, predictions=of_actor("predictions", w, method)
        )
        for method in methods_of(w.actor)
    ]


def collect_metrics(w):
    ood = [name for name in DATASETS if name != ID]
    inputs = {
        "/".join(map(str, run)): artifact("metrics", *run)
        for run in (
            (backbone, actor, seed, method)
            for backbone in config["backbones"]
            for actor in ANSWERING
            for seed in seeds(actor)
            for method in methods_of(actor)
        )
    }
    spec = {"ood": ood, "ood_ccg": [name for name in ood if "pairing" in DATASETS[name]]}
    return inputs, [entry(artifact("metrics"), spec)]


def build_table(w):
    """`layout` holds what is printed besides numbers: entries in order, with their labels."""
    table = config["tables"][w.table]
    layout = {
        "study": config["study"],
        "backbones": [{"name": name, "label": entry["label"]} for name, entry in config["backbones"].items()],
        "methods": [
            {"name": name, **{key: METHODS[name][key] for key in ("label", "group", "actor")}}
            for name in table["methods"]
        ],
        "datasets": [{"name": name, "label": dataset["label"], "id": name == ID} for name, dataset in DATASETS.items()],
        "seeds": config["seeds"],
        **table.get("settings", {}),
    }
    spec = {"table": plugin("tables", w.table), "layout": layout}
    return {"metrics": artifact("metrics")}, [entry(artifact("tables", w.table), spec)]


def preview_tables(w):
    inputs = {f"table/{table}": artifact("tables", table) for table in config["tables"]}
    return inputs, [entry(artifact("tables", "preview"), {"latex": latex_version()})]


@cache
def latex_version():
    if shutil.which("pdflatex") is None:
        return None
    return subprocess.run(["pdflatex", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
