"""Tables of the paper: each module with `build(rows, layout) -> Table` is one; the others are shared by them.

`rows` are those of the collected metrics, or of the artifact that the module names in a literal `READS`.
"""
