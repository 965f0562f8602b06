# Records: what stands behind the reported numbers, and the numbers beside the paper's.
#
# REQUIRES results/<study>/metrics/, and results/<study>/tables/<table>/ of the tables that the paper has too
# PROVIDES results/<study>/records/, and results/<study>/paper_comparison.csv and .md where the study has a backbone of
#          the paper


def export_records(w):
    with_donors = [name for name, dataset in DATASETS.items() if "pairing" in dataset]
    spec = {"domains": list(DATASETS), "ccg_domains": with_donors}
    return {"metrics": artifact("metrics")}, [entry(artifact("records"), spec)]


rule export_records:
    input:
        inputs_of(export_records),
    output:
        artifact("records"),
    log:
        log_file("export_records"),
    params:
        **params_of("export_records", export_records),
    shell:
        run("export_records")
