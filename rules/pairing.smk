# Donors: the same question, another image, another gold answer; frozen before any confidence exists.
#
# REQUIRES results/<study>/manifests/<dataset>/<split>/
# PROVIDES results/<study>/pairs/<dataset>/<split>/ and results/<study>/data/


def pair_donors(w):
    spec = {"match_on": DATASETS[w.dataset]["pairing"]["match_on"]}
    return {}, [entry(artifact("pairs", w.dataset, w.split), spec, manifest=artifact("manifests", w.dataset, w.split))]


def summarize_data(w):
    return {**manifests(EVERYTHING), **pairs(EVERYTHING)}, [entry(artifact("data"), {})]


rule pair_donors:
    input:
        inputs_of(pair_donors),
    output:
        artifact("pairs", "{dataset}", "{split}"),
    log:
        log_file("pair_donors", "{dataset}", "{split}"),
    localrule: True
    params:
        **params_of("pair_donors", pair_donors),
    shell:
        run("pair_donors")


# What is asked of which data, for people and for the table of the data.
rule summarize_data:
    input:
        inputs_of(summarize_data),
    output:
        artifact("data"),
    log:
        log_file("summarize_data"),
    localrule: True
    params:
        **params_of("summarize_data", summarize_data),
    shell:
        run("summarize_data")
