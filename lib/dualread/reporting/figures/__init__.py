"""The figures: each module with a function `draw(tables, layout) -> Drawing` is one; it lists every drawn value too."""
