# Readers: fitted on the answers to train (and, for some, validation); then every other answer gets a confidence.
#
# REQUIRES results/<study>/graded/... and features/... of one actor
# PROVIDES results/<study>/readers/<backbone>/<actor>/<seed>/<method>/ and predictions/<same>/, which hold no labels

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
