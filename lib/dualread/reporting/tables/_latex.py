"""LaTeX with booktabs and multirow only: escaping, and the frame that every table shares."""

import unicodedata
from collections.abc import Sequence

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

# Between rows that have cells of two lines.
APART = r"\addlinespace[2pt]"
# The same as in the row above.
DITTO = "''"


def escape(text: str) -> str:
    """Return `text` (a label, a name) so that LaTeX prints it as it is; line breaks become spaces.

    Control characters and halves of surrogate pairs, which nothing prints and no file holds, are left out.
    """
    printed = (character for character in " ".join(text.split()) if unicodedata.category(character) not in ("Cc", "Cs"))
    return "".join(_ESCAPES.get(character, character) for character in printed)


def row(cells: Sequence[str]) -> str:
    """Return one line of a tabular."""
    return " & ".join(cells) + r" \\"


def multirow(n_rows: int, text: str) -> str:
    """Return `text` centered over `n_rows` rows, of which this is the first."""
    return text if n_rows == 1 else rf"\multirow{{{n_rows}}}{{*}}{{{text}}}"


def group_label(n_rows: int, label: str) -> str:
    """Return `label` beside `n_rows` rows; one word a line where there is room, since the column is narrow."""
    words = [escape(word) for word in label.split()]
    stacked = r"\\".join(words)
    return multirow(n_rows, " ".join(words) if n_rows < len(words) else rf"\shortstack[l]{{{stacked}}}")


def two_lines(upper: str, lower: str) -> str:
    """Return two lines in one cell, closer to each other than to the lines of the rows above and below."""
    return rf"\shortstack{{{upper}\\[-2pt]{lower}}}"


def between_lines(text: str) -> str:
    """Return `text` half a line higher, beside a cell of two lines, which stands on its lower one."""
    return rf"\raisebox{{1.1ex}}[0pt]{{{text}}}"


def block_heading(label: str, n_columns: int) -> str:
    """Return the line that opens a block of rows, a backbone."""
    return rf"\multicolumn{{{n_columns}}}{{@{{}}l}}{{\emph{{{escape(label)}}}}} \\"


def spanning(n_before: int, titles: Sequence[tuple[str, int]]) -> list[str]:
    """Return a line of titles (LaTeX), each over as many columns as it says, and the rules below them.

    Args:
        n_before: Columns before the first title.
        titles: A title and the number of its columns, from left to right.
    """
    texts, rules, first = [], "", n_before + 1
    for title, width in titles:
        texts.append(rf"\multicolumn{{{width}}}{{c}}{{{title}}}")
        rules += rf"\cmidrule(lr){{{first}-{first + width - 1}}}"
        first += width
    return [row([*[""] * n_before, *texts]), rules]


def float_table(
    *,
    name: str,
    wide: bool,
    columns: str,
    head: Sequence[str],
    body: Sequence[str],
    caption: str,
    label: str | None = None,
) -> str:
    r"""Return a complete table float.

    Args:
        name: The table's; its CSV is called so.
        wide: Whether it spans both columns of a two-column page (table*).
        columns: The column specification of tabular*.
        head: Lines between \toprule and \midrule.
        body: Lines between \midrule and \bottomrule.
        caption: LaTeX, already escaped.
        label: It becomes tab:<label>; the name, unless the table is of several floats.
    """
    environment, width, size = (
        ("table*", r"\textwidth", r"\footnotesize") if wide else ("table", r"\columnwidth", r"\scriptsize")
    )
    lines = [
        f"% Needs booktabs and multirow. The numbers behind every cell are in {name}.csv.",
        rf"\begin{{{environment}}}[!t]",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{label or name}}}",
        r"\medskip",  # most classes leave no room between a caption and the rule below it
        size,
        r"\setlength{\tabcolsep}{1pt}",  # at least; \fill adds the rest
        rf"\begin{{tabular*}}{{{width}}}{{@{{\extracolsep{{\fill}}}}{columns}@{{}}}}",
        r"\toprule",
        *head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular*}",
        rf"\end{{{environment}}}",
    ]
    return "\n".join(lines) + "\n"
