# Metrics: the only place where labels meet confidences.
#
# REQUIRES results/<study>/predictions/..., graded/..., manifests, pairs
# PROVIDES results/<study>/metrics/<backbone>/<actor>/<seed>/<method>/, and results/<study>/metrics/metrics.parquet


def compute_metrics(w):
    wanted = PLAN.reported(w.actor)
    spec = {
        **{"study": config["study"], "backbone": w.backbone, "actor": w.actor, "seed": int(w.seed)},
        "datasets": {name: {"splits": sorted({s for d, s, _ in wanted if d == name})} for name, _, _ in wanted},
        **config["metrics"],
    }
    return {**answers(w, ("graded",), wanted), **pairs(wanted)}, [
        entry(
            of_actor("metrics", w, method), {**spec, "method": method}, predictions=of_actor("predictions", w, method)
        )
        for method in PLAN.methods_of(w.actor)
    ]


def collect_metrics(w):
    ood = [name for name in DATASETS if name != PLAN.in_distribution]
    inputs = {
        "/".join(map(str, run)): artifact("metrics", *run)
        for run in (
            (backbone, actor, seed, method)
            for backbone in config["backbones"]
            for actor in PLAN.answering
            for seed in PLAN.seeds(actor)
            for method in PLAN.methods_of(actor)
        )
    }
    spec = {"ood": ood, "ood_ccg": [name for name in ood if "pairing" in DATASETS[name]]}
    return inputs, [entry(artifact("metrics"), spec)]


for actor in PLAN.answering:

    rule:
        name:
            f"compute_metrics_{actor}"
        input:
            inputs_of(compute_metrics),
        output:
            [artifact("metrics", "{backbone}", "{actor}", "{seed}", method) for method in PLAN.methods_of(actor)],
        log:
            log_file("compute_metrics", "{backbone}", "{actor}", "{seed}"),
        wildcard_constraints:
            actor=actor,
        params:
            **params_of("compute_metrics", compute_metrics),
        shell:
            run("compute_metrics")


rule collect_metrics:
    input:
        inputs_of(collect_metrics),
    output:
        artifact("metrics"),
    log:
        log_file("collect_metrics"),
    params:
        **params_of("collect_metrics", collect_metrics),
    shell:
        run("collect_metrics")
