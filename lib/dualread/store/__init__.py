"""The content-addressed store: what was computed once, from the same code, spec and inputs, is never computed again.

`digest` hashes files, `code` hashes the source a stage runs, `packages` names what it imports, `manifest` describes a
finished artifact, `store` finds and publishes entries, `link` puts them where people look, `partial` keeps what must
survive a kill, `lineage` follows an artifact back to its raw inputs, `reach` to all that it rests on, `gc` removes the
rest, `copy` shares entries with another store, `lock` names a study's results, `commands` are these three as verbs.
"""
