"""Tables that other programs wrote, read by one contract: `docs/evaluate.md` documents it.

Everybody who reads a table of a user reads it here: `evaluate`, `judge`, `score`, `new`, and the loader `table`.
`content` opens a file within limits, `files` and `parquet` make rows and columns of it, `memory` does so with data
frames, `hub` with data sets of the Hugging Face hub. `contract` declares the columns of answers and of donor pairs, and
`checks` compares a table with it. No value is guessed: what is not as documented is refused in one sentence with
column, row and value.
"""
