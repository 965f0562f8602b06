# Tables: LaTeX, HTML for the report, and a CSV with the full-precision values behind every printed cell.
#
# REQUIRES results/<study>/metrics/, or what else a table READS
# PROVIDES results/<study>/tables/<table>/, and tables/: a copy of the study that was asked for last


import shutil
import subprocess

from dualread import plugins
from dualread.store.packages import public_versions


def build_table(w):
    """`layout` holds what is printed besides numbers: entries in order, with their labels."""
    layout = {
        "study": config["study"],
        "backbones": [
            {"name": name, "label": backbone["label"], "seeds": SHARDS.shown_seeds(w.table, name)}
            for name, backbone in config["backbones"].items()
        ],
        "methods": [
            {
                "name": name,
                "readers": readers_of(name),
                **{key: METHODS[name][key] for key in ("label", "group", "actor", "cost") if key in METHODS[name]},
            }
            for name in SHARDS.rows(w.table)
        ],
        "datasets": [
            {"name": name, "label": DATASETS[name]["label"], "id": name == SHARDS.in_distribution}
            for name in SHARDS.shown(w.table)
        ],
    }
    if sections := plugins.declared("tables", w.table, "CONFIG"):  # a table of settings
        software = public_versions(plugins.declared("tables", w.table, "SOFTWARE"))
        chosen = {name: config[name] for name in sections}
        ordered = plugins.declared("tables", w.table, "ORDERED")  # a job's text sorts its keys
        order = {name: list(config[name]) for name in ordered}
        layout = {"study": config["study"], "config": chosen, "order": order, "software": software}
    reads = plugins.declared("tables", w.table, "READS") or "metrics"
    if reads == "contrasts":
        layout["contrasts"] = [w.table] if "method" in config["tables"][w.table] else list(config.get("contrasts", {}))
    spec = {"table": plugin("tables", w.table), "layout": layout}
    return {reads: artifact(reads)}, [entry(artifact("tables", w.table), spec)]


def readers_of(method):
    """The method's reader and, recursively, those that it builds on."""
    above = {reader for parent in SHARDS.parents(method).values() for reader in readers_of(parent)}
    return sorted({METHODS[method]["reader"], *above})


def preview_tables(w):
    inputs = {table: artifact("tables", table) for table in config["tables"]}
    return inputs, [entry(artifact("tables", "preview"), {"latex": latex_version(), "tables": list(inputs)})]


@cache
def latex_version():
    if shutil.which("pdflatex") is None:
        return None
    return subprocess.run(["pdflatex", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


stage(build_table, artifact("tables", "{table}"), local=True)


stage(preview_tables, artifact("tables", "preview"), local=True)


rule copy_table:
    input:
        artifact("tables", "{table}"),
    output:
        tex="tables/{table}.tex",
        csv="tables/{table}.csv",
    localrule: True
    params:
        study=config["study"],
        folder=f"{RESULTS}/tables/{{table}}/{{table}}",
    shell:
        "{{ printf '%% study: %s\\n' {params.study}; cat {params.folder}.tex; }} > {output.tex}; "
        "cat {params.folder}.csv > {output.csv}"


# preview.pdf exists only where LaTeX is installed. preview.txt says whether it does, and which tables exceed a page.
rule copy_preview:
    input:
        artifact("tables", "preview"),
    output:
        "tables/preview.txt",
    localrule: True
    params:
        folder=f"{RESULTS}/tables/preview",
    shell:
        "rm -f tables/preview.pdf; "
        "if [ -e {params.folder}/preview.pdf ]; then cat {params.folder}/preview.pdf > tables/preview.pdf; fi; "
        "cat {params.folder}/preview.txt > {output}"
