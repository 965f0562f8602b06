"""Stage build_manifest: one data set and split in its official layout -> manifest, images, audit.

Spec: dataset, split, loader {"module": "datasets.<name>"}, settings (the loader's), roles (a role, or fractions of the
images), seed. Input `source`: the folder in the official layout.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.tables import write_table
from dualread.datasets._rows import Loaded
from dualread.errors import DataError
from dualread.images import open_image, pixel_sha256
from dualread.manifests.build import ImageFile, build, refuse_broken


def compute(spec: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    """Write manifest.parquet, images/<sha256>.<extension> (unchanged bytes, once each) and audit.parquet."""
    loaded: Loaded = plugins.load_module(spec["loader"]["module"]).load_rows(
        inputs["source"], spec["split"], spec["settings"]
    )
    images, broken = _read_images(loaded)
    refuse_broken(loaded, broken)
    manifest, audit = build(
        loaded, images, dataset=spec["dataset"], split=spec["split"], roles=spec["roles"], seed=spec["seed"]
    )
    for source, image in images.items():
        target = out / image.file
        target.parent.mkdir(exist_ok=True)
        if not target.exists():
            target.write_bytes(_content(source))
    write_table(out / "manifest.parquet", manifest, MANIFEST)
    audit.write_parquet(out / "audit.parquet", compression="zstd")
    n_open, n_pictures = (manifest["answer_type"] == "open").sum(), manifest["image_id"].n_unique()
    return (
        f"read {len(loaded.rows)} questions on {len(images)} images from {loaded.file.name}, "
        f"wrote {manifest.height} rows ({n_open} open, {manifest.height - n_open} closed) on {n_pictures} pictures"
    )


def _read_images(loaded: Loaded) -> tuple[dict[Path | bytes, ImageFile], dict[Path | bytes, str]]:
    """Decode every image once; return what was found, and the reason for each image that cannot be read."""
    images, broken = {}, {}
    for image in dict.fromkeys(row.image for row in loaded.rows):
        try:
            pixels = pixel_sha256(open_image(image))
        except DataError as error:
            broken[image] = str(error)
            continue
        sha256 = hashlib.sha256(_content(image)).hexdigest()
        suffix = image.suffix.lower() if isinstance(image, Path) else ".image"
        images[image] = ImageFile(file=f"images/{sha256}{suffix}", sha256=sha256, pixel_sha256=pixels)
    return images, broken


def _content(image: Path | bytes) -> bytes:
    return image.read_bytes() if isinstance(image, Path) else image
