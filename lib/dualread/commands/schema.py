"""`dualread schema`: the columns of every parquet file that stages exchange."""

import argparse

from dualread.errors import ConfigError, did_you_mean

HELP = "explain the columns of a file"
DESCRIPTION = """
Print the columns of the parquet files that stages exchange: name, dtype, whether null is allowed, and meaning.
Without TABLE, print those of all files.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("table", metavar="TABLE", nargs="?", help="manifest, pairs, generations, graded, ...")


def run(options: argparse.Namespace) -> int:
    """Print the columns of one table, or of all; return the exit code."""
    from dualread.artifacts.schemas import all_schemas  # here, because --help does not need polars

    schemas = all_schemas()
    if options.table is not None and options.table not in schemas:
        meant = did_you_mean(options.table, schemas)
        raise ConfigError(f"{options.table}: no such table. Known: {', '.join(schemas)}.{meant}")
    for table in [options.table] if options.table else schemas:
        print(f"{table}.parquet")
        width = max(map(len, schemas[table].columns))
        for name, column in schemas[table].columns.items():
            dtype = f"{column.dtype}{' or null' if column.nullable else ''}"
            print(f"  {name:<{width}}  {dtype:<16}  {column.meaning}")
    return 0
