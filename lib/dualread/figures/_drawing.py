"""What every figure shares: its colors, its letters, and files that have the same bytes on every run."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import polars as pl
from matplotlib import rcParams
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

# Colors that color-blind readers tell apart (Okabe and Ito, Color Universal Design, 2008), darker ones first; their
# yellow is left out, because it is lost on white paper.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

TEXT_WIDTH = 7.1  # inches, both columns of a two-column page

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
    """A finished figure, and one row a drawn value with its full precision; null where the figure has a gap.

    Attributes:
        figure: The first page.
        values: What is drawn on all pages.
        further: The other pages.
    """

    figure: Figure
    values: pl.DataFrame
    further: Sequence[Figure] = ()


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save inside this: matplotlib's own defaults and the house's style, whatever the user's settings say."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        rcParams.update(_STYLE)
        yield


def save(drawing: Drawing, folder: Path, name: str, *, title: str) -> None:
    """Write <name>.pdf, <name>.png (all pages, one below the other) and <name>.csv, a function of what is drawn.

    Args:
        drawing: The figure and its values.
        folder: An existing folder.
        name: The files' name.
        title: Stands in the files' metadata, not in the picture.
    """
    pages = [drawing.figure, *drawing.further]
    with PdfPages(folder / f"{name}.pdf", metadata={"Title": title, "CreationDate": None}) as pdf:
        for page in pages:
            pdf.savefig(page)
    pictures = [_picture(page) for page in pages]
    sheet = Image.new("RGB", (max(p.width for p in pictures), sum(p.height for p in pictures)), "white")
    top = 0
    for picture in pictures:
        sheet.paste(picture, (0, top))
        top += picture.height
    text = PngInfo()
    text.add_text("Title", title)
    sheet.save(folder / f"{name}.png", dpi=(rcParams["savefig.dpi"],) * 2, pnginfo=text)
    drawing.values.write_csv(folder / f"{name}.csv")


def _picture(page: Figure) -> Image.Image:
    buffer = io.BytesIO()
    page.savefig(buffer, format="png")
    return Image.open(buffer).convert("RGB")
