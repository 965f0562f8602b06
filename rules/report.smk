# The report: one HTML page of the study that opens from disk. It is not an artifact of the store, because it shows
# seconds and hosts.
#
# REQUIRES results/<study>/tables/, figures/, data/, leakage/, difficulty/ where it is known, and paper_comparison.csv
#          where the study has one
# PROVIDES results/<study>/report.html

import shlex
import sys

from dualread.store.code import SOURCES_NAME, library

# The page is in no store, so its code is in no key. Snakemake looks at the times of these files.
REPORT_CODE = [
    *library(Path(STUDY.store, SOURCES_NAME)).files(["dualread.reporting.report.page"]),
    *sorted((REPOSITORY / "lib/dualread/reporting").glob("*.[cj]*")),  # styles, scripts, templates
    *sorted((REPOSITORY / "lib/dualread/reporting/report").glob("*.[cj]*")),
]


rule report:
    input:
        [ARTIFACTS.at("tables", table) for table in STUDY.tables],
        ARTIFACTS.at("tables", "preview"),
        [ARTIFACTS.at("figures", figure) for figure in STUDY.figures],
        ARTIFACTS.at("data"),
        ARTIFACTS.at("leakage"),
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
