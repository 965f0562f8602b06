"""Write tables of images, questions and answers as the hub has them, for the tests of their loaders."""

import polars as pl

SCHEMA = {
    "image": pl.Struct({"bytes": pl.Binary, "path": pl.String}),
    "question": pl.String,
    "answer": pl.String,
}


def write_tables(folder, split, *shards, schema=SCHEMA):
    """Write one table for each list of (image bytes, question, answer), named as on the hub."""
    (folder / "data").mkdir(exist_ok=True)
    for i, rows in enumerate(shards):
        records = [
            {"image": {"bytes": image, "path": None}, "question": question, "answer": answer}
            for image, question, answer in rows
        ]
        name = f"{split}-{i:05d}-of-{len(shards):05d}-e5bc3d208bb4deeb.parquet"
        pl.DataFrame(records, schema=schema).write_parquet(folder / "data" / name)
