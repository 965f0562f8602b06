# Grades: what was answered, and whether it is correct.
#
# REQUIRES results/<study>/generations/..., manifests, pairs
# PROVIDES results/<study>/graded/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>/


for actor in SHARDS.answering:

    stage(
        ARTIFACTS.grade,
        [ARTIFACTS.of_actor("graded", ANY, *shard) for shard in SHARDS.shards(actor)],
        actor=actor,
    )
