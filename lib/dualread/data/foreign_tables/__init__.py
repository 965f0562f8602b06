"""Tables that other programs wrote: .csv, .tsv, .json, .jsonl, .ndjson and .parquet, each also as .gz.

Everybody who reads a table of a user reads it here: `evaluate`, `score`, `new`, and the loader `table`. `read` has the
functions for callers, and `values` says what a cell means. `content` opens a file and says what its bytes are,
`delimited` reads .csv and .tsv, `objects` reads JSON. The number of rows read is certain, or the file is refused.
"""
