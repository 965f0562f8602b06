"""Tables of the paper: each module with `build(values, layout) -> Table` is one; the others are shared by them.

`values` are those of the collected metrics over seeds, by what they are of; or the rows of the artifact that the module
names in a literal `READS`. `layout` is a `Layout`; a module with a literal `CONFIG`, the sections of the config that it
prints, gets these instead.
"""
