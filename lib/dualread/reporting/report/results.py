"""The finished tables and figures of a study, as the report shows them."""

import struct
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dualread.errors import ArtifactError, ConfigError
from dualread.plugins import summary
from dualread.reporting.pages import Row
from dualread.reporting.report.provenance import Provenance
from dualread.reporting.tables.entries import UNDEFINED
from dualread.store.digest import MANIFEST_NAME
from dualread.store.manifest import Manifest, read_manifest

_SHOWN = {"backbones": "Backbones", "actors": "Actors", "methods": "Methods", "datasets": "Data sets"}
_EMBEDDED = 300_000  # bytes up to which the values of a figure are part of the page


@dataclass(frozen=True, kw_only=True)
class FinishedArtifact:
    """The artifact of a table or a figure."""

    name: str
    folder: Path
    manifest: Manifest
    title: str
    lineage: Sequence[Row]

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
        """Return the content of a file.

        Raises:
            ArtifactError: It cannot be read.
        """
        try:
            return self.file(kind).read_bytes()
        except OSError as error:
            path = self.folder / MANIFEST_NAME
            raise ArtifactError(
                f"{self.file(kind)}: cannot be read ({error.strerror}). Delete {path} and run snakemake again."
            ) from error


@dataclass(frozen=True, kw_only=True)
class ShownTable(FinishedArtifact):
    """A table: its HTML, and counts of its cells.

    Attributes:
        parts: The HTML, one <table> each.
        cells: Number of printed cells with estimates; 0 for tables of counts or settings.
        undefined: Number of cells without a value.
        underpowered: Number of cells that are marked as underpowered.
        reasons: Each reason for undefined cells, with the number of cells.
    """

    parts: Sequence[str]
    cells: int
    undefined: int
    underpowered: int
    reasons: Sequence[tuple[str, int]]


@dataclass(frozen=True, kw_only=True)
class ShownFigure(FinishedArtifact):
    """A figure with the size of its picture."""

    width: int
    height: int

    @property
    def has_long_values(self) -> bool:
        """Whether the page links to the file of its values, which is too long to be a part of the page."""
        return len(self.content("csv")) > _EMBEDDED

    @property
    def description(self) -> str:
        """The figure in words, for people who cannot see it."""
        shown = [
            f"{word}: {', '.join(entry['label'] for entry in self.layout[kind])}."
            for kind, word in _SHOWN.items()
            if self.layout.get(kind)
        ]
        return " ".join([self.title, *shown])


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
    return [_table(name, folders[name], provenance) for name in names]


def figures(study: Path, provenance: Provenance) -> list[ShownFigure]:
    """Return the figures of a study by name."""
    shown = []
    for path in sorted(study.glob(f"figures/*/{MANIFEST_NAME}")):
        made = _finished(path.parent.name, path.parent, provenance)
        width, height = struct.unpack(">II", made.content("png")[16:24])
        shown.append(ShownFigure(**vars(made), width=width, height=height))
    return shown


def _finished(name: str, folder: Path, provenance: Provenance) -> FinishedArtifact:
    manifest = read_manifest(folder / MANIFEST_NAME)
    try:
        title = summary(folder.parent.name, name)
    except ConfigError:
        title = ""  # the plugin was removed, but its result is still there
    lineage = provenance.lineage(manifest)
    return FinishedArtifact(name=name, folder=folder, manifest=manifest, title=title, lineage=lineage)


def _table(name: str, folder: Path, provenance: Provenance) -> ShownTable:
    made = _finished(name, folder, provenance)
    frame = pl.read_csv(made.content("csv"), infer_schema=False)
    if not {"metric", "printed"} <= set(frame.columns):
        frame = pl.DataFrame(schema=dict.fromkeys(("printed", "reason"), pl.String))  # of counts or settings
    printed, reason = pl.col("printed"), pl.col("reason").fill_null("no reason given")
    undefined = frame.filter(printed == UNDEFINED)
    reasons = undefined.group_by(reason).len().sort(["len", "reason"], descending=[True, False])
    return ShownTable(
        **vars(made),
        parts=made.content("html").decode().split("\n\n"),
        cells=frame.height,
        undefined=undefined.height,
        underpowered=frame.filter(printed.str.contains("†", literal=True)).height,
        reasons=reasons.rows(),
    )
