# Manifests: one row a question, frozen before any model runs.
#
# REQUIRES nothing, a raw folder, or the hub
# PROVIDES results/<study>/manifests/<dataset>/<split>/ and results/<study>/leakage/


rule draw_phantom:
    output:
        artifact("phantoms", "{phantom}"),
    log:
        log_file("draw_phantom", "{phantom}"),
    params:
        **params_of("draw_phantom", draw_phantom),
    shell:
        run("draw_phantom")


rule download_dataset:
    output:
        artifact("downloads", "{dataset}"),
    log:
        log_file("download_dataset", "{dataset}"),
    params:
        **params_of("download_dataset", download_dataset),
    shell:
        run("download_dataset")


rule build_manifest:
    input:
        inputs_of(build_manifest),
    output:
        artifact("manifests", "{dataset}", "{split}"),
    log:
        log_file("build_manifest", "{dataset}", "{split}"),
    params:
        **params_of("build_manifest", build_manifest),
    shell:
        run("build_manifest")


# Fails, and names the images, if one that is fitted on has a second role.
rule check_leakage:
    input:
        inputs_of(check_leakage),
    output:
        artifact("leakage"),
    log:
        log_file("check_leakage"),
    params:
        **params_of("check_leakage", check_leakage),
    shell:
        run("check_leakage")
