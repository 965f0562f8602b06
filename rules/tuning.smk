# Tuning: one-off searches for a reader's settings, which run only on request (`snakemake --cores 8 tune`). The outcome
# is a study file, tuned/<method>.yaml: lay it over the study, or copy it into the config.
#
# REQUIRES results/<study>/graded/..., features/... and views/... of one actor
# PROVIDES results/<study>/tuned/<method>/, and tuned/<method>.yaml, .csv


from dualread import plugins
from dualread.declared.readers import TuneReaderSpec


wildcard_constraints:
    tuned=one_of(STUDY.tuning),


def tune_reader(w):
    method, tuning = STUDY.methods[w.tuned], STUDY.tuning[w.tuned]
    backbone = tuning.backbone or next(iter(STUDY.backbones))
    actor = SimpleNamespace(backbone=backbone, actor=method.actor, seed=tuning.seed)
    space = plugins.declared("readers", method.reader, "SPACE")
    is_drawn = STUDY.datasets[SHARDS.in_distribution].source.phantom is not None
    spec = TuneReaderSpec(
        **reader_of(actor, w.tuned, "fit"),
        study=STUDY.study,
        data="phantoms" if is_drawn else SHARDS.in_distribution,
        dataset=SHARDS.in_distribution,
        trials=tuning.trials,
        settings={name: value for name, value in method.settings.items() if name not in space},
    )

    def answers_to(split, prefix=""):
        shard = (SHARDS.in_distribution, split, "original")
        return {
            f"{prefix}manifest": artifact("manifests", *shard[:2]),
            **{f"{prefix}{kind}": of_actor(kind, actor, *shard) for kind in ("graded", "features")},
        }

    fitted = SHARDS.fitted_shard(w.tuned)
    views = {f"view/{view}": of_actor("views", actor, *fitted, view) for view in spec.views}
    inputs = {**answers_to("train"), **views, **answers_to("validation", "validation/")}
    return inputs, [entry(artifact("tuned", w.tuned), spec)]


stage(tune_reader, artifact("tuned", "{tuned}"))


of_tuning = f"{RESULTS}/tuned/{{tuned}}"


rule copy_tuned:
    input:
        artifact("tuned", "{tuned}"),
    output:
        RUN.copies(
            "copy_tuned",
            {"tuned/{tuned}.yaml": f"{of_tuning}/best.yaml", "tuned/{tuned}.csv": f"{of_tuning}/trials.csv"},
        ),
    localrule: True
    params:
        folder=of_tuning,
    shell:
        "cat {params.folder}/best.yaml > {output[0]}; cat {params.folder}/trials.csv > {output[1]}"


rule tune:
    input:
        expand("tuned/{tuned}.yaml", tuned=STUDY.tuning),
    localrule: True
