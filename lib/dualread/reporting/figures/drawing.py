"""What all figures share: colors, fonts, and files that have the same bytes on every run."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import matplotlib
import polars as pl
from matplotlib import rcParams
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from dualread.artifacts.tables import for_spreadsheets
from dualread.errors import ConfigError
from dualread.schema.tables import Labeled

# Colors that color-blind readers tell apart (Okabe and Ito, Color Universal Design, 2008), darker ones first; their
# yellow is left out, because it is lost on white paper.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

TEXT_WIDTH = 7.1  # inches, both columns of a two-column page
LONGEST_SIDE = 4000  # pixels of a PNG: browsers and viewers still show it
_SCREEN = 1.6  # width over height

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine has it
    "font.size": 7,
    "axes.titlesize": 7,
    "figure.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # letters as TrueType outlines: text stays text, and every publisher takes it
    "savefig.dpi": 200,
}


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A finished figure, and one row per drawn value with its full precision; null where the figure has a gap."""

    figure: Figure  # the first page
    values: pl.DataFrame  # what is drawn on all pages
    further: Sequence[Figure] = ()  # the other pages


def refuse_more(figure: str, kind: str, drawn: Sequence[Labeled]) -> None:
    """Raise a ConfigError if there are more entries than colors."""
    if len(drawn) > len(COLORS):
        raise ConfigError(
            f"figures.{figure}.{kind}: {len(drawn)} {kind}, but there are {len(COLORS)} colors. List at most as many."
        )


def panels(figure: Figure, rows: Sequence[str], backbones: Sequence[Labeled], xlabel: str = "", **shared: Any) -> Any:
    """Return a grid of axes: a row per label, and a column per backbone, whose label is its title."""
    grid = figure.subplots(len(rows), len(backbones), squeeze=False, **shared)
    for axes, label in zip(grid[:, 0], rows, strict=True):
        axes.set_ylabel(label, parse_math=False)
    for axes, backbone in zip(grid[0], backbones, strict=True):
        axes.set_title(backbone.label, fontweight="bold", parse_math=False)
    for axes in grid[-1]:
        axes.set_xlabel(xlabel)
    return grid


def means(runs: pl.DataFrame) -> tuple[Any, Any, Any]:
    """Return the means over runs of estimate, low, and high; None for all where a run has no estimate."""
    if runs.is_empty() or runs["estimate"].null_count():
        return None, None, None
    return runs["estimate"].mean(), runs["low"].mean(), runs["high"].mean()


@contextmanager
def house_style() -> Iterator[None]:
    """Use matplotlib's defaults and the style of this project inside the context, not the user's settings."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        rcParams.update(_STYLE)
        yield


def save(drawing: Drawing, folder: Path, name: str, *, title: str) -> None:
    """Write <name>.pdf, <name>.png (all pages on one sheet) and <name>.csv. Equal drawings give equal bytes.

    A layout engine runs once per page, so that both files have the same layout; it is then removed from the page. The
    title is in the files' metadata, and is not drawn.
    """
    pages = [drawing.figure, *drawing.further]
    for page in pages:
        if page.get_layout_engine() is not None:
            page.draw_without_rendering()
            page.set_layout_engine(None)
    with PdfPages(folder / f"{name}.pdf", metadata={"Title": title, "CreationDate": None}) as pdf:
        for page in pages:
            pdf.savefig(page)
    text = PngInfo()
    text.add_text("Title", title)
    sheet, dpi = _sheet(pages)
    sheet.save(folder / f"{name}.png", dpi=(dpi, dpi), pnginfo=text)
    for_spreadsheets(drawing.values).write_csv(folder / f"{name}.csv")


def _sheet(pages: Sequence[Figure]) -> tuple[Image.Image, float]:
    """Return all pages in one picture, and its dots per inch: those of the style, or fewer where a side is too long."""
    # As many pages stand in a row as bring the sheet closest to the shape of a screen.
    width, height = (max(page.get_size_inches()[k] for page in pages) for k in (0, 1))

    def size(columns: int) -> tuple[float, float]:
        return width * columns, height * -(-len(pages) // columns)

    columns = min(range(1, len(pages) + 1), key=lambda n: abs(log(size(n)[0] / size(n)[1] / _SCREEN)))
    dpi = min(rcParams["savefig.dpi"], LONGEST_SIDE / max(size(columns)))
    pictures = []
    for page in pages:
        buffer = io.BytesIO()
        page.savefig(buffer, format="png", dpi=dpi)
        pictures.append(Image.open(buffer, formats=("PNG",)).convert("RGB"))
    across, down = (max(picture.size[k] for picture in pictures) for k in (0, 1))
    sheet = Image.new("RGB", (across * columns, down * -(-len(pages) // columns)), "white")
    for k, picture in enumerate(pictures):
        sheet.paste(picture, (across * (k % columns), down * (k // columns)))
    return sheet, dpi
