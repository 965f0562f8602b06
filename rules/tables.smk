# Tables: LaTeX, HTML for the report, and a CSV with the full-precision values behind every printed cell.
#
# REQUIRES results/<study>/metrics/, metrics_of/<actor>/ for a table that shows one actor alone, or what else a table READS
# PROVIDES results/<study>/tables/<table>/, and tables/: a copy of the study that was asked for last; and
#          results/<study>/pages/<table>.html for `snakemake --report`


import shutil
import subprocess
from functools import cache

from dualread import plugins
from dualread.schema.tables import (
    LabeledBackbone,
    BuildTableSpec,
    LabeledDataset,
    Layout,
    LabeledMethod,
    PreviewTablesSpec,
    StudySettings,
)
from dualread.store.code import public_versions


def build_table(w):
    reads = plugins.declared("tables", w.table, "READS") or "metrics"
    is_of_settings = plugins.declared("tables", w.table, "CONFIG") is not None
    shown = {"settings": settings_of(w.table)} if is_of_settings else {"layout": layout_of(w.table, reads)}
    spec = BuildTableSpec(table=plugin("tables", w.table), **shown)
    alone = TABLES.only_actor(w.table)
    source = artifact("metrics_of", alone) if alone else artifact(reads)
    return {reads: source}, [entry(artifact("tables", w.table), spec)]


def layout_of(table, reads):
    """What is printed besides numbers: entries in order, with their labels."""
    contrasts = [table] if STUDY.tables[table].method else list(STUDY.contrasts)
    return Layout(
        study=STUDY.study,
        backbones=tuple(
            LabeledBackbone(name=name, label=backbone.label, seeds=tuple(TABLES.seeds(table, name)))
            for name, backbone in STUDY.backbones.items()
        ),
        methods=tuple(
            LabeledMethod(
                name=name,
                readers=readers_of(name),
                states="generation" if SHARDS.keeps_states(name) else None,
                **STUDY.methods[name].model_dump(include={"label", "group", "actor", "cost"}),
            )
            for name in TABLES.rows(table)
        ),
        datasets=tuple(
            LabeledDataset(name=name, label=STUDY.datasets[name].label, id=name == SHARDS.in_distribution)
            for name in TABLES.datasets(table)
        ),
        contrasts=tuple(contrasts) if reads == "contrasts" else (),
    )


def settings_of(table):
    software = public_versions(plugins.declared("tables", table, "SOFTWARE"))
    chosen = {name: config[name] for name in plugins.declared("tables", table, "CONFIG")}
    order = {name: tuple(config[name]) for name in plugins.declared("tables", table, "ORDERED")}
    trained_by = sorted({actor.training for actor in STUDY.actors.values() if actor.training is not None})
    trainings = tuple(plugin("training", name) for name in trained_by)
    settings = dict(study=STUDY.study, config=chosen, order=order, software=software, trainings=trainings)
    return StudySettings(**settings, constants=TABLES.constants(table))


def readers_of(method):
    """The method's reader and, recursively, those that it builds on."""
    above = {reader for parent in SHARDS.parents(method).values() for reader in readers_of(parent)}
    return tuple(sorted({STUDY.methods[method].reader, *above}))


def preview_tables(w):
    inputs = {table: artifact("tables", table) for table in STUDY.tables}
    spec = PreviewTablesSpec(latex=latex_version(), tables=tuple(inputs))
    return inputs, [entry(artifact("tables", "preview"), spec)]


@cache
def latex_version():
    if shutil.which("pdflatex") is None:
        return None
    return subprocess.run(["pdflatex", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


stage(build_table, artifact("tables", "{table}"), local=True)


stage(preview_tables, artifact("tables", "preview"), local=True)


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
        artifact("tables", "{table}"),
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
        artifact("tables", "preview"),
    output:
        RUN.copies("copy_preview", *({f"tables/preview.{kind}": f"{of_preview}.{kind}"} for kind in ("txt", "pdf"))),
    localrule: True
    params:
        folder=f"{RESULTS}/tables/preview",
    shell:
        "rm -f tables/preview.pdf; "
        "if [ -e {params.folder}/preview.pdf ]; then cat {params.folder}/preview.pdf > tables/preview.pdf; fi; "
        "cat {params.folder}/preview.txt > {output}"
