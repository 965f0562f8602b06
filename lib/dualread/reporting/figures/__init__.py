"""One file a figure: `draw` makes it out of tables, and lists every drawn value."""
