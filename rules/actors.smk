# Actors: the base checkpoint of each backbone, and what is trained from it.
#
# REQUIRES results/<study>/manifests/<id data set>/train/
# PROVIDES results/<study>/actors/<backbone>/<actor>/<seed>/


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


# `ancient`: nothing is trained before the check has passed, but a new check report trains nothing again.
rule prepare_base:
    input:
        inputs_of(prepare_base),
        leakage=ancient(artifact("leakage")),
    output:
        artifact("actors", "{backbone}", "{actor}", 0),
    log:
        log_file("prepare_base", "{backbone}", "{actor}"),
    wildcard_constraints:
        actor=BASE,
    resources:
        model_slots=1,
    params:
        **params_of("prepare_base", prepare_base),
    shell:
        run("prepare_base")


rule train_actor:
    input:
        inputs_of(train_actor),
        leakage=ancient(artifact("leakage")),
    output:
        artifact("actors", "{backbone}", "{actor}", "{seed}"),
    log:
        log_file("train_actor", "{backbone}", "{actor}", "{seed}"),
    wildcard_constraints:
        actor="|".join(actor for actor in ACTORS if actor != BASE),
    resources:
        model_slots=1,
    params:
        **params_of("train_actor", train_actor),
    shell:
        run("train_actor")
