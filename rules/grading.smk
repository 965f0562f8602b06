# Grades: what was answered, and whether it is correct.
#
# REQUIRES results/<study>/generations/..., manifests, pairs
# PROVIDES results/<study>/graded/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/


from dualread.specs.grading import GradeSpec


def grade(w):
    return {}, [
        entry(
            of_actor("graded", w, *shard),
            GradeSpec(
                contract=SHARDS.contract(w.actor),
                dataset=shard[0],
                split=shard[1],
                condition=shard[2],
                image=STUDY.conditions[shard[2]].image,
                completions=STUDY.conditions[shard[2]].completions,
            ),
            **shard_inputs(w, *shard, generations=True),
        )
        for shard in SHARDS.shards(w.actor)
    ]


for actor in SHARDS.answering:

    stage(
        grade,
        [artifact("graded", "{backbone}", "{actor}", "{seed}", *shard) for shard in SHARDS.shards(actor)],
        actor=actor,
    )
