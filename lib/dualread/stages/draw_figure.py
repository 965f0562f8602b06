"""Stage draw_figure: one figure as PDF for print and PNG for a page, and a CSV with every drawn value.

spec:    {"figure": {"module": "figures.<name>"}, "layout": {"study", ...}} (the figure's `draw` says what else)
inputs:  <table>/<more names>: an artifact that holds <table>.parquet, such as train_log/<backbone>/<actor>/<seed>
output:  <name>.pdf, <name>.png, <name>.csv
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.errors import ArtifactError
from dualread.figures._drawing import house_style, save
from dualread.plugins import load


def compute(spec: Mapping, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the tables, draw and write the figure, and return one line about it.

    Raises:
        ConfigError: There is no such figure, or it cannot show what the layout lists.
        ArtifactError: A table is missing or not what the figure expects.
    """
    family, name = spec["figure"]["module"].split(".")
    tables = {key: _read(path / f"{key.partition('/')[0]}.parquet") for key, path in sorted(inputs.items())}
    with house_style():
        drawing = load(family, name).draw(tables, spec["layout"])
        save(drawing, out, name, title=f"{name}, study {spec['layout']['study']}")
    gaps = drawing.values["value"].null_count()
    return f"read {len(tables)} tables, drew {len(drawing.values) - gaps} values and {gaps} gaps"


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ArtifactError(
            f"{path}: cannot be read ({error}). Delete the MANIFEST.json beside it and run the same command again."
        ) from error
