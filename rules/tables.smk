# Tables: LaTeX, and a CSV with the full-precision values behind every printed cell.
#
# REQUIRES results/<study>/metrics/metrics.parquet
# PROVIDES results/<study>/tables/<table>/, and tables/: a copy of the study that was asked for last


rule build_table:
    input:
        inputs_of(build_table),
    output:
        artifact("tables", "{table}"),
    log:
        log_file("build_table", "{table}"),
    params:
        **params_of("build_table", build_table),
    shell:
        run("build_table")


rule preview_tables:
    input:
        inputs_of(preview_tables),
    output:
        artifact("tables", "preview"),
    log:
        log_file("preview_tables"),
    params:
        **params_of("preview_tables", preview_tables),
    shell:
        run("preview_tables")


rule copy_table:
    input:
        artifact("tables", "{table}"),
    output:
        tex="tables/{table}.tex",
        csv="tables/{table}.csv",
    params:
        study=config["study"],
        folder=f"{RESULTS}/tables/{{table}}/{{table}}",
    shell:
        "{{ printf '%% study: %s\\n' {params.study}; cat {params.folder}.tex; }} > {output.tex}; "
        "cat {params.folder}.csv > {output.csv}"


# There is a preview.pdf only where LaTeX is installed; preview.txt says which.
rule copy_preview:
    input:
        artifact("tables", "preview"),
    output:
        "tables/preview.txt",
    params:
        folder=f"{RESULTS}/tables/preview",
    shell:
        "rm -f tables/preview.pdf; "
        "if [ -e {params.folder}/preview.pdf ]; then cat {params.folder}/preview.pdf > tables/preview.pdf; fi; "
        "cat {params.folder}/preview.txt > {output}"
