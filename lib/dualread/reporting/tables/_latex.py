"""Tables as LaTeX, with the packages booktabs and multirow only."""

import unicodedata
from collections.abc import Iterable

from dualread.reporting.tables._structure import Beside, Entry, Float, Gap, Heading, Line, Over, Raised, Row, TwoLines

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


def _rules(row: Row) -> str:
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
