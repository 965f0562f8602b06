# Readers: fitted on the answers to the training split (some on validation); then every other answer gets a confidence.
#
# REQUIRES results/<study>/graded/... and features/... of one actor, and the actor
# PROVIDES results/<study>/readers/<backbone>/<actor>/<seed>/<method>/ and predictions/<same>/, which hold no labels


for actor in SHARDS.answering:

    if SHARDS.fitted_methods(actor):  # else its methods apply readers of others

        stage(
            ARTIFACTS.fit_readers,
            [ARTIFACTS.of_actor("readers", ANY, method) for method in SHARDS.fitted_methods(actor)],
            after=ARTIFACTS.at("leakage"),
            actor=actor,
            resources=dict(model_slots=1),
        )

    stage(
        ARTIFACTS.score_answers,
        [ARTIFACTS.of_actor("predictions", ANY, method) for method in SHARDS.methods_of(actor)],
        actor=actor,
    )
