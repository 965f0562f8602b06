# Answers: one job loads an actor once. It answers all shards (data set, split, condition), one artifact per shard, and
# then what the actor is asked about these answers (views).
#
# REQUIRES results/<study>/actors/<backbone>/<actor>/<seed>/, manifests, pairs, the engine's environment
# PROVIDES results/<study>/generations/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/ and views/<same>/<view>/


# One rule per actor, because actors differ in their shards and a rule's outputs are fixed.
for actor in (actor for actor in SHARDS.answering if actor not in SHARDS.given):

    stage(
        ARTIFACTS.generate,
        [ARTIFACTS.of_shard("generations", ANY, shard) for shard in SHARDS.generated(actor)],
        environment=ENGINE_ENVIRONMENT,
        actor=actor,
        resources=dict(model_slots=1, gpu=1),
    )
