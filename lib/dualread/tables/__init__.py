"""Tables of the paper: each module with `build(metrics, layout) -> Table` is one; the others are shared by them."""
