"""The content-addressed store: a result with the same code, spec and inputs is computed only once.

The road from an edit to a result: `source` digests what one module can change, `code` all modules that a stage runs,
and the versions of their packages (`packages`). A rule plans its jobs with these digests. `run` is the program of a
job (`job` reads what it has to make); its `runner` puts the `key` of each entry together, and `store` finds the
entry, or publishes what the stage computes, with a `manifest`. `link` shows it below results/, if the last run makes it
there (`planned`).

The rest can be skipped. `digest` hashes files and folders, `files` reads and replaces small files that several
processes share, `record` notes how an entry was computed, `partial`
keeps checkpoints for a job that is killed, `source_cache` keeps parsed modules for the next process, `disk` explains
errors, `shared` lets several users write, and `processes` names processes. `forked` runs a job in a child of
`forkserver`, whose processes have imported the packages of a run; `layers` starts them. `repair` checks what is below
results/ before a run. `lineage` traces an artifact to its raw inputs, `differences` says in what two artifacts differ,
`reach` lists all entries that one depends on, `place` finds the store of a study, `roots` registers the results folders
that use the store, `gc` finds the entries that none of them needs, `copy` copies entries between stores, and `lock`
records which artifacts a study has.
"""
