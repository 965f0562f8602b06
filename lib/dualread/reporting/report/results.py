"""The finished tables and figures of a study, as the report shows them."""

import struct
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.errors import ArtifactError, ConfigError
from dualread.plugins import summary
from dualread.reporting.report.provenance import Provenance
from dualread.reporting.tables.entries import UNDEFINED
from dualread.store.digest import MANIFEST_NAME
from dualread.store.manifest import read_manifest

_SHOWN = {"backbones": "Backbones", "actors": "Actors", "methods": "Methods", "datasets": "Data sets"}
_EMBEDDED = 300_000  # bytes up to which the values of a figure are part of the page


class FinishedArtifact:
    """The artifact of a table or a figure: its manifest, its title, and what it was made from.

    Raises:
        ArtifactError: Its manifest is damaged, or a file cannot be read.
    """

    def __init__(self, folder: Path, provenance: Provenance) -> None:
        self.name, self.folder = folder.name, folder
        self.manifest = read_manifest(folder / MANIFEST_NAME)
        self.lineage = provenance.lineage(self.manifest)
        try:
            self.title = summary(folder.parent.name, self.name)
        except ConfigError:
            self.title = ""  # the plugin was removed, but its result is still there

    @property
    def layout(self) -> Mapping:
        """The layout in its spec, which comes from the config."""
        return self.manifest.action.spec.get("layout", {})

    def file(self, kind: str) -> Path:
        """Return the path of its file of a kind: tex, html, csv, png, pdf."""
        return self.folder / f"{self.name}.{kind}"

    def uri(self, kind: str) -> str:
        """Return a data URI with the content of a file."""
        types = {"png": "image/png", "csv": "text/csv", "tex": "application/x-tex"}
        return f"data:{types[kind]};base64,{b64encode(self.content(kind)).decode()}"

    def content(self, kind: str) -> bytes:
        """Return the content of a file."""
        try:
            return self.file(kind).read_bytes()
        except OSError as error:
            path = self.folder / MANIFEST_NAME
            raise ArtifactError(
                f"{self.file(kind)}: cannot be read ({error.strerror}). Delete {path} and run snakemake again."
            ) from error


class ShownTable(FinishedArtifact):
    """A table: its HTML, and its printed cells with estimates, of which tables of counts or settings have none."""

    def __init__(self, folder: Path, provenance: Provenance) -> None:
        super().__init__(folder, provenance)
        self.parts = self.content("html").decode().split("\n\n")  # one <table> each
        printed = pl.read_csv(self.content("csv"), infer_schema=False)
        if not {"metric", "printed"} <= set(printed.columns):
            printed = pl.DataFrame(schema=dict.fromkeys(("printed", "reason"), pl.String))
        undefined = printed.filter(printed=UNDEFINED)
        self.cells, self.undefined = len(printed), len(undefined)
        self.underpowered = len(printed.filter(pl.col("printed").str.contains("†", literal=True)))
        reasons = undefined.group_by(pl.col("reason").fill_null("no reason given")).len()
        self.reasons = reasons.sort(["len", "reason"], descending=[True, False]).rows()  # why, and of how many cells


class ShownFigure(FinishedArtifact):
    """A figure."""

    def __init__(self, folder: Path, provenance: Provenance) -> None:
        super().__init__(folder, provenance)
        self.size = struct.unpack(">II", self.content("png")[16:24])  # width and height of its picture
        # Whether the page links to the file of its values, which is too long to be a part of the page.
        self.has_long_values = len(self.content("csv")) > _EMBEDDED
        shown = [
            f"{word}: {', '.join(entry['label'] for entry in self.layout[kind])}."
            for kind, word in _SHOWN.items()
            if self.layout.get(kind)
        ]
        self.description = " ".join([self.title, *shown])  # for people who cannot see it


def tables(study: Path, provenance: Provenance) -> list[ShownTable]:
    """Return the tables of a study in the order of the config; where the order is unknown, the main table first.

    Raises:
        ArtifactError: There is no table, or a table is damaged.
    """
    folders = {path.parent.name: path.parent for path in sorted(study.glob(f"tables/*/{MANIFEST_NAME}"))}
    preview = folders.pop("preview", None)
    if not folders:
        raise ArtifactError(
            f"{study}: no finished table in it. Expected the folder of a study that was run, such as results/embedded."
            " Run it first: snakemake --cores 8 (with --configfile, if the study has one)."
        )
    ordered = read_manifest(preview / MANIFEST_NAME).action.spec["tables"] if preview else []
    places = {name: place for place, name in enumerate(ordered)}
    names = sorted(folders, key=lambda name: (places.get(name, len(places)), name != "main", name))
    return [ShownTable(folders[name], provenance) for name in names]


def figures(study: Path, provenance: Provenance) -> list[ShownFigure]:
    """Return the figures of a study by name."""
    return [ShownFigure(path.parent, provenance) for path in sorted(study.glob(f"figures/*/{MANIFEST_NAME}"))]
