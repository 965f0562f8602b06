# Answers: one job loads an actor once. It answers all shards (data set, split, condition), one artifact per shard, and
# then what the actor is asked about these answers (views).
#
# REQUIRES results/<study>/actors/<backbone>/<actor>/<seed>/, manifests, pairs, the engine's environment
# PROVIDES results/<study>/generations/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/ and views/<same>/<view>/


from dualread.specs.generation import GenerateSpec
from dualread.specs.parts import ConfiguredPlugin


def generate(w):
    generation = STUDY.generation
    engine = ConfiguredPlugin(module=module_of("generation", generation.engine), settings=generation.settings)
    return {"actor": of_actor("actors", w), "facts": facts_of(w)}, [
        entry(
            shard_artifact("generations", w, *shard),
            GenerateSpec(**asked(w, shard), engine=engine),
            **shard_inputs(w, *shard),
        )
        for shard in SHARDS.generated(w.actor)
    ]


# One rule per actor, because actors differ in their shards and a rule's outputs are fixed.
for actor in (actor for actor in SHARDS.answering if actor not in SHARDS.given):

    stage(
        generate,
        [shard_artifact("generations", ANY, *shard) for shard in SHARDS.generated(actor)],
        environment=ENGINE_ENVIRONMENT,
        actor=actor,
        resources=dict(model_slots=1, gpu=1),
    )
