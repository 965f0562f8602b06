# Grades: what was answered, whether it is correct, and, where a method asks for it, which answers mean the same.
#
# REQUIRES results/<study>/generations/..., manifests, pairs, views/...
# PROVIDES results/<study>/graded/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/ and views/<same>/<view>/;
#          claims/<backbone>/<actor>/<seed>/<dataset>/<split>/ where answers are reports


for actor in SHARDS.answering:

    stage(
        ARTIFACTS.grade,
        [ARTIFACTS.of_actor("graded", ANY, *shard) for shard in SHARDS.shards(actor)],
        actor=actor,
    )

    if SHARDS.of_reports(actor):

        stage(
            ARTIFACTS.list_claims,
            [ARTIFACTS.of_actor("claims", ANY, *shard[:2]) for shard in SHARDS.of_reports(actor)],
            actor=actor,
            local=True,
        )

    if SHARDS.grouped(actor):

        stage(
            ARTIFACTS.group_answers,
            [ARTIFACTS.of_shard("views", ANY, shard) for shard in SHARDS.grouped(actor)],
            actor=actor,
            resources=dict(model_slots=1, gpu=1),
        )
