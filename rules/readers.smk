# Readers: fitted on the answers to train (and, for some, validation); then every other answer gets a confidence.
#
# REQUIRES results/<study>/graded/... and features/... of one actor
# PROVIDES results/<study>/readers/<backbone>/<actor>/<seed>/<method>/ and predictions/<same>/, which hold no labels


def method_spec(w, method):
    spec = {"backbone": w.backbone, "actor": w.actor, "seed": int(w.seed), "method": method}
    return {
        **spec,
        "reader": plugin("readers", METHODS[method]["reader"]),
        "settings": METHODS[method].get("settings", {}),
    }


def parents(w, method, prefix="parent"):
    """Readers that a reader builds on, and those that these build on: parent/post, parent/post/state."""
    found = {}
    for role, parent in METHODS[method].get("parents", {}).items():
        name = f"{prefix}/{role}"
        found |= {name: of_actor("readers", w, parent), **parents(w, parent, name)}
    return found


def fit_readers(w):
    """The original questions of train and validation: what a role allows is the reader's business, and tested."""
    wanted = [s for s in shards(w.actor) if s[0] == ID and s[1] != "test" and s[2] == "original"]
    return answers(w, ("graded", "features"), wanted), [
        entry(of_actor("readers", w, method), method_spec(w, method), **parents(w, method))
        for method in methods_of(w.actor)
    ]


def score_answers(w):
    return answers(w, ("graded", "features"), reported(w.actor)), [
        entry(
            of_actor("predictions", w, method),
            method_spec(w, method),
            reader=of_actor("readers", w, method),
            **parents(w, method),
        )
        for method in methods_of(w.actor)
    ]


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
