"""The tables: each module with a function `build(values, layout) -> Table` is one table; the other modules are shared.

`values` are the collected metrics, summarized over seeds, by `values.Key`. A module with a literal `READS` gets the
rows of that artifact instead. `layout` is a `Layout`; a module with a literal `CONFIG`, which names the sections of the
config that it prints, gets these sections instead.
"""
