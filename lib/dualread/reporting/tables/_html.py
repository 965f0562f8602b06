"""Tables as HTML: captions, headings, spans and the text of every cell. Rules and distances are for the style sheet."""

import html
from collections.abc import Iterator, Sequence

from dualread.reporting.tables._inline import inline_html
from dualread.reporting.tables._structure import Beside, Entry, Float, Gap, Heading, Line, Over, Raised, Row, TwoLines
from dualread.reporting.tables.format import DASH

_SIDES = {"l": "left", "p": "left", "r": "right"}  # a cell without a class is centered


def html_table(table: Float) -> str:
    """Return a complete <table>."""
    parts = ["<table>", f"<caption><span>{inline_html(table.caption)}</span></caption>"]
    if table.head:
        parts += ["<thead>", *_rows(table.head, table.columns, is_head=True), "</thead>"]
    for section in _sections(table.body):
        parts += ["<tbody>", *_rows(section, table.columns, is_head=False), "</tbody>"]
    return "\n".join([*parts, "</table>"])


def _sections(body: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Yield the lines between rules."""
    rules = [k for k, line in enumerate(body) if line is Gap.RULE]
    for start, end in zip([0, *(k + 1 for k in rules)], [*rules, len(body)], strict=True):
        if start < end:
            yield body[start:end]


def _rows(lines: Sequence[Line], columns: str, *, is_head: bool) -> Iterator[str]:
    """Yield one <tr> per row or heading. A label beside several rows takes the empty places below it."""
    covered = dict.fromkeys(range(len(columns)), 0)  # how many rows below a label still takes, by column
    start = "<tr>"
    for line in lines:
        if isinstance(line, Gap):
            start = '<tr class="apart">'
            continue
        cells = [_heading(line)] if isinstance(line, Heading) else _cells(line, columns, covered, is_head=is_head)
        yield f"{start}{''.join(cells)}</tr>"
        start = "<tr>"


def _heading(line: Heading) -> str:
    attributes = {"scope": "rowgroup", "colspan": line.columns, "class": "left"}
    return _element("th", f"<em>{html.escape(line.label, quote=False)}</em>", attributes)


def _cells(row: Row, columns: str, covered: dict[int, int], *, is_head: bool) -> Iterator[str]:
    n_labels = max(1, len(columns) - len(columns.lstrip("l")))  # the columns that say what a row is
    column = 0
    for entry in row.cells:
        if covered[column]:
            covered[column] -= 1
        else:
            width, height = getattr(entry, "columns", 1), getattr(entry, "rows", 1)
            covered[column] = height - 1
            side = "" if width > 1 else _SIDES.get(columns[column], "")
            kind = "head" if is_head else "label" if column < n_labels else "value"
            yield _cell(entry, kind, side, width, height)
            column += width - 1
        column += 1


def _cell(entry: Entry, kind: str, side: str, width: int, height: int) -> str:
    text, classes = _text(entry), [side] if side else []
    if kind == "value" and entry == DASH:
        classes.append("undefined")
    elif kind == "value" and "†" in text:
        classes.append("underpowered")
    scope = ""
    if kind == "head":
        scope = "colgroup" if width > 1 else "col"
    elif kind == "label":
        scope = "rowgroup" if height > 1 else "row"
    tag = "th" if scope and text else "td"
    spans = {"colspan": width if width > 1 else "", "rowspan": height if height > 1 else ""}
    return _element(tag, text, {"scope": scope if text else "", **spans, "class": " ".join(classes)})


def _element(tag: str, content: str, attributes: dict[str, str | int]) -> str:
    written = "".join(f' {name}="{value}"' for name, value in attributes.items() if value)
    return f"<{tag}{written}>{content}</{tag}>"


def _text(entry: Entry) -> str:
    if isinstance(entry, str):
        return inline_html(entry)
    if isinstance(entry, Over | Beside | Raised):
        return inline_html(entry.text)
    if isinstance(entry, TwoLines):
        return f"{inline_html(entry.upper)}<br>{inline_html(entry.lower)}"
    words = [html.escape(word, quote=False) for word in entry.label.split()]
    return (" " if entry.rows < len(words) else "<br>").join(words)
