"""Stage build_manifest: one data set and split in its official layout -> manifest, images, audit.

Input `source`: the folder in the official layout.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread import plugins
from dualread.artifacts.tables import write_rows, write_table
from dualread.data.datasets.base import load
from dualread.data.questions.audit import HARD_TO_SEE, refuse_broken
from dualread.data.questions.build import build, check_digest, digest
from dualread.data.questions.pictures import Pictures
from dualread.data.questions.select import select
from dualread.digests import MANIFEST_NAME
from dualread.progress import say
from dualread.schema.columns import MANIFEST, QUESTION_COLUMNS, THUMBNAILS
from dualread.schema.data import BuildManifestSpec

_THUMBNAILS_PER_PART = 20_000  # 82 MB, of which several copies are in the memory while they are written


def compute(spec: BuildManifestSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write the manifest, its digest, its audit, thumbnails, and images as images/<sha256>.<extension>.

    Images are unchanged, unless the file alone does not show the picture, or is DICOM: those become PNGs of what is
    shown.
    """
    loaded = load(plugins.load_module(spec.loader.module), inputs["source"], spec.split, spec.settings)
    is_artifact = (inputs["source"] / MANIFEST_NAME).is_file()  # its files are links to the store
    pictures = Pictures(bits=spec.bits, ct_windows=spec.ct_windows, folder=None if is_artifact else inputs["source"])
    selected = select(loaded, spec.select, spec.seed, pictures.identity) if spec.select else loaded
    for row in selected.rows:
        pictures.identity(row)
    refuse_broken(loaded, pictures.broken)
    manifest, audit = build(
        selected,
        pictures.files,
        dataset=spec.dataset,
        split=spec.split,
        roles=spec.roles,
        seed=spec.seed,
        resample=spec.resample,
    )
    check_digest(manifest, spec.expect_sha256, file=loaded.file, dataset=spec.dataset, split=spec.split)
    shown = (picture.source for row in selected.rows for picture in row.images)
    sources = {pictures.files[source]: source for source in shown}
    thumbnails: dict[str, bytes] = {}  # by the digest of the pixels
    for file, source in sources.items():
        target = out / file.file
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(pictures.copy(source))
        thumbnails.setdefault(file.pixel_sha256, file.thumbnail)
    write_table(out / "manifest.parquet", manifest, MANIFEST)
    if not (columns := selected.question_columns(spec.dataset, spec.split)).is_empty():
        write_table(out / "question_columns.parquet", columns, QUESTION_COLUMNS)
    rows = ({"pixel_sha256": pixels, "thumbnail": thumbnail} for pixels, thumbnail in thumbnails.items())
    write_rows(out, rows, THUMBNAILS, rows_per_part=_THUMBNAILS_PER_PART)
    audit.write_parquet(out / "audit.parquet", compression="zstd")
    (out / "manifest_digest.txt").write_text(f"{digest(manifest)}\n")
    [doubts] = audit.filter(pl.col("step") == HARD_TO_SEE)["reason"]
    if any(file.doubts for file in sources):
        say(f"warning: {spec.dataset}/{spec.split}: {doubts}")
    n_open, n_pictures = (manifest["answer_type"] == "open").sum(), len(thumbnails)
    return (
        f"read {len(loaded.rows)} questions from {loaded.file.name}, wrote {manifest.height} rows"
        f" ({n_open} open, {manifest.height - n_open} closed) on {n_pictures} pictures, digest {digest(manifest)}"
    )
