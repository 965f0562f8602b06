# Checkpoints: the base of each backbone, and actors that are not trained here; and what experiments say about each.
#
# REQUIRES results/<study>/manifests/<id data set>/train/
# PROVIDES results/<study>/actors/<backbone>/<actor>/<seed>/, facts/<same>/ and training_facts/<same>/


BASE = [SHARDS.base] if SHARDS.base else []
PRETRAINED = [name for name, backbone in STUDY.backbones.items() if backbone.source.pretrain]
COPIED = [name for name, actor in STUDY.actors.items() if actor.checkpoints]


# Nothing is trained before the leakage check has passed. Its report is in no key, so that a new report alone trains
# nothing again. It is not `ancient`: with that, Snakemake 9.27 plans nothing behind a check that runs again, not even
# what is missing.
stage(
    ARTIFACTS.pretrain_base,
    ARTIFACTS.of_actor("actors", ANY),
    after=ARTIFACTS.at("leakage"),
    only=dict(backbone=one_of(PRETRAINED), actor=one_of(BASE)),
    resources=dict(model_slots=1, gpu=1),
)


stage(
    ARTIFACTS.copy_checkpoint,
    ARTIFACTS.of_actor("actors", ANY),
    only=dict(actor=one_of([*BASE, *COPIED])),
    local=True,
)


# Both can make a base; the recipe comes first where there is one.
ruleorder: pretrain_base > copy_checkpoint


stage(
    ARTIFACTS.probe_checkpoint,
    ARTIFACTS.of_actor("facts", ANY),
    only=dict(actor=one_of([*BASE, *COPIED])),
    resources=dict(model_slots=1, gpu=1),
)


for rollouts, environment in TRAINING_ENVIRONMENTS.items():
    if rollouts:

        stage(
            partial(ARTIFACTS.probe_checkpoint, rollouts=rollouts),
            ARTIFACTS.of_actor("training_facts", ANY),
            part=rollouts,
            only=dict(
                backbone=one_of(name for name in STUDY.backbones if SHARDS.rollouts_of(name) == rollouts),
                actor=one_of(BASE),
            ),
            environment=environment,
            resources=dict(model_slots=1, gpu=1),
        )
