# Tables: LaTeX, HTML for the report, and a CSV with the full-precision values behind every printed cell.
#
# REQUIRES results/<study>/metrics/, metrics_of/<actor>/ for a table that shows one actor alone, or what else a table READS
# PROVIDES results/<study>/tables/<table>/, and tables/: a copy of the study that was asked for last; and
#          results/<study>/pages/<table>.html for `snakemake --report`


stage(ARTIFACTS.build_table, ARTIFACTS.at("tables", "{table}"), local=True)


stage(ARTIFACTS.preview_tables, ARTIFACTS.at("tables", "preview"), local=True)


def in_report(file, *, category, names):
    """Mark an output for `snakemake --report`, which lists those of a category in the order of the study."""
    kind = category.removesuffix("s").lower()

    def labels(w):
        # One label alone: of two outputs, the page takes the second label for a switch between them, and breaks.
        return {kind: f"{names.index(w[kind]) + 1:02} {w[kind]}"}

    return report(file, caption=f"../workflow/report/{kind}.rst", category=category, labels=labels)


of_table = f"{RESULTS}/tables/{{table}}/{{table}}"


# `snakemake --report` shows a page; a .csv it would only offer for download.
rule copy_table:
    input:
        ARTIFACTS.at("tables", "{table}"),
    output:
        RUN.copies("copy_table", {f"tables/{{table}}.{kind}": f"{of_table}.{kind}" for kind in ("tex", "csv")}),
        page=in_report(f"{RESULTS}/pages/{{table}}.html", category="Tables", names=list(STUDY.tables)),
    localrule: True
    params:
        first_line=RUN.first_line,
        folder=of_table,
        head=lambda wildcards, output: REPOSITORY / "workflow/report/table.html",
    shell:
        "{{ printf '%s\\n' {params.first_line:q}; cat {params.folder}.tex; }} > {output[0]}; "
        "cat {params.folder}.csv > {output[1]}; cat {params.head:q} {params.folder}.html > {output.page}; "
        "echo '{output[0]} is ready' >&2"


of_preview = f"{RESULTS}/tables/preview/preview"


# preview.pdf exists only where LaTeX is installed. preview.txt says whether it does, and which tables exceed a page.
rule copy_preview:
    input:
        ARTIFACTS.at("tables", "preview"),
    output:
        RUN.copies("copy_preview", *({f"tables/preview.{kind}": f"{of_preview}.{kind}"} for kind in ("txt", "pdf"))),
    localrule: True
    params:
        folder=f"{RESULTS}/tables/preview",
    shell:
        "rm -f tables/preview.pdf; "
        "if [ -e {params.folder}/preview.pdf ]; then cat {params.folder}/preview.pdf > tables/preview.pdf; fi; "
        "cat {params.folder}/preview.txt > {output}"
