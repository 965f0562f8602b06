# Replay: one teacher-forced pass over the exact generated tokens reads their hidden states. A replay whose
# log-probabilities differ from those of the generation is refused.
#
# REQUIRES results/<study>/generations/..., the actor, manifests, pairs
# PROVIDES results/<study>/features/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/ and views/<same>/<view>/


for actor in (actor for actor in SHARDS.answering if SHARDS.replayed(actor) and actor not in SHARDS.given):

    stage(
        ARTIFACTS.replay,
        [ARTIFACTS.of_shard("features", ANY, shard) for shard in SHARDS.replayed(actor)],
        actor=actor,
        resources=dict(model_slots=1, gpu=1),
    )
