"""A finished table, from LaTeX to HTML: what `dualread.reporting.tables` writes with booktabs and multirow.

Rules between columns and rows are the style sheet's; spans, captions, headings and the text of every cell are kept. A
command that is not known is shown as it is and listed, so that a table of somebody's own never breaks a report.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dualread.reporting.report._latex_text import TextConverter, group, split

_FLOAT = re.compile(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", re.DOTALL)
_TABULAR = re.compile(r"\\begin\{tabular(\*?)\}(?:\[\w*\])?(.*?)\\end\{tabular\*?\}", re.DOTALL)
_RULE = re.compile(
    r"\s*(?:\\(?P<name>toprule|midrule|bottomrule|addlinespace)(?![A-Za-z])(?:\[[^\]]*\])?"
    r"|\\cmidrule(?:\[[^\]]*\])?(?:\([^)]*\))?\{[^}]*\})"
)


@dataclass(frozen=True, kw_only=True)
class HtmlTable:
    """One table: a complete <table>, and the commands in it that are not known."""

    html: str
    unknown: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Cell:
    text: str
    columns: int = 1
    rows: int = 1
    align: str = ""


@dataclass
class _Row:
    """The cells of a line by their first column; `apart` where space stands above."""

    cells: dict[int, _Cell] = field(default_factory=dict)
    apart: bool = False


def convert(tex: str) -> list[HtmlTable]:
    """Return every tabular of a file, in order; none where it holds none that can be read."""
    floats = [found[0] for found in _FLOAT.finditer(tex)] or [tex]
    return [
        HtmlTable(html=_table(found, _caption(part), text), unknown=tuple(text.unknown))
        for part in floats
        for found in _TABULAR.finditer(part)
        for text in [TextConverter()]
    ]


def _caption(tex: str) -> str:
    start = tex.find(r"\caption{")
    return "" if start < 0 else group(tex, start + len(r"\caption"))[0]


def _table(found: re.Match[str], caption: str, text: TextConverter) -> str:
    body, at = found[2], 0
    if found[1]:
        _, at = group(body, at)  # the width
    specification, at = group(body, at)
    align = _alignment(specification)
    sections = _sections(body[at:], text)
    has_head = len(sections) > 1 and not all(_is_heading(row, len(align)) for row in sections[0])
    parts = ["<table>"]
    if caption:
        parts.append(f"<caption><span>{text.html(caption)}</span></caption>")
    for number, section in enumerate(sections):
        head = has_head and number == 0
        element = "thead" if head else "tbody"
        parts += [f"<{element}>", *_lines(section, align, head=head), f"</{element}>"]
    return "\n".join([*parts, "</table>"])


def _alignment(specification: str) -> str:
    """Return one letter a column: l, c or r, or p for a paragraph."""
    columns, at = "", 0
    while at < len(specification):
        letter, at = specification[at], at + 1
        if letter == "*":
            times, at = group(specification, at)
            repeated, at = group(specification, at)
            columns += _alignment(repeated) * int(times)
        elif letter in "@!><pmb":
            _, at = group(specification, at)
            columns += "p" if letter in "pmb" else ""
        elif letter in "lcr":
            columns += letter
    return columns


def _sections(body: str, text: TextConverter) -> list[list[_Row]]:
    """Return the rows between the rules over the whole width."""
    sections: list[list[_Row]] = [[]]
    for line in split(body, "\\\\"):
        row = _Row()
        while rule := _RULE.match(line):
            line = line[rule.end() :]
            row.apart |= rule["name"] == "addlinespace"
            if rule["name"] == "midrule" and sections[-1]:
                sections.append([])
        if not line.strip():
            continue
        column = 0
        for piece in split(line, "&"):
            cell = _cell(piece.strip(), text)
            row.cells[column] = cell
            column += cell.columns
        sections[-1].append(row)
    return [section for section in sections if section]


def _cell(tex: str, text: TextConverter) -> _Cell:
    columns, align, rows = 1, "", 1
    if tex.startswith(r"\multicolumn{"):
        (count, specification, tex), _ = _groups(tex, 3)
        columns, align = int(count), _alignment(specification)
    if tex.startswith(r"\multirow{"):
        (count, _, tex), rest = _groups(tex, 3)
        rows, tex = int(count), tex + rest
    return _Cell(text=text.html(tex), columns=columns, rows=rows, align=align)


def _groups(tex: str, n: int) -> tuple[list[str], str]:
    found, at = [], tex.index("{")
    for _ in range(n):
        content, at = group(tex, at)
        found.append(content)
    return found, tex[at:]


def _is_heading(row: _Row, n_columns: int) -> bool:
    return len(row.cells) == 1 and row.cells[0].columns >= n_columns > 1


def _lines(section: Sequence[_Row], align: str, *, head: bool) -> Iterator[str]:
    """Yield one <tr> a row. A cell that spans rows takes the place of the empty ones below it, and of no others."""
    labels = max(1, len(align) - len(align.lstrip("l")))  # columns that say what a row is
    covered: dict[int, int] = {}
    for number, row in enumerate(section):
        cells = []
        for column, cell in row.cells.items():
            if covered.get(column, 0) > number:
                continue
            rows = 1 + _empty_below(section, number, column, cell.rows - 1)
            covered[column] = number + rows
            if head:
                kind = "head"
            elif _is_heading(row, len(align)):
                kind = "heading"
            else:
                kind = "label" if column < labels else "value"
            side = cell.align or align[column : column + 1]
            cells.append(_element(cell, rows, kind, {"l": "left", "p": "left", "r": "right"}.get(side, "")))
        start = '<tr class="apart">' if row.apart else "<tr>"
        yield f"{start}{''.join(cells)}</tr>"


def _empty_below(section: Sequence[_Row], number: int, column: int, most: int) -> int:
    n = 0
    for row in section[number + 1 : number + 1 + most]:
        if column not in row.cells or row.cells[column].text:
            break
        n += 1
    return n


def _element(cell: _Cell, rows: int, kind: str, side: str) -> str:
    if kind == "value" or not cell.text:
        name, scope = "td", ""
    elif kind == "head":
        name, scope = "th", "colgroup" if cell.columns > 1 else "col"
    else:
        name, scope = "th", "rowgroup" if rows > 1 or kind == "heading" else "row"
    words = [side] if side else []
    if kind == "value" and cell.text == "—":
        words.append("undefined")
    elif kind == "value" and "†" in cell.text:
        words.append("underpowered")
    attributes = {
        "scope": scope,
        "colspan": str(cell.columns) if cell.columns > 1 else "",
        "rowspan": str(rows) if rows > 1 else "",
        "class": " ".join(words),
    }
    written = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items() if value)
    return f"<{name}{written}>{cell.text}</{name}>"
