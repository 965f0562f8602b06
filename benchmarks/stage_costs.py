"""The cost of each stage of a finished study: entries, seconds, peak memory, size. It reads the store and runs nothing.

    python benchmarks/stage_costs.py results/embedded

`dualread.reporting.report.provenance` defines the columns; the report of the study has the same table.
"""

import argparse
from pathlib import Path

import polars as pl

from dualread.reporting.report.provenance import stage_costs
from dualread.store.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="folder of a study: results/<study>")
    parser.add_argument("--store", type=Path, default=Path("results/store"))
    options = parser.parse_args()
    table = stage_costs(options.study, Store(options.store))
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(table)
    print(f"total: {table['entries'].sum()} entries, {table['seconds'].sum():.0f} s on one core each")


if __name__ == "__main__":
    main()
