# Metrics: the only place where labels meet confidences; and what each confidence cost.
#
# REQUIRES results/<study>/predictions/..., graded/..., manifests, pairs, generations, views, readers
# PROVIDES results/<study>/metrics/<backbone>/<actor>/<seed>/<method>/, costs/<same>/, metrics/metrics.parquet,
#          metrics_of/<actor>/metrics.parquet, contrasts/contrasts.parquet, and contrasts_of/<actor>/contrasts.parquet


from dualread.schema.metrics import CollectMetricsSpec, CompareMethodsSpec, ComputeMetricsSpec, MeasureCostsSpec


def compute_metrics(w):
    wanted = SHARDS.reported(w.actor)

    def spec(method):
        return ComputeMetricsSpec(
            **run_of(w),
            method=method,
            study=STUDY.study,
            splits={name: tuple(sorted({s for d, s, _ in wanted if d == name})) for name, _, _ in wanted},
            metrics=STUDY.metrics,
            thresholds_from=f"{SHARDS.in_distribution}/validation",
        )

    return {**ARTIFACTS.answers(w, ("graded",), wanted), **ARTIFACTS.pairs(wanted)}, [
        entry(of_actor("metrics", w, method), spec(method), predictions=of_actor("predictions", w, method))
        for method in SHARDS.methods_of(w.actor)
    ]


def measure_costs(w):
    """Counted on the in-distribution test answers."""
    shard = (SHARDS.in_distribution, "test", "original")
    return {"generations": of_actor("generations", w, *shard)}, [
        entry(
            of_actor("costs", w, method),
            MeasureCostsSpec(
                **run_of(w),
                method=method,
                dataset=shard[0],
                split=shard[1],
                samples=SHARDS.samples_of(method),
                draws=SHARDS.draws_of(method),
                passes=SHARDS.passes_of(method),
                states="generation" if SHARDS.keeps_states(method) else None,
            ),
            reader=of_actor("readers", w, method),
            **{f"view/{view}": of_actor("views", w, *shard, view) for view in SHARDS.scoring_views(method)},
        )
        for method in SHARDS.methods_of(w.actor)
    ]


def of_all_runs(kind, called=None, actors=SHARDS.answering):
    return {
        f"{called or kind}/{backbone}/{actor}/{seed}/{method}": artifact(kind, backbone, actor, seed, method)
        for backbone in STUDY.backbones
        for actor in actors
        for seed in SHARDS.seeds(backbone, actor)
        for method in SHARDS.methods_of(actor)
    }


def ood_means():
    """The members of the means over OOD data sets: of answers, and of donor pairs."""
    ood = tuple(name for name in STUDY.datasets if name != SHARDS.in_distribution)
    return {"ood": ood, "ood_ccg": tuple(name for name in ood if STUDY.datasets[name].pairing)}


def collect_metrics(w):
    """Of all actors, or of one alone: tables about one actor do not wait for the others."""
    actors = [w.actor] if w.get("actor") else SHARDS.answering
    output = artifact("metrics_of", w.actor) if w.get("actor") else artifact("metrics")
    # Nobody here has made given answers, so that nothing says what they cost.
    measured = [actor for actor in actors if actor not in SHARDS.given]
    inputs = {**of_all_runs("metrics", actors=actors), **of_all_runs("costs", actors=measured)}
    return inputs, [entry(output, CollectMetricsSpec(**ood_means()))]


def compare_methods(w):
    """Of all actors, as tables ask; or of one alone, with its nulls, for a figure."""
    if actor := w.get("actor"):
        source, output, actors = artifact("metrics_of", actor), artifact("contrasts_of", actor), [actor]
        nulls = SHARDS.nulls_of(actor)
        contrasts = TABLES.against(nulls, [method for method in SHARDS.methods_of(actor) if method not in nulls])
    else:
        source, output, actors = artifact("metrics"), artifact("contrasts"), SHARDS.answering
        contrasts = TABLES.contrasts()
    inputs = {"metrics": source, **of_all_runs("metrics", called="replicates", actors=actors)}
    spec = CompareMethodsSpec(study=STUDY.study, **ood_means(), contrasts=tuple(contrasts))
    return inputs, [entry(output, spec)]


for actor in SHARDS.answering:

    stage(
        compute_metrics,
        [artifact("metrics", "{backbone}", "{actor}", "{seed}", method) for method in SHARDS.methods_of(actor)],
        actor=actor,
    )

    if actor not in SHARDS.given:

        stage(
            measure_costs,
            [artifact("costs", "{backbone}", "{actor}", "{seed}", method) for method in SHARDS.methods_of(actor)],
            actor=actor,
            local=True,
        )

    stage(collect_metrics, artifact("metrics_of", "{actor}"), actor=actor, local=True)

    stage(compare_methods, artifact("contrasts_of", "{actor}"), actor=actor)


stage(collect_metrics, artifact("metrics"), local=True)


stage(compare_methods, artifact("contrasts"))
