"""Stage build_table: one table as LaTeX and as HTML, and a CSV with the full precision behind every printed cell.

inputs:  as the table's READS says, metrics of collect_metrics, data of summarize_data, contrasts of compare_methods, or
         subgroups/<backbone>/<actor>/<seed>/<method>; and manifest/<dataset>/test, which says what is resampled
output:  <name>.tex, <name>.csv, and <name>.html with one <table> per float and an empty line between two
"""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import polars as pl

from dualread.artifacts.tables import for_spreadsheets, read_table
from dualread.plugins import load_module
from dualread.reporting.tables.cells import PrintedTable, of_contrasts
from dualread.reporting.tables.entries import UNDEFINED
from dualread.reporting.tables.values import summarize
from dualread.schema.columns import CONTRASTS, DATA, METRICS, SUBGROUPS
from dualread.schema.tables import BuildTableSpec, Layout, StudySettings
from dualread.stages._joined import with_units

_SCHEMAS = {"metrics": METRICS, "data": DATA, "contrasts": CONTRASTS, "subgroups": SUBGROUPS}


def compute(spec: BuildTableSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the rows, write the table, and return one line about it."""
    module = spec.table.module
    name = module.rpartition(".")[2]
    named = {name: kind for name in sorted(inputs) if (kind := name.partition("/")[0]) in _SCHEMAS}
    (kind,) = set(named.values())
    rows = pl.concat(read_table(inputs[name] / f"{kind}.parquet", _SCHEMAS[kind]) for name in named)
    if spec.layout is not None:
        shown = with_units(spec.layout, inputs, {dataset.name: dataset.label for dataset in spec.layout.datasets})
    else:
        assert spec.settings is not None, "a table has a layout or settings"
        datasets = spec.settings.config.get("datasets", {})
        shown = with_units(spec.settings, inputs, {name: dataset["label"] for name, dataset in datasets.items()})
    table = build(load_module(module), rows, shown)
    (out / f"{name}.tex").write_text(table.tex, encoding="utf-8")
    (out / f"{name}.html").write_text(table.html, encoding="utf-8")
    for_spreadsheets(table.cells).write_csv(out / f"{name}.csv")
    undefined = (table.cells["printed"] == UNDEFINED).sum()
    return f"read {len(rows)} rows of {kind}, wrote {name}.tex with {len(table.cells)} cells ({undefined} undefined)"


def build(table: ModuleType, rows: pl.DataFrame, shown: Layout | StudySettings) -> PrintedTable:
    """Return the table of `rows`: metrics are first summarized over seeds, contrasts found by key."""
    reads = getattr(table, "READS", "metrics")
    if isinstance(shown, StudySettings) or reads in ("data", "subgroups"):
        return table.build(rows, shown)
    return table.build(of_contrasts(rows) if reads == "contrasts" else summarize(rows, seeds=shown.seeds), shown)
