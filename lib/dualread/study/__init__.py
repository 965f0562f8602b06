"""A study: from its YAML files to the jobs of a run.

`files` merges the YAML files, `sections` declares which keys they may have, `config` checks them with the help of
`references` and `checks` and explains problems with `messages`, and `selection` leaves out what `only` does not name,
and methods that cannot judge given answers. `shards` lists which actor answers what, `asked` says what it is asked, and
`tables` what is shown. The rules make jobs of these: `jobs` is what Snakemake asks about a job, `stale` finds what
would be made from something else now, and `again` says from what; `run` is what happens before and after all jobs,
`display` what the terminal shows of them, and `workflow` is what we need of Snakemake's insides.
"""
