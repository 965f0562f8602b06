# Checkpoints: the base of each backbone, and actors that are not trained here; and what experiments say about each.
#
# REQUIRES results/<study>/manifests/<id data set>/train/
# PROVIDES results/<study>/actors/<backbone>/<actor>/<seed>/, facts/<same>/ and training_facts/<same>/

from dualread.schema.backbones import (
    AdapterSpec,
    CopyCheckpointSpec,
    PretrainBaseSpec,
    ProbeCheckpointSpec,
)
from dualread.schema.base import ConfiguredPlugin, Repository
from dualread.plugins import module_of


def model_of(name):
    """The fields that the spec of every stage has that reads a checkpoint as it is."""
    return {"backbone": name, "model": STUDY.backbones[name].opening()}


def rollouts_of(backbone):
    """What samples for the trainings on a backbone; None if the trained model itself does."""
    return STUDY.backbones[backbone].training.get("rollouts")


def sampled_by(rollouts):
    """The backbones for whose trainings `rollouts` samples."""
    return [name for name in STUDY.backbones if rollouts_of(name) == rollouts]


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
        training=recipe.training,
        reported=recipe.report,
    )
    manifest = artifact("manifests", pool.dataset, "train") if pool.dataset else None
    return {}, [entry(of_actor("actors", w), spec, manifest=manifest)]


def repository_of(place):
    return Repository(hub=place.hub, revision=place.revision) if place and place.hub else None


def copy_checkpoint(w):
    """A whole checkpoint, or an adapter with its base, which by default is the backbone."""
    source, model = checkpoint_source(w), model_of(w.backbone)["model"]
    adapter = source.adapter
    whole = source.base if adapter else source
    repository = repository_of(whole)
    inputs = {"source": whole.folder if whole and not repository else None}
    spec = CopyCheckpointSpec(model=model, repository=repository)
    if adapter:
        base = (whole or STUDY.backbones[w.backbone].source).hub
        from_hub = repository_of(adapter)
        spec = spec.model_copy(update={"adapter": AdapterSpec(repository=from_hub, base=base)})
        inputs["adapter"] = None if from_hub else adapter.folder
        inputs["base"] = None if whole else artifact("actors", w.backbone, SHARDS.base, 0)
    return {}, [entry(of_actor("actors", w), spec, **inputs)]


def probe_checkpoint(w, part=None):
    spec = ProbeCheckpointSpec(**model_of(w.backbone), rollouts=plugin("rollouts", part) if part else None)
    return {}, [entry(of_actor("training_facts" if part else "facts", w), spec, actor=of_actor("actors", w))]


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


for rollouts, environment in TRAINING_ENVIRONMENTS.items():
    if rollouts:

        stage(
            probe_checkpoint,
            artifact("training_facts", "{backbone}", "{actor}", "{seed}"),
            part=rollouts,
            only=dict(backbone=one_of(sampled_by(rollouts)), actor=one_of(BASE)),
            environment=environment,
            resources=dict(model_slots=1, gpu=1),
        )
