# Given answers: a service, or a file, answers in the place of an actor of our own. `dualread ask` writes what it is asked
# and can send it; its responses become the same artifacts that generation writes.
#
# REQUIRES the folder of the actor's `answers`, manifests, pairs
# PROVIDES results/<study>/actors/<backbone>/<actor>/0/, generations/<same>/<dataset>/<split>/<condition>/, views/<same>/<view>/,
#          and features/<same>/ where the likelihood of answers is read


stage(
    ARTIFACTS.describe_service,
    ARTIFACTS.of_actor("actors", ANY),
    only=dict(actor=one_of(SHARDS.given)),
    local=True,
)


# One rule per actor, as for answers that are generated here.
for actor in (actor for actor in SHARDS.answering if actor in SHARDS.given):

    stage(
        ARTIFACTS.read_answers,
        [ARTIFACTS.of_shard("generations", ANY, shard) for shard in SHARDS.generated(actor)],
        actor=actor,
        local=True,
    )

    if SHARDS.replayed(actor):

        stage(
            ARTIFACTS.read_likelihoods,
            [ARTIFACTS.of_shard("features", ANY, shard) for shard in SHARDS.replayed(actor)],
            actor=actor,
            local=True,
        )


# What `dualread ask` reads: the questions of the study, and their donors.
rule questions:
    input:
        list(ARTIFACTS.manifests().values()),
        list(ARTIFACTS.pairs().values()),
        ARTIFACTS.at("leakage"),
