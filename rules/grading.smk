# Grades: what was answered, and whether it is correct.
#
# REQUIRES results/<study>/generations/..., manifests, pairs
# PROVIDES results/<study>/graded/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/


from dualread.declared.answers import GradeSpec
from dualread.study.asked import contract_of, image_of


def grade(w):
    return {}, [
        entry(
            of_actor("graded", w, *shard),
            GradeSpec(
                **run_of(w),
                contract=plugin("contracts", contract_of(STUDY, w.actor, shard[0], shard[2])),
                dataset=shard[0],
                split=shard[1],
                condition=shard[2],
                image=image_of(STUDY.conditions[shard[2]].image),
                completions=STUDY.conditions[shard[2]].completions,
            ),
            **shard_inputs(w, *shard, generations=True),
        )
        for shard in SHARDS.shards(w.actor)
    ]


def answers(w, kinds, wanted):
    """The artifacts of `kinds` of the actor's shards in `wanted`, and their manifests, by name."""
    return {
        **manifests(wanted),
        **{f"{kind}/{'/'.join(shard)}": of_actor(kind, w, *shard) for kind in kinds for shard in wanted},
    }


for actor in SHARDS.answering:

    stage(
        grade,
        [artifact("graded", "{backbone}", "{actor}", "{seed}", *shard) for shard in SHARDS.shards(actor)],
        actor=actor,
    )
