# Figures: a PDF for print, a PNG for a page, and a CSV with every drawn value.
#
# REQUIRES results/<study>/actors/<backbone>/<actor>/<seed>/
# PROVIDES results/<study>/figures/<figure>/, and figures/: a copy of the study that was asked for last


wildcard_constraints:
    figure=one_of(config.get("figures", {})),


def draw_figure(w):
    """`layout` holds what is printed besides numbers; the inputs are the train logs of the actors it lists."""
    actors = config["figures"][w.figure]["actors"]
    layout = {
        "study": config["study"],
        "backbones": [{"name": name, "label": backbone["label"]} for name, backbone in config["backbones"].items()],
        "actors": [{"name": name, "label": ACTORS[name]["label"]} for name in actors],
    }
    logs = {
        f"train_log/{backbone}/{actor}/{seed}": artifact("actors", backbone, actor, seed)
        for backbone in config["backbones"]
        for actor in actors
        for seed in PLAN.seeds(backbone, actor)
    }
    spec = {"figure": plugin("figures", w.figure), "layout": layout}
    return logs, [entry(artifact("figures", w.figure), spec)]


rule draw_figure:
    input:
        inputs_of(draw_figure),
    output:
        artifact("figures", "{figure}"),
    log:
        log_file("draw_figure", "{figure}"),
    params:
        **params_of("draw_figure", draw_figure),
    shell:
        run("draw_figure")


# The files' metadata and the CSV name the study.
rule copy_figure:
    input:
        artifact("figures", "{figure}"),
    output:
        pdf="figures/{figure}.pdf",
        png="figures/{figure}.png",
        csv="figures/{figure}.csv",
    params:
        folder=f"{RESULTS}/figures/{{figure}}/{{figure}}",
    shell:
        "cat {params.folder}.pdf > {output.pdf}; "
        "cat {params.folder}.png > {output.png}; "
        "cat {params.folder}.csv > {output.csv}"
