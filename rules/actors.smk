# Actors: the base checkpoint of each backbone, what is trained from it, and actors that come as checkpoints.
#
# REQUIRES results/<study>/manifests/<id data set>/train/
# PROVIDES results/<study>/actors/<backbone>/<actor>/<seed>/

from dualread.study.training import training_settings


def checkpoint_source(w):
    """Where an actor comes from that GRPO does not train here: {pretrain}, {folder} or {hub, revision}."""
    if w.actor == SHARDS.base:
        return config["backbones"][w.backbone]["source"]
    return {str(seed): of for seed, of in ACTORS[w.actor]["checkpoints"][w.backbone].items()}[w.seed]


def pretrain_base(w):
    recipe = checkpoint_source(w)["pretrain"]
    pool = recipe["pool"]
    inputs = {"manifest": artifact("manifests", pool["dataset"], "train")} if "dataset" in pool else {}
    opened = {**plugin("corpora", pool["name"]), "settings": pool.get("settings", {})}
    spec = {**backbone_spec(w.backbone), "pretrain": {**recipe, "pool": opened}}
    return {}, [entry(of_actor("actors", w), spec, **inputs)]


def copy_checkpoint(w):
    source = checkpoint_source(w)
    spec = {"family": backbone_spec(w.backbone)["family"], "source": source}
    return {}, [entry(of_actor("actors", w), spec, source=source.get("folder"))]


def train_actor(w):
    actor = ACTORS[w.actor]
    spec = {
        **backbone_spec(w.backbone),
        "actor": w.actor,
        "seed": int(w.seed),
        "training": plugin("training", actor["training"]),
        "reward": plugin("rewards", actor["reward"]),
        "prompt": SHARDS.prompt(w.actor, SHARDS.in_distribution, "original"),
        "settings": training_settings(actor, config["backbones"][w.backbone]),
    }
    inputs = {
        "base": artifact("actors", w.backbone, SHARDS.base, 0),
        "manifest": artifact("manifests", SHARDS.in_distribution, "train"),
    }
    return inputs, [entry(of_actor("actors", w), spec)]


def gpus_of_training(w):
    """One per process that trains the actor."""
    return training_settings(ACTORS[w.actor], config["backbones"][w.backbone]).get("processes", 1)


PRETRAINED = [name for name, backbone in config["backbones"].items() if "pretrain" in backbone["source"]]
COPIED = [name for name, actor in ACTORS.items() if "checkpoints" in actor]


# Nothing is trained before the leakage check has passed. Its report is in no key, so that a new report alone trains
# nothing again. It is not `ancient`: with that, Snakemake 9.27 plans nothing behind a check that runs again, not even
# what is missing.
stage(
    pretrain_base,
    artifact("actors", "{backbone}", "{actor}", "{seed}"),
    after=artifact("leakage"),
    only=dict(backbone=one_of(PRETRAINED), actor=SHARDS.base),
    resources=dict(model_slots=1, gpu=1),
)


stage(
    copy_checkpoint,
    artifact("actors", "{backbone}", "{actor}", "{seed}"),
    only=dict(actor=one_of([SHARDS.base, *COPIED])),
    local=True,
)


# Both can make a base; the recipe comes first where there is one.
ruleorder: pretrain_base > copy_checkpoint


stage(
    train_actor,
    artifact("actors", "{backbone}", "{actor}", "{seed}"),
    after=artifact("leakage"),
    only=dict(actor=one_of(actor for actor, entry in ACTORS.items() if "training" in entry)),
    resources=dict(model_slots=1, gpu=gpus_of_training),
)
