# Replay: one teacher-forced pass over the exact generated tokens reads their hidden states. A replay whose
# log-probabilities differ from those of the generation is refused.
#
# REQUIRES results/<study>/generations/..., the actor, manifests, pairs
# PROVIDES results/<study>/features/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/ and views/<same>/<view>/


from dualread.declared.answers import ReplaySpec


def replay(w):
    return {"actor": checkpoint_of(w), "facts": facts_of(w)}, [
        entry(
            shard_artifact("features", w, *shard),
            ReplaySpec(
                **asked(w, shard),
                replay=STUDY.replay.model_copy(update={"from_": None}),  # `states` says it where it counts
                states=SHARDS.pass_reading(w.actor, shard),
                **stored_besides(w.actor, shard),
            ),
            **shard_inputs(w, *shard, generations=True),
        )
        for shard in SHARDS.replayed(w.actor)
    ]


def stored_besides(actor, shard):
    """What only some readers read, of answers alone and not of views of them."""
    return {} if len(shard) == 4 else {"optional_tensors": SHARDS.optional_tensors(actor)}


for actor in (actor for actor in SHARDS.answering if SHARDS.replayed(actor) and actor not in SHARDS.given):

    stage(
        replay,
        [shard_artifact("features", ANY, *shard) for shard in SHARDS.replayed(actor)],
        actor=actor,
        resources=dict(model_slots=1, gpu=1),
    )
