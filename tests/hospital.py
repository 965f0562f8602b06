"""A table of questions about a phantom hospital, made as a study makes it."""

from pathlib import Path

from dualread.schema.data import BuildManifestSpec, DrawPhantomSpec
from dualread.stages import build_manifest, draw_phantom


def table_of(folder: Path, phantom: DrawPhantomSpec, manifest: BuildManifestSpec) -> Path:
    """Return the artifact with the table; the official files are in `folder`, too."""
    source, out = folder / "phantom", folder / "manifest"
    for made in (source, out):
        made.mkdir(parents=True)
    draw_phantom.compute(phantom, {}, source)
    build_manifest.compute(manifest, {"source": source}, out)
    return out
