# Grades: what was answered, and whether it is correct.
#
# REQUIRES results/<study>/generations/..., manifests, pairs
# PROVIDES results/<study>/graded/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/


def grade(w):
    contract = ACTORS[w.actor].get("contract", "single")
    return {}, [
        entry(
            of_actor("graded", w, *shard),
            {"contract": contract, **dict(zip(("dataset", "split", "condition"), shard))},
            **shard_inputs(w, *shard, "generations"),
        )
        for shard in shards(w.actor)
    ]


for actor in ANSWERING:

    rule:
        name:
            f"grade_{actor}"
        input:
            inputs_of(grade),
        output:
            [artifact("graded", "{backbone}", "{actor}", "{seed}", *shard) for shard in shards(actor)],
        log:
            log_file("grade", "{backbone}", "{actor}", "{seed}"),
        wildcard_constraints:
            actor=actor,
        params:
            **params_of("grade", grade),
        shell:
            run("grade")
