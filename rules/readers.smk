# Readers: fitted on the answers to train (and, for some, validation); then every other answer gets a confidence.
#
# REQUIRES results/<study>/graded/... and features/... of one actor
# PROVIDES results/<study>/readers/<backbone>/<actor>/<seed>/<method>/ and predictions/<same>/, which hold no labels


def fit_readers(w):
    """The labels that a reader sees: the original questions of the train split, whatever it does with their roles."""
    train = (ID, "train", "original")
    manifest, graded = artifact("manifests", ID, "train"), of_actor("graded", w, *train)
    return {}, [
        entry(
            of_actor("readers", w, method),
            {
                **method_spec(w, method),
                "settings": METHODS[method].get("settings", {}),
                "train": {"dataset": ID, "split": "train"},
            },
            **({"manifest": manifest, "graded": graded} if reads(method, "FITTED_ON") else {}),
            features=of_actor("features", w, *train) if reads(method, "FEATURES") else None,
            **{f"parent/{role}": of_actor("readers", w, parent) for role, parent in parents(method).items()},
        )
        for method in methods_of(w.actor)
    ]


def score_answers(w):
    wanted = reported(w.actor)
    keys = ("dataset", "split", "condition")
    return answers(w, ("graded",), wanted), [
        entry(
            of_actor("predictions", w, method),
            {**method_spec(w, method), "shards": [dict(zip(keys, shard)) for shard in wanted]},
            reader=of_actor("readers", w, method),
            **(answers(w, ("features",), wanted) if reads(method, "FEATURES") else {}),
        )
        for method in methods_of(w.actor)
    ]


def method_spec(w, method):
    named = named_reader(method)
    spec = {"backbone": w.backbone, "actor": w.actor, "seed": int(w.seed), "method": method}
    return {**spec, "reader": {"module": named["module"]}, "parents": named["parents"]}


def named_reader(method):
    """A reader and, recursively, those it builds on: the code digest sees modules only where a spec names them."""
    above = {role: named_reader(parent) for role, parent in parents(method).items()}
    return {"method": method, "parents": above, **plugin("readers", METHODS[method]["reader"])}


for actor in ANSWERING:

    rule:
        name:
            f"fit_readers_{actor}"
        input:
            inputs_of(fit_readers),
            leakage=ancient(artifact("leakage")),
        output:
            [artifact("readers", "{backbone}", "{actor}", "{seed}", method) for method in methods_of(actor)],
        log:
            log_file("fit_readers", "{backbone}", "{actor}", "{seed}"),
        wildcard_constraints:
            actor=actor,
        resources:
            model_slots=1,
        params:
            **params_of("fit_readers", fit_readers),
        shell:
            run("fit_readers")

    rule:
        name:
            f"score_answers_{actor}"
        input:
            inputs_of(score_answers),
        output:
            [artifact("predictions", "{backbone}", "{actor}", "{seed}", method) for method in methods_of(actor)],
        log:
            log_file("score_answers", "{backbone}", "{actor}", "{seed}"),
        wildcard_constraints:
            actor=actor,
        params:
            **params_of("score_answers", score_answers),
        shell:
            run("score_answers")
