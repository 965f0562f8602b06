# Records: the two tables that the reported numbers rest on, all answers, and our numbers beside the paper's.
#
# REQUIRES results/<study>/metrics/, predictions/..., graded/..., manifests, pairs, and results/<study>/tables/<table>/ of
#          the tables that the paper has too
# PROVIDES results/<study>/records/, results/<study>/answers/<backbone>/<actor>/<seed>/, and
#          results/<study>/paper_comparison.csv and .md where the study has a backbone of the paper


ANSWERS = [ARTIFACTS.of_actor("answers", run) for run in ARTIFACTS.runs()]
COMPARISON = [f"{RESULTS}/paper_comparison.{kind}" for kind in ("csv", "md") if TABLES.in_paper()]
RECORDS = [ARTIFACTS.at("records"), *ANSWERS, *COMPARISON]


stage(ARTIFACTS.export_records, ARTIFACTS.at("records"), local=True)


if ANSWERS:

    stage(ARTIFACTS.export_answers, ANSWERS, local=True)


of_comparison = f"{RESULTS}/paper_comparison/paper_comparison"


if COMPARISON:

    stage(ARTIFACTS.compare_with_paper, ARTIFACTS.at("paper_comparison"), local=True)

    rule copy_comparison:
        input:
            ARTIFACTS.at("paper_comparison"),
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
