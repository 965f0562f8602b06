"""The content-addressed store: a result with the same code, spec and inputs is computed only once.

`run` is the program that runs a stage, on the `job` that it gets. `forked` runs it in a child of `forkserver`, whose
processes have imported the packages of a run; `layers` starts them. `digest` hashes files and folders; `code` hashes
the code that a stage runs, with `source` and `source_cache`; `packages` lists the versions of the packages that it
imports. `manifest` describes a finished artifact, and `record` how it was computed. `store` finds and publishes
entries, `link` shows them below results/, `repair` checks what is below results/ before a run, and `partial` keeps
checkpoints for a job that is killed. `lineage` traces an artifact to its raw inputs, `reach` lists all entries that it
depends on, `roots` registers the results folders that use the store, `gc` finds the entries that none of them needs,
`copy` copies entries between stores, and `lock` records which artifacts a study has. `files` reads and replaces small
files that several processes share.
"""
