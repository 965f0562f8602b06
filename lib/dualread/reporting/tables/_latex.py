r"""A table as a value (rows of cells under a head, with a caption), and as LaTeX. `_html` writes it as HTML.

The text of a cell or a caption is in LaTeX's notation for running text and formulas, such as `AUROC$\uparrow$`. What a
person named (a label, a study) goes through `escape` first. Only the packages booktabs and multirow are needed.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Over(NamedTuple):
    """A title over several columns, centered."""

    text: str
    columns: int


class Beside(NamedTuple):
    """A label beside several rows. It stands in the first of them; in the rows below, its place is the empty string."""

    text: str
    rows: int


class Words(NamedTuple):
    """A label (not yet escaped) beside several rows, one word per line where there are enough rows for its words."""

    label: str
    rows: int


class TwoLines(NamedTuple):
    """A cell of two lines, closer to each other than to the lines of the rows above and below."""

    upper: str
    lower: str


class Raised(NamedTuple):
    """A label beside cells of two lines, at half of their height."""

    text: str


Entry = str | Over | Beside | Words | TwoLines | Raised


class TableRow(NamedTuple):
    """One row of cells; with `ruled`, a rule stands below each of its titles."""

    cells: Sequence[Entry]
    ruled: bool = False


class Heading(NamedTuple):
    """A line across `columns` columns that opens a block of rows, such as a backbone; the label is not yet escaped."""

    label: str
    columns: int


class Gap(Enum):
    """What separates two rows."""

    RULE = "rule"
    SPACE = "space"
    SMALL_SPACE = "small space"


Line = TableRow | Heading | Gap


@dataclass(frozen=True, kw_only=True)
class Float:
    """One table with its caption. Most tables have one float; some have one per backbone.

    Attributes:
        name: The table's name; its CSV file has the same.
        wide: Whether it spans both columns of a two-column page.
        columns: One letter per column: l, c or r for its alignment, p for a paragraph.
        head: The rows above the body; may be empty.
        body: The rows, headings and gaps.
        caption: Sentences, as text in LaTeX's notation.
        label: The LaTeX label is tab:<label>; the name by default. Tables with several floats need one per float.
        specification: The columns as LaTeX specifies them, where that says more than `columns`.
        small: Whether it is set in smaller type, because its marks would not fit otherwise.
    """

    name: str
    wide: bool
    columns: str
    head: Sequence[Line]
    body: Sequence[Line]
    caption: str
    label: str | None = None
    specification: str | None = None
    small: bool = False


def spanning(n_before: int, titles: Sequence[tuple[str, int]]) -> TableRow:
    """Return a row of titles with a rule below each.

    Args:
        n_before: Number of columns before the first title.
        titles: Each title and the number of its columns, from left to right.
    """
    return TableRow([*[""] * n_before, *(Over(*title) for title in titles)], ruled=True)


_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}

# The same as in the row above.
DITTO = "''"

_GAPS = {Gap.RULE: r"\midrule", Gap.SPACE: r"\addlinespace[2pt]", Gap.SMALL_SPACE: r"\addlinespace[1pt]"}


def escape(text: str) -> str:
    """Return `text` (a label, a name) so that LaTeX prints it as it is; line breaks become spaces.

    Control characters and halves of surrogate pairs, which nothing prints and no file holds, are left out.
    """
    printed = (character for character in " ".join(text.split()) if unicodedata.category(character) not in ("Cc", "Cs"))
    return "".join(_ESCAPES.get(character, character) for character in printed)


def latex_table(table: Float) -> str:
    """Return a complete LaTeX float."""
    environment, width = ("table*", r"\textwidth") if table.wide else ("table", r"\columnwidth")
    size = r"\footnotesize" if table.wide and not table.small else r"\scriptsize"
    columns = table.specification or table.columns
    lines = [
        f"% Needs booktabs and multirow. The numbers behind every cell are in {table.name}.csv.",
        rf"\begin{{{environment}}}[!t]",
        r"\centering",
        rf"\caption{{{table.caption}}}",
        rf"\label{{tab:{table.label or table.name}}}",
        r"\medskip",  # most classes leave no room between a caption and the rule below it
        size,
        r"\setlength{\tabcolsep}{1pt}",  # the least distance; \fill adds the rest
        rf"\begin{{tabular*}}{{{width}}}{{@{{\extracolsep{{\fill}}}}{columns}@{{}}}}",
        r"\toprule",
        *([*_lines(table.head), r"\midrule"] if table.head else []),
        *_lines(table.body),
        r"\bottomrule",
        r"\end{tabular*}",
        rf"\end{{{environment}}}",
    ]
    return "\n".join(lines) + "\n"


def _lines(lines: Iterable[Line]) -> list[str]:
    written = []
    for line in lines:
        if isinstance(line, Gap):
            written.append(_GAPS[line])
        elif isinstance(line, Heading):
            written.append(rf"\multicolumn{{{line.columns}}}{{@{{}}l}}{{\emph{{{escape(line.label)}}}}} \\")
        else:
            written.append(" & ".join(map(_entry, line.cells)) + r" \\")
            written += [_rules(line)] if line.ruled else []
    return written


def _rules(row: TableRow) -> str:
    """Return a rule below each title of a row."""
    rules, first = "", 1
    for cell in row.cells:
        n_columns = cell.columns if isinstance(cell, Over) else 1
        if isinstance(cell, Over):
            rules += rf"\cmidrule(lr){{{first}-{first + n_columns - 1}}}"
        first += n_columns
    return rules


def _entry(entry: Entry) -> str:
    if isinstance(entry, str):
        return entry
    if isinstance(entry, Over):
        return rf"\multicolumn{{{entry.columns}}}{{c}}{{{entry.text}}}"
    if isinstance(entry, TwoLines):
        return rf"\shortstack{{{entry.upper}\\[-2pt]{entry.lower}}}"
    if isinstance(entry, Raised):  # a cell of two lines stands on its lower one
        return rf"\raisebox{{1.1ex}}[0pt]{{{entry.text}}}"
    if isinstance(entry, Beside):
        return _beside(entry.rows, entry.text)
    words = [escape(word) for word in entry.label.split()]
    stacked = r"\\".join(words)
    return _beside(entry.rows, " ".join(words) if entry.rows < len(words) else rf"\shortstack[l]{{{stacked}}}")


def _beside(n_rows: int, text: str) -> str:
    return text if n_rows == 1 else rf"\multirow{{{n_rows}}}{{*}}{{{text}}}"
