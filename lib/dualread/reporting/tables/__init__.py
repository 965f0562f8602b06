"""The tables: a module is a table if it defines `build`, which gets values and a layout and returns a `PrintedTable`.

Most tables are declarations: `build = Sheet(...)` says what the rows run over, what the columns show, and the words
(`_sheet.py`). Their values are the collected metrics, summarized over seeds (`values.py`); with `READS = "contrasts"`,
the methods' intervals and their differences. A table with `READS = "data"` gets the rows of that artifact, and one with
a literal `CONFIG`, which names the sections of the config that it prints, gets these sections in place of a layout.
What it shows of plugins comes by `CONSTANTS`, {family: names of constants}, and never through `plugins` itself.
"""
