# Records: the two tables that the reported numbers rest on, all answers, and our numbers beside the paper's.
#
# REQUIRES results/<study>/metrics/, predictions/..., graded/..., manifests, pairs, and results/<study>/tables/<table>/ of
#          the tables that the paper has too
# PROVIDES results/<study>/records/, results/<study>/answers/<backbone>/<actor>/<seed>/, and
#          results/<study>/paper_comparison.csv and .md where the study has a backbone of the paper


from dualread.reporting.comparison import compared

from dualread.schema.metrics import CompareWithPaperSpec, ExportRecordsSpec

# The tables that the paper has, too; none for a study without a backbone of the paper.
COMPARED = compared(STUDY.backbones, STUDY.tables)
RUNS = [(b, a, seed) for b in STUDY.backbones for a in SHARDS.answering for seed in SHARDS.seeds(b, a)]
ANSWERS = [artifact("answers", *run) for run in RUNS]
RECORDS = [artifact("records"), *ANSWERS, *(f"{RESULTS}/paper_comparison.{kind}" for kind in ("csv", "md") if COMPARED)]


def export_records(w):
    with_donors = tuple(name for name, dataset in STUDY.datasets.items() if dataset.pairing)
    spec = ExportRecordsSpec(domains=tuple(STUDY.datasets), ccg_domains=with_donors)
    return {"metrics": artifact("metrics")}, [entry(artifact("records"), spec)]


stage(export_records, artifact("records"), local=True)


def export_answers(w):
    """Of all runs together, because each takes a moment."""
    return {}, [entry for run in RUNS for entry in ARTIFACTS.export_answers(Run(*run))[1]]


if ANSWERS:

    stage(export_answers, ANSWERS, local=True)


def compare_with_paper(w):
    spec = CompareWithPaperSpec(
        study=STUDY.study,
        backbones=tuple(STUDY.backbones),
        actors={name: method.actor for name, method in STUDY.methods.items()},
        **ood_means(),
    )
    return {table: artifact("tables", table) for table in COMPARED}, [entry(artifact("paper_comparison"), spec)]


of_comparison = f"{RESULTS}/paper_comparison/paper_comparison"


if COMPARED:

    stage(compare_with_paper, artifact("paper_comparison"), local=True)

    rule copy_comparison:
        input:
            artifact("paper_comparison"),
        output:
            RUN.copies(
                "copy_comparison",
                {f"{RESULTS}/paper_comparison.{kind}": f"{of_comparison}.{kind}" for kind in ("csv", "md")},
            ),
        localrule: True
        params:
            folder=of_comparison,
        shell:
            "cat {params.folder}.csv > {output[0]}; cat {params.folder}.md > {output[1]}"
