# Figures: a PDF for print, a PNG for a page, and a CSV with every drawn value.
#
# REQUIRES results/<study>/actors/<backbone>/<actor>/<seed>/, or predictions/..., graded/... and manifests, or
#          contrasts_of/<actor>/ and, where it is known, difficulty/<actor>/
# PROVIDES results/<study>/figures/<figure>/, and figures/: a copy of the study that was asked for last


wildcard_constraints:
    figure=one_of(STUDY.figures),


stage(ARTIFACTS.draw_figure, ARTIFACTS.at("figures", "{figure}"), local=True)


of_figure = f"{RESULTS}/figures/{{figure}}/{{figure}}"


# The study is named in the files' metadata and in the CSV.
rule copy_figure:
    input:
        ARTIFACTS.at("figures", "{figure}"),
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
