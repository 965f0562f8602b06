"""Tables as LaTeX. Symbols of a text become formulas: `𝑛=384` is $n=384$. Only booktabs and multirow are needed."""

import re
import unicodedata
from collections.abc import Iterable

from dualread.reporting.tables import entries

_ESCAPES = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "—": "---", "–": "--", "”": "''"},
        **{"\N{NO-BREAK SPACE}": "~", "\N{THIN SPACE}": r"\,", "\N{EM SPACE}": r"\quad "},
    }
)
_SYMBOLS = {
    **{"α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "κ": r"\kappa", "λ": r"\lambda", "ρ": r"\rho", "τ": r"\tau"},
    **{"Δ": r"\Delta", "ℰ": r"\mathcal{E}", "|": "|", "−": "-", "±": r"\pm", "×": r"\times", "≤": r"\le", "≥": r"\ge"},
    **{"·": r"\cdot", "✓": r"\surd", "↑": r"\uparrow", "↓": r"\downarrow", "†": r"^{\dagger}", "°": r"^{\circ}"},
}
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ʳᵉᵃˡʰⁿ"
_ITALIC = "\U0001d434-\U0001d467"
_IN = f"{''.join(_SYMBOLS)}{_RAISED}{_ITALIC}"
# A factor before a symbol belongs to the formula, and what stands between two symbols or a symbol and a number.
_FORMULA = re.compile(rf"((?:\d[\d.,]*(?=[×ρτ{_ITALIC}]))?[{_IN}](?:[{_IN}\d=+.,]*[{_IN}\d])?)")
_GAPS = {
    entries.Gap.RULE: r"\midrule",
    entries.Gap.SPACE: r"\addlinespace[2pt]",
    entries.Gap.SMALL_SPACE: r"\addlinespace[1pt]",
}


def latex_table(table: entries.Float) -> str:
    """Return a complete LaTeX float."""
    environment, width = ("table*", r"\textwidth") if table.wide else ("table", r"\columnwidth")
    size = r"\footnotesize" if table.wide and not table.small else r"\scriptsize"
    columns = table.specification or table.columns
    lines = [
        f"% Needs booktabs and multirow. The numbers behind every cell are in {table.name}.csv.",
        rf"\begin{{{environment}}}[!t]",
        r"\centering",
        rf"\caption{{{text(table.caption)}}}",
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


def text(words: str) -> str:
    """Return a text so that LaTeX prints it as it is; line breaks become spaces.

    Control characters and halves of surrogate pairs, which nothing prints and no file holds, are left out.
    """
    spaced = re.sub(r"[^\S\xa0\u2003\u2009]+", " ", words).strip(" ")
    printed = "".join(character for character in spaced if unicodedata.category(character) not in ("Cc", "Cs"))
    pieces = _FORMULA.split(printed)  # every second one is a formula
    return "".join(f"${_formula(piece)}$" if k % 2 else piece.translate(_ESCAPES) for k, piece in enumerate(pieces))


def _formula(symbols: str) -> str:
    written = ""
    for piece in re.findall(rf"[{_RAISED}]+|,(?=\d)|.", symbols):
        letters = unicodedata.normalize("NFKC", piece).replace("−", "-")
        if piece[0] in _RAISED:
            raised = rf"\mathrm{{{letters}}}" if letters.isalpha() else letters
            letters = f"^{raised}" if len(raised) == 1 else f"^{{{raised}}}"
        elif piece == ",":
            letters = "{,}"  # between the digits of a number
        apart = " " if letters.isalpha() and re.search(r"\\[A-Za-z]+$", written) else ""
        written += apart + _SYMBOLS.get(piece, letters)
    return written


def _lines(lines: Iterable[entries.Line]) -> list[str]:
    written = []
    for line in lines:
        if isinstance(line, entries.Gap):
            written.append(_GAPS[line])
        elif isinstance(line, entries.Heading):
            written.append(rf"\multicolumn{{{line.columns}}}{{@{{}}l}}{{\emph{{{text(line.label)}}}}} \\")
        else:
            written.append(" & ".join(map(_entry, line.cells)) + r" \\")
            written += [_rules(line)] if line.ruled else []
    return written


def _rules(row: entries.TableRow) -> str:
    """Return a rule below each title of a row."""
    rules, first = "", 1
    for cell in row.cells:
        n_columns = cell.columns if isinstance(cell, entries.Over) else 1
        if isinstance(cell, entries.Over):
            rules += rf"\cmidrule(lr){{{first}-{first + n_columns - 1}}}"
        first += n_columns
    return rules


def _entry(entry: entries.Entry) -> str:
    match entry:
        case entries.Number():
            mean = rf"\mathbf{{{entry.mean}}}" if entry.is_bold else entry.mean
            spread = rf"_{{\pm{entry.spread}}}" if entry.spread else ""
            # Marks follow an empty group, so that they stand after the subscript instead of on it.
            few = rf"{{}}^{{\dagger\mathrm{{{entry.short}}}}}" if entry.short else ""
            circle = r"{}^{\circ}" if entry.by_chance else ""
            return f"${mean}{spread}{few}{circle}$"
        case entries.Interval():
            return f"$[{entry.low}, {entry.high}]$"
        case entries.PValues():
            return "$({})$".format(r";\,".join(entry.texts)).replace("≤", r"\le ")
        case entries.Joined():
            return "".join(map(_entry, entry.parts))
        case entries.Code():
            return rf"\texttt{{{text(entry.text)}}}"
        case entries.TwoLines():
            return rf"\shortstack{{{_entry(entry.upper)}\\[-2pt]{_entry(entry.lower)}}}"
        case entries.Over():
            return rf"\multicolumn{{{entry.columns}}}{{c}}{{{text(entry.text)}}}"
        case entries.Raised():  # a cell of two lines stands on its lower one
            return rf"\raisebox{{1.1ex}}[0pt]{{{text(entry.text)}}}"
        case entries.Beside():
            words = [text(word) for word in entry.text.split()]
            stacked = r"\\".join(words)
            is_stacked = entry.by_word and entry.rows >= len(words)
            label = rf"\shortstack[l]{{{stacked}}}" if is_stacked else text(entry.text)
            return label if entry.rows == 1 else rf"\multirow{{{entry.rows}}}{{*}}{{{label}}}"
    return text(entry)
