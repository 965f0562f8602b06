# Figures: a PDF for print, a PNG for a page, and a CSV with every drawn value.
#
# REQUIRES results/<study>/actors/<backbone>/<actor>/<seed>/, or predictions/..., graded/... and manifests, or
#          contrasts_of/<actor>/ and, where it is known, difficulty/<actor>/
# PROVIDES results/<study>/figures/<figure>/, and figures/: a copy of the study that was asked for last


from dualread import plugins
from dualread.schema.tables import DrawFigureSpec, FigureLayout
from dualread.schema.tables import Labeled


wildcard_constraints:
    figure=one_of(STUDY.figures),


def draw_figure(w):
    """`layout` holds what is printed besides numbers; the inputs are what the figure READS of its runs."""
    figure, reads = STUDY.figures[w.figure], plugins.declared("figures", w.figure, "READS")
    shown = {
        "backbones": list(STUDY.backbones),
        "actors": [*(figure.actors or ())],
        "methods": [*(figure.methods or ())],
        "datasets": (figure.datasets or [SHARDS.in_distribution]) if figure.methods else [],
    }
    if reads == "contrasts":  # beside the nulls of their actor
        actor = STUDY.methods[shown["methods"][0]].actor
        shown["methods"] += [null for null in SHARDS.nulls_of(actor) if null not in shown["methods"]]
    labeled = {
        key: tuple(Labeled(name=name, label=getattr(STUDY, key)[name].label) for name in names)
        for key, names in shown.items()
    }
    of_metrics = (
        dict(conditions=SHARDS.strengths(), layers=SHARDS.depths(shown["methods"])) if reads == "metrics" else {}
    )
    layout = FigureLayout(study=STUDY.study, **labeled, **of_metrics)
    spec = DrawFigureSpec(figure=plugin("figures", w.figure), layout=layout)
    if reads == "metrics":
        inputs = {"metrics": artifact("metrics")}
    elif reads == "train_log":
        inputs = logs_of(shown)
    else:
        inputs = contrasts_of(actor) if reads == "contrasts" else confidences_of(shown, reads)
    return inputs, [entry(artifact("figures", w.figure), spec)]


def logs_of(shown):
    return {
        f"train_log/{backbone}/{actor}/{seed}": artifact("actors", backbone, actor, seed)
        for backbone in shown["backbones"]
        for actor in shown["actors"]
        for seed in SHARDS.seeds(backbone, actor)
    }


def contrasts_of(actor):
    known = {"difficulty": artifact("difficulty", actor)} if actor in SHARDS.with_known_difficulty() else {}
    return {"contrasts": artifact("contrasts_of", actor), **known}


def confidences_of(shown, reads):
    """The methods' confidences in the test answers, and the grades of these answers; of one seed only for pairs."""
    conditions, n_seeds = (["original", "donor"], 1) if reads == "pairs" else (["original"], None)
    shards = [(dataset, "test", condition) for dataset in shown["datasets"] for condition in conditions]
    inputs = {**ARTIFACTS.manifests(shards), **(ARTIFACTS.pairs(shards) if reads == "pairs" else {})}
    for backbone in shown["backbones"]:
        for method in shown["methods"]:
            actor = STUDY.methods[method].actor
            for seed in SHARDS.seeds(backbone, actor)[:n_seeds]:
                run = (backbone, actor, str(seed))
                for path in [("predictions", *run, method), *(("graded", *run, *shard) for shard in shards)]:
                    inputs["/".join(path)] = artifact(*path)
    return inputs


stage(draw_figure, artifact("figures", "{figure}"), local=True)


of_figure = f"{RESULTS}/figures/{{figure}}/{{figure}}"


# The study is named in the files' metadata and in the CSV.
rule copy_figure:
    input:
        artifact("figures", "{figure}"),
    output:
        [
            in_report(file, category="Figures", names=list(STUDY.figures)) if file.endswith(".png") else file
            for file in RUN.copies(
                "copy_figure", {f"figures/{{figure}}.{kind}": f"{of_figure}.{kind}" for kind in ("pdf", "png", "csv")}
            )
        ],
    localrule: True
    params:
        folder=of_figure,
    shell:
        "for kind in pdf png csv; do cat {params.folder}.$kind > figures/{wildcards.figure}.$kind; done"
