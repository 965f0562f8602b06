"""A finished study as one HTML page that opens from disk.

`findings` says in sentences what the study's tests show. `results` reads tables and figures, `audits` the data, the
leakage and the comparison with the paper, `provenance` keys, versions and machines, `stage_costs` times; `page` makes
one page of them. The page is a view: it shows seconds and hosts, so it is not an
artifact of the store.
"""
