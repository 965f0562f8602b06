"""The content-addressed store: a result with the same code, spec and inputs is computed only once.

The road from an edit to a result: `source` digests what one module can change (`effects`: also by being imported),
`code` all that a stage runs, with the versions of packages. A rule plans its jobs with these digests. `run` is the
program of a job (`job` reads what it has to make); its `runner` puts the `key` of each entry together, and `store`
finds the entry, or publishes what the stage computes, with a `manifest`. `results` shows it below results/. The first
lines of the other files say what they are for.
"""
