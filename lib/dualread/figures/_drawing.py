"""What every figure shares: its colors, its letters, and files that have the same bytes on every run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import polars as pl
from matplotlib.figure import Figure

# Colors that color-blind readers tell apart (Okabe and Ito, Color Universal Design, 2008), darker ones first; their
# yellow is left out, because it is lost on white paper.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

TEXT_WIDTH = 7.1  # inches, both columns of a two-column page

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine has it
    "font.size": 7,
    "axes.titlesize": 7,
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
    """A finished figure, and one row a drawn value with its full precision; null where the figure has a gap."""

    figure: Figure
    values: pl.DataFrame


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save inside this: matplotlib's own defaults and the house's style, whatever the user's settings say."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def save(drawing: Drawing, folder: Path, name: str, *, title: str) -> None:
    """Write <name>.pdf, <name>.png and <name>.csv; the bytes are a function of what is drawn.

    Args:
        drawing: The figure and its values.
        folder: An existing folder.
        name: The files' name.
        title: Stands in the files' metadata, not in the picture.
    """
    drawing.figure.savefig(folder / f"{name}.pdf", metadata={"Title": title, "CreationDate": None})
    drawing.figure.savefig(folder / f"{name}.png", metadata={"Title": title})
    drawing.values.write_csv(folder / f"{name}.csv")
