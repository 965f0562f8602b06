# Tuning: one-off searches for a reader's settings, which run only on request (`snakemake --cores 8 tune`). The outcome
# is a study file, tuned/<method>.yaml: lay it over the study, or copy it into the config.
#
# REQUIRES results/<study>/graded/..., features/... and views/... of one actor
# PROVIDES results/<study>/tuned/<method>/, and tuned/<method>.yaml, .csv


from dualread import plugins

TUNING = config.get("tuning", {})


wildcard_constraints:
    tuned=one_of(TUNING),


def tune_reader(w):
    method, study = METHODS[w.tuned], TUNING[w.tuned]
    backbone = study.get("backbone", next(iter(config["backbones"])))
    actor = SimpleNamespace(backbone=backbone, actor=method["actor"], seed=study["seed"])
    space = plugins.declared("readers", method["reader"], "SPACE")
    data = "phantoms" if "phantom" in DATASETS[SHARDS.in_distribution]["source"] else SHARDS.in_distribution
    spec = {
        **{"study": config["study"], "data": data},
        **{"backbone": actor.backbone, "actor": actor.actor, "seed": actor.seed, "method": w.tuned},
        **{"reader": plugin("readers", method["reader"]), "dataset": SHARDS.in_distribution, "trials": study["trials"]},
        "settings": {name: value for name, value in method.get("settings", {}).items() if name not in space},
        "views": SHARDS.views_of(w.tuned, "fit"),
    }

    def answers_to(split, prefix=""):
        shard = (SHARDS.in_distribution, split, "original")
        return {
            f"{prefix}manifest": artifact("manifests", *shard[:2]),
            **{f"{prefix}{kind}": of_actor(kind, actor, *shard) for kind in ("graded", "features")},
        }

    fitted = SHARDS.fitted_shard(w.tuned)
    views = {f"view/{view}": of_actor("views", actor, *fitted, view) for view in spec["views"]}
    inputs = {**answers_to("train"), **views, **answers_to("validation", "validation/")}
    return inputs, [entry(artifact("tuned", w.tuned), spec)]


stage(tune_reader, artifact("tuned", "{tuned}"))


rule copy_tuned:
    input:
        artifact("tuned", "{tuned}"),
    output:
        yaml="tuned/{tuned}.yaml",
        csv="tuned/{tuned}.csv",
    localrule: True
    params:
        folder=f"{RESULTS}/tuned/{{tuned}}",
    shell:
        "cat {params.folder}/best.yaml > {output.yaml}; cat {params.folder}/trials.csv > {output.csv}"


rule tune:
    input:
        expand("tuned/{tuned}.yaml", tuned=TUNING),
    localrule: True
