"""Tables that other programs wrote: .csv, .tsv, .json, .jsonl, .ndjson and .parquet, each also as .gz.

`read` has the two functions for callers. `content` opens a file and says what its bytes are, `delimited` reads .csv and
.tsv, `objects` reads JSON. The number of rows read is certain, or the file is refused.
"""
