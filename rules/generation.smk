# Answers: one job loads an actor once. It answers all shards (data set, split, condition), one artifact per shard, and
# then what the actor is asked about these answers (views).
#
# REQUIRES results/<study>/actors/<backbone>/<actor>/<seed>/, manifests, pairs, the engine's environment
# PROVIDES results/<study>/generations/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/ and views/<same>/<view>/


from dualread.declared.answers import GenerateSpec
from dualread.declared.base import ConfiguredPlugin
from dualread.study.asked import shard_spec


def shard_artifact(kind, w, *shard):
    """The artifact of `kind` of a shard; all artifacts of views are in one folder, whatever stage makes them."""
    return of_actor("views" if len(shard) == 4 else kind, w, *shard)


def shard_inputs(w, dataset, split, condition, view=None, *, generations=False):
    """The manifest; the pairs if the donor's image is shown; on request, the completions that the shard is about."""
    answered = STUDY.conditions[condition].completions or condition
    return {
        "manifest": artifact("manifests", dataset, split),
        "pairs": artifact("pairs", dataset, split) if SHARDS.needs_pairs(condition) else None,
        "generations": of_actor("generations", w, dataset, split, answered) if view or generations else None,
    }


def asked(w, shard):
    """The fields that the specs of generation and replay of a shard, or of a view of it, have in common."""
    model = STUDY.backbones[w.backbone].answering()
    return {**run_of(w), **same_as(w), "model": model, "shard": shard_spec(STUDY, w.actor, shard)}


def generate(w):
    generation = STUDY.generation
    engine = ConfiguredPlugin(module=module_of("generation", generation.engine), settings=generation.settings)
    return {"actor": checkpoint_of(w), "facts": facts_of(w)}, [
        entry(
            shard_artifact("generations", w, *shard),
            GenerateSpec(**asked(w, shard), engine=engine, states=SHARDS.pass_reading(w.actor, shard)),
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
