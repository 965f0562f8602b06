"""The content-addressed store: a result with the same code, spec and inputs is computed only once.

The road from an edit to a result: `source` digests what one module can change (`effects`: also by being imported),
`code` all that a stage runs, with the versions of packages. A rule plans its jobs with these digests. `run` is the
program of a job (`job` reads what it has to make); its `runner` puts the `key` of each entry together, and `store`
finds the entry, or publishes what the stage computes, with a `manifest`. `results` shows it below results/.

The rest can be skipped. `digest` hashes files and folders, `record` notes how an entry was computed and by which
process, `batches` keeps what a later job can take, `partial` keeps checkpoints for a job that is killed, and `disk`
lets several users write and explains errors.
`forked` has a job run in a child of `forkserver`, whose processes have imported the packages of a run; `layers` starts
them. `graph` walks from an artifact to all that it was made from, `differences` says why results differ, `place` finds
the store of a study, what a command's target names, and which results folders use a store, `gc` finds the entries that
none of them needs, and `copy` copies entries between stores and keeps the tables of a study by their keys.
"""
