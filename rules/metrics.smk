# Metrics: the only place where labels meet confidences; and what each confidence cost.
#
# REQUIRES results/<study>/predictions/..., graded/..., manifests, pairs, generations, views, readers
# PROVIDES results/<study>/metrics/<backbone>/<actor>/<seed>/<method>/, costs/<same>/, subgroups/<same>/ where the study names
#          columns of groups, metrics/metrics.parquet,
#          metrics_of/<actor>/metrics.parquet, contrasts/contrasts.parquet, and contrasts_of/<actor>/contrasts.parquet


for actor in SHARDS.answering:

    stage(
        ARTIFACTS.compute_metrics,
        [ARTIFACTS.of_actor("metrics", ANY, method) for method in SHARDS.methods_of(actor)],
        actor=actor,
    )

    if actor not in SHARDS.given:

        stage(
            ARTIFACTS.measure_costs,
            [ARTIFACTS.of_actor("costs", ANY, method) for method in SHARDS.methods_of(actor)],
            actor=actor,
            local=True,
        )

    if STUDY.subgroups:

        stage(
            ARTIFACTS.measure_subgroups,
            [ARTIFACTS.of_actor("subgroups", ANY, method) for method in SHARDS.methods_of(actor)],
            actor=actor,
        )

    stage(ARTIFACTS.collect_metrics, ARTIFACTS.at("metrics_of", "{actor}"), actor=actor, local=True)

    stage(ARTIFACTS.compare_methods, ARTIFACTS.at("contrasts_of", "{actor}"), actor=actor)


stage(ARTIFACTS.collect_metrics, ARTIFACTS.at("metrics"), local=True)


stage(ARTIFACTS.compare_methods, ARTIFACTS.at("contrasts"))
