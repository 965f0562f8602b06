# The report: one HTML page of the study that opens from disk. It is not an artifact of the store, because it shows
# seconds and hosts.
#
# REQUIRES results/<study>/tables/, figures/, data/, leakage/, difficulty/ where it is known, and paper_comparison.csv
#          where the study has one
# PROVIDES results/<study>/report.html

import shlex
import sys

REPORT_CODE = sorted((REPOSITORY / "lib/dualread/reporting/report").glob("[!.]*.*"))


rule report:
    input:
        [artifact("tables", table) for table in STUDY.tables],
        artifact("tables", "preview"),
        [artifact("figures", figure) for figure in STUDY.figures],
        artifact("data"),
        artifact("leakage"),
        RECORDS,
        DIFFICULTY,
        code=REPORT_CODE,
    output:
        report(
            f"{RESULTS}/report.html",
            caption="../workflow/report/page.rst",
            category="All on one page",
            labels={"page": STUDY.study},
        ),
    localrule: True
    params:
        study=RESULTS,
        store=STUDY.store,
    shell:
        f"{RUN.exports}{shlex.quote(sys.executable)} -m dualread report {{params.study}} --store {{params.store:q}} --out {{output}}"
