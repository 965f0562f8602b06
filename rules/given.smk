# Given answers: a service, or a file, answers in the place of an actor of our own. `dualread ask` writes what it is asked
# and can send it; its responses become the same artifacts that generation writes.
#
# REQUIRES the folder of the actor's `answers`, manifests, pairs
# PROVIDES results/<study>/actors/<backbone>/<actor>/0/, generations/<same>/<dataset>/<split>/<condition>/, views/<same>/<view>/,
#          and features/<same>/ where the likelihood of answers is read


from dualread.schema.answers import DescribeServiceSpec, ReadAnswersSpec, ReadLikelihoodsSpec
from dualread.study.asked import shard_spec


def describe_service(w):
    spec = DescribeServiceSpec(
        **run_of(w),
        model=SHARDS.service(w.backbone, w.actor).model,
        left_out=STUDY.left_out.get(w.actor, {}),
    )
    return {}, [entry(of_actor("actors", w), spec)]


def read_answers(w):
    return {}, [
        entry(
            ARTIFACTS.of_shard("generations", w, shard),
            ReadAnswersSpec(
                **run_of(w),
                service=SHARDS.service(w.backbone, w.actor),
                shard=shard_spec(STUDY, w.actor, shard),
            ),
            responses=responses_of(w),
            **ARTIFACTS.shard_inputs(w, shard),
        )
        for shard in SHARDS.generated(w.actor)
    ]


def read_likelihoods(w):
    return {"actor": of_actor("actors", w)}, [
        entry(
            ARTIFACTS.of_shard("features", w, shard),
            ReadLikelihoodsSpec(**run_of(w), shard=shard_spec(STUDY, w.actor, shard)),
            generations=ARTIFACTS.of_shard("generations", w, shard),
        )
        for shard in SHARDS.replayed(w.actor)
    ]


def responses_of(w):
    """A raw folder, named in every entry: Snakemake tracks those of entries alone."""
    return os.path.relpath(REPOSITORY / STUDY.actors[w.actor].answers.folder / "responses")


stage(
    describe_service,
    artifact("actors", "{backbone}", "{actor}", "{seed}"),
    only=dict(actor=one_of(SHARDS.given)),
    local=True,
)


# One rule per actor, as for answers that are generated here.
for actor in (actor for actor in SHARDS.answering if actor in SHARDS.given):

    stage(
        read_answers,
        [ARTIFACTS.of_shard("generations", ANY, shard) for shard in SHARDS.generated(actor)],
        actor=actor,
        local=True,
    )

    if SHARDS.replayed(actor):

        stage(
            read_likelihoods,
            [ARTIFACTS.of_shard("features", ANY, shard) for shard in SHARDS.replayed(actor)],
            actor=actor,
            local=True,
        )


# What `dualread ask` reads: the questions of the study, and their donors.
rule questions:
    input:
        list(ARTIFACTS.manifests(EVERYTHING).values()),
        list(ARTIFACTS.pairs(EVERYTHING).values()),
        artifact("leakage"),
