# Difficulty: of phantoms it is known how hard each image is; do confidences follow it?
#
# REQUIRES results/<study>/phantoms/<phantom>/, manifests, graded/... and predictions/... of one actor
# PROVIDES results/<study>/difficulty/<actor>/


from dualread.schema.metrics import MeasureDifficultySpec


def measure_difficulty(w):
    """Of the in-distribution test images; for an actor whose answers the nulls judge, too."""
    shard = (SHARDS.in_distribution, "test", "original")
    methods = SHARDS.methods_of(w.actor)
    seeds = {backbone: tuple(SHARDS.seeds(backbone, w.actor)) for backbone in STUDY.backbones}
    runs = [(backbone, str(seed)) for backbone, of_backbone in seeds.items() for seed in of_backbone]
    inputs = {
        "truth": artifact("phantoms", STUDY.datasets[shard[0]].source.phantom),
        "manifest": artifact("manifests", *shard[:2]),
        **{"/".join(("graded", b, w.actor, s, *shard)): artifact("graded", b, w.actor, s, *shard) for b, s in runs},
        **{
            f"predictions/{b}/{w.actor}/{s}/{m}": artifact("predictions", b, w.actor, s, m)
            for b, s in runs
            for m in methods
        },
    }
    spec = MeasureDifficultySpec(
        study=STUDY.study,
        dataset=shard[0],
        split=shard[1],
        actor=w.actor,
        seeds=seeds,
        methods=tuple(methods),
        nulls=tuple(SHARDS.nulls_of(w.actor)),
        replicates=STUDY.metrics.bootstrap.replicates,
    )
    return inputs, [entry(artifact("difficulty", w.actor), spec)]


# What is known about the difficulty of the images, for each actor that is judged.
DIFFICULTY = [artifact("difficulty", actor) for actor in SHARDS.with_known_difficulty()]


stage(
    measure_difficulty,
    artifact("difficulty", "{actor}"),
    only=dict(actor=one_of(SHARDS.with_known_difficulty())),
    local=True,
)
