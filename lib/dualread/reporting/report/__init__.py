"""A finished study as one HTML page that opens from disk.

`findings` has a verdict on each tested difference. `results` reads tables and figures; `audits` reads the data, the
leakage check, the comparison with the paper, and what is known of phantoms beforehand, so that one sees whether the
tests find it; `provenance` reads keys, checkpoints, machines, versions and times. `page` puts all of it on one page.
The page shows seconds and hosts, so it is not an artifact of the store.
"""
