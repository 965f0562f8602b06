# Actors: the base checkpoint of each backbone, and what is trained from it.
#
# REQUIRES results/<study>/manifests/<id data set>/train/
# PROVIDES results/<study>/actors/<backbone>/<actor>/<seed>/


rule prepare_base:
    input:
        inputs_of(prepare_base),
    output:
        artifact("actors", "{backbone}", "{actor}", 0),
    log:
        log_file("prepare_base", "{backbone}", "{actor}"),
    wildcard_constraints:
        actor=BASE,
    resources:
        model_slots=1,
    params:
        **params_of("prepare_base", prepare_base),
    shell:
        run("prepare_base")


# `ancient`: nothing is trained before the check has passed, but a new check report retrains nothing.
rule train_actor:
    input:
        inputs_of(train_actor),
        leakage=ancient(artifact("leakage")),
    output:
        artifact("actors", "{backbone}", "{actor}", "{seed}"),
    log:
        log_file("train_actor", "{backbone}", "{actor}", "{seed}"),
    wildcard_constraints:
        actor="|".join(actor for actor in ACTORS if actor != BASE),
    resources:
        model_slots=1,
    params:
        **params_of("train_actor", train_actor),
    shell:
        run("train_actor")
