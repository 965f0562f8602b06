# Answers: one job loads an actor once and answers all its shards (data set, split, condition), one artifact each.
#
# REQUIRES results/<study>/actors/<backbone>/<actor>/<seed>/, manifests, pairs
# PROVIDES results/<study>/generations/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/


def generate(w):
    engine = {**plugin("generation", config["generation"]["engine"]), **config["generation"].get("settings", {})}
    return {"actor": of_actor("actors", w)}, [
        entry(
            of_actor("generations", w, *shard),
            {**answer_spec(w, *shard), "engine": engine},
            **shard_inputs(w, *shard),
        )
        for shard in shards(w.actor)
    ]


# A rule for each actor, because actors differ in their shards and a rule's outputs are fixed.
for actor in ANSWERING:

    rule:
        name:
            f"generate_{actor}"
        input:
            inputs_of(generate),
        output:
            [artifact("generations", "{backbone}", "{actor}", "{seed}", *shard) for shard in shards(actor)],
        log:
            log_file("generate", "{backbone}", "{actor}", "{seed}"),
        wildcard_constraints:
            actor=actor,
        resources:
            model_slots=1,
        params:
            **params_of("generate", generate),
        shell:
            run("generate")
