# Grades: what was answered, and whether it is correct.
#
# REQUIRES results/<study>/generations/..., manifests, pairs
# PROVIDES results/<study>/graded/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/


def grade(w):
    keys = ("dataset", "split", "condition", "image", "completions")
    specs = {shard: answer_spec(w, *shard) for shard in SHARDS.shards(w.actor)}
    return {}, [
        entry(
            of_actor("graded", w, *shard),
            {"contract": SHARDS.contract(w.actor), **{key: spec[key] for key in keys if key in spec}},
            **shard_inputs(w, *shard, generations=True),
        )
        for shard, spec in specs.items()
    ]


for actor in SHARDS.answering:

    stage(
        grade,
        [artifact("graded", "{backbone}", "{actor}", "{seed}", *shard) for shard in SHARDS.shards(actor)],
        actor=actor,
    )
