"""Stage draw_figure: one figure as PDF for print and PNG for a page, and a CSV with every drawn value.

inputs:  as the figure's READS says:
         train_log  train_log/<backbone>/<actor>/<seed>
         answers    predictions/<backbone>/<actor>/<seed>/<method>; manifest/<dataset>/<split>;
                    graded/<backbone>/<actor>/<seed>/<dataset>/<split>/<condition>; of reports, claims/<same>, too
         pairs      as for answers, and pairs/<dataset>/<split>
         metrics    metrics, the table of all metrics
         subgroups  subgroups/<backbone>/<actor>/<seed>/<method>; manifest/<dataset>/test
         contrasts  contrasts, a compare_methods artifact of one actor; manifest/<dataset>/test, which says what is
                    resampled; and difficulty, where it is known
output:  <name>.pdf, <name>.png, <name>.csv
A method of which a run has no reader is left out, and a line under the figure says why.
"""

import textwrap
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from dualread.artifacts.tables import reason_of
from dualread.errors import ArtifactError
from dualread.plugins import load_module
from dualread.reporting.figures.drawing import Drawing, house_style, save
from dualread.schema.columns import CONTRASTS, DIFFICULTY, MANIFEST, METRICS, PAIRS, SUBGROUPS, TRAIN_LOG
from dualread.schema.tables import DrawFigureSpec
from dualread.stages._joined import read, read_joined, with_units

_OF_NAMES = {"contrasts": CONTRASTS, "difficulty": DIFFICULTY}


def compute(spec: DrawFigureSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the tables, draw and write the figure, and return one line about it."""
    figure = load_module(spec.figure.module)
    name = figure.__name__.rpartition(".")[2]
    left_out = {}
    layout = with_units(spec.layout, inputs, {dataset.name: dataset.label for dataset in spec.layout.datasets})
    if figure.READS == "train_log":
        tables = {name: read(inputs, name, TRAIN_LOG) for name in sorted(inputs)}
    elif figure.READS == "metrics":
        tables = {"metrics": read(inputs, "metrics", METRICS)}
    elif figure.READS == "subgroups":
        of_groups = (read(inputs, name, SUBGROUPS) for name in sorted(inputs) if name.startswith("subgroups/"))
        tables = {"subgroups": pl.concat(of_groups)}
    elif figure.READS == "contrasts":
        tables = {name: read(inputs, name, _OF_NAMES[name]) for name in sorted(inputs.keys() & _OF_NAMES.keys())}
    else:
        left_out = _without_confidences(inputs)
        layout = layout.model_copy(
            update={"methods": tuple(method for method in layout.methods if method.name not in left_out)}
        )
        tables = {figure.READS: pl.concat(_joined(figure.READS, inputs, left_out))} if layout.methods else {}
    with house_style():
        drawing = figure.draw(tables, layout) if tables else Drawing(figure=Figure(), values=pl.DataFrame())
        labels = {method.name: method.label for method in spec.layout.methods}
        notes = [f"{labels.get(method, method)} is not drawn, {reason}" for method, reason in left_out.items()]
        if notes:
            text = textwrap.fill("\n".join(notes), 160)
            drawing.figure.text(0.5, 0.0, text, ha="center", va="bottom", fontsize=4, parse_math=False)
        save(drawing, out, name, title=f"{name}, study {spec.layout.study}")
    return "; ".join([f"read {len(inputs)} tables, drew {len(drawing.values)} rows of values", *notes])


def _without_confidences(inputs: Mapping[str, Path]) -> dict[str, str]:
    """Return the methods of which a run has no reader, and why. They are left out of all runs that a figure pools."""
    reasons = {}
    for name in sorted(inputs):
        if name.startswith("predictions/") and (reason := reason_of(inputs[name] / "predictions.parquet")):
            _, backbone, actor, seed, method = name.split("/")
            reasons.setdefault(method, f"{backbone}/{actor}/{seed}: {reason}")
    return reasons


def _joined(kind: str, inputs: Mapping[str, Path], left_out: Collection[str]) -> Iterator[pl.DataFrame]:
    """Yield the rows of every (run, method, data set): answers on the source images, or donor pairs."""
    manifests = {
        (dataset, split): read(inputs, f"{key}/{dataset}/{split}", MANIFEST)
        for key, dataset, split in (name.split("/") for name in inputs if name.startswith("manifest/"))
    }
    conditions = ["original"] if kind == "answers" else ["original", "donor"]
    for name in sorted(inputs):
        if not name.startswith("predictions/"):
            continue
        _, backbone, actor, seed, method = name.split("/")
        if method in left_out:
            continue
        for (dataset, split), manifest in manifests.items():
            run = f"{backbone}/{actor}/{seed}/"
            if (claims := f"claims/{run}{dataset}/{split}") in inputs:  # which differ between runs
                manifest = read(inputs, claims, MANIFEST)
            joined = read_joined(dataset, split, manifest, inputs[name], inputs, run=run, conditions=conditions)
            rows = getattr(joined, kind)
            if isinstance(rows, str):
                raise ArtifactError(f"{name}: {dataset}/{split} has no {kind}: {rows}. Leave it out of the figure.")
            names = {"backbone": backbone, "method": method, "seed": int(seed), "dataset": dataset}
            if kind == "pairs":
                donors = read(inputs, f"pairs/{dataset}/{split}", PAIRS).select("sample_id", "donor_sample_id")
                rows = _shown(rows.join(donors, on="sample_id"), manifest, inputs[f"manifest/{dataset}/{split}"])
            yield rows.select(*(pl.lit(value).alias(key) for key, value in names.items()), pl.all())


def _shown(rows: pl.DataFrame, manifest: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Return the pairs with their question, and with the gold answers and the image files of source and donor."""
    paths = pl.col("image_files").list.eval(pl.concat_str(pl.lit(f"{folder}/"), pl.element()))
    shown = manifest.select("sample_id", "image_id", reference="reference_answers", images=paths)
    sources = shown.rename({"reference": "reference_real", "images": "images_real", "image_id": "source_image_id"})
    donors = shown.rename(
        {name: f"{name}_donor" for name in ("reference", "images")} | {"sample_id": "donor_sample_id"}
    )
    donors = donors.rename({"image_id": "donor_image_id"})
    rows = rows.drop("source_cluster_id", "donor_cluster_id")
    questions = manifest.select("sample_id", "question")
    # A pair has one question and two rows of the manifest. The order of the rows stays the same.
    for table, key in ((questions, "sample_id"), (sources, "sample_id"), (donors, "donor_sample_id")):
        rows = rows.join(table, on=key, how="left", validate="m:1", maintain_order="left")
    return rows
