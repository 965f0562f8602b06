# Actors: the base checkpoint of each backbone, what is trained from it, and actors that come as checkpoints.
#
# REQUIRES results/<study>/manifests/<id data set>/train/
# PROVIDES results/<study>/actors/<backbone>/<actor>/<seed>/, and facts/<same>/ of those that are not trained here

from dualread.specs.actors import (
    CopyCheckpointSpec,
    PretrainBaseSpec,
    ProbeCheckpointSpec,
    Pretraining,
    PretrainingReport,
    TrainActorSpec,
)
from dualread.specs.parts import ConfiguredPlugin, Repository
from dualread.study.training import training_settings


def checkpoint_source(w):
    """Where an actor comes from that GRPO does not train here: a recipe, a folder or the hub."""
    if w.actor == SHARDS.base:
        return STUDY.backbones[w.backbone].source
    return STUDY.actors[w.actor].checkpoints[w.backbone][int(w.seed)]


def pretrain_base(w):
    recipe = checkpoint_source(w).pretrain
    pool, sizes = recipe.pool, recipe.architecture.model_dump(exclude={"name"})
    spec = PretrainBaseSpec(
        **model_of(w.backbone),
        seed=recipe.seed,
        pool=ConfiguredPlugin(module=module_of("corpora", pool.name), settings=pool.settings),
        architecture=ConfiguredPlugin(module=module_of("architectures", recipe.architecture.name), settings=sizes),
        training=Pretraining(**recipe.training.model_dump()),
        reported=PretrainingReport(**recipe.report.model_dump()),
    )
    manifest = artifact("manifests", pool.dataset, "train") if pool.dataset else None
    return {}, [entry(of_actor("actors", w), spec, manifest=manifest)]


def copy_checkpoint(w):
    source = checkpoint_source(w)
    repository = Repository(hub=source.hub, revision=source.revision) if source.hub else None
    spec = CopyCheckpointSpec(model=model_of(w.backbone)["model"], repository=repository)
    return {}, [entry(of_actor("actors", w), spec, source=None if repository else getattr(source, "folder", None))]


def probe_checkpoint(w):
    spec = ProbeCheckpointSpec(**model_of(w.backbone))
    return {}, [entry(of_actor("facts", w), spec, actor=of_actor("actors", w))]


def train_actor(w):
    actor = STUDY.actors[w.actor]
    spec = TrainActorSpec(
        **model_of(w.backbone),
        actor=w.actor,
        seed=int(w.seed),
        training=plugin("training", actor.training),
        reward=plugin("rewards", actor.reward),
        prompt=SHARDS.prompt(w.actor, SHARDS.in_distribution, "original"),
        settings=training_settings(actor.settings, STUDY.backbones[w.backbone].training),
    )
    inputs = {
        "base": artifact("actors", w.backbone, SHARDS.base, 0),
        "facts": facts_of(w),
        "manifest": artifact("manifests", SHARDS.in_distribution, "train"),
    }
    return inputs, [entry(of_actor("actors", w), spec)]


def gpus_of_training(w):
    """One per process that trains the actor."""
    return training_settings(STUDY.actors[w.actor].settings, STUDY.backbones[w.backbone].training).get("processes", 1)


BASE = [SHARDS.base] if SHARDS.base else []
PRETRAINED = [name for name, backbone in STUDY.backbones.items() if backbone.source.pretrain]
COPIED = [name for name, actor in STUDY.actors.items() if actor.checkpoints]


# Nothing is trained before the leakage check has passed. Its report is in no key, so that a new report alone trains
# nothing again. It is not `ancient`: with that, Snakemake 9.27 plans nothing behind a check that runs again, not even
# what is missing.
stage(
    pretrain_base,
    artifact("actors", "{backbone}", "{actor}", "{seed}"),
    after=artifact("leakage"),
    only=dict(backbone=one_of(PRETRAINED), actor=one_of(BASE)),
    resources=dict(model_slots=1, gpu=1),
)


stage(
    copy_checkpoint,
    artifact("actors", "{backbone}", "{actor}", "{seed}"),
    only=dict(actor=one_of([*BASE, *COPIED])),
    local=True,
)


# Both can make a base; the recipe comes first where there is one.
ruleorder: pretrain_base > copy_checkpoint


stage(
    probe_checkpoint,
    artifact("facts", "{backbone}", "{actor}", "{seed}"),
    only=dict(actor=one_of([*BASE, *COPIED])),
    resources=dict(model_slots=1, gpu=1),
)


stage(
    train_actor,
    artifact("actors", "{backbone}", "{actor}", "{seed}"),
    after=artifact("leakage"),
    only=dict(actor=one_of(name for name, actor in STUDY.actors.items() if actor.training)),
    resources=dict(model_slots=1, gpu=gpus_of_training),
)
