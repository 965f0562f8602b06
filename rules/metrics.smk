# Metrics: the only place where labels meet confidences.
#
# REQUIRES results/<study>/predictions/..., graded/..., manifests, pairs
# PROVIDES results/<study>/metrics/<backbone>/<actor>/<seed>/<method>/, and results/<study>/metrics/metrics.parquet

for actor in ANSWERING:

    rule:
        name:
            f"compute_metrics_{actor}"
        input:
            inputs_of(compute_metrics),
        output:
            [artifact("metrics", "{backbone}", "{actor}", "{seed}", method) for method in methods_of(actor)],
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
