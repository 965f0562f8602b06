"""Tables as HTML: captions, headings, spans and the text of every cell. Rules and distances are for the style sheet."""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby

from dualread.reporting.tables import entries

_SIDES = {"l": "left", "p": "left", "r": "right"}  # a cell without a class is centered
_ITALICS = re.compile("[\U0001d434-\U0001d467]+")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ʳᵉᵃˡʰⁿ†°]+")
_SPACES = str.maketrans({"\N{NO-BREAK SPACE}": "&nbsp;", "\N{THIN SPACE}": "&thinsp;", "\N{EM SPACE}": "&emsp;"})


def html_table(table: entries.Float) -> str:
    """Return a complete <table>."""
    parts = ["<table>", f"<caption><span>{text(table.caption)}</span></caption>"]
    if table.head:
        parts += ["<thead>", *_rows(table.head, table.columns, is_head=True), "</thead>"]
    for is_rule, section in groupby(table.body, lambda line: line is entries.Gap.RULE):
        if not is_rule:
            parts += ["<tbody>", *_rows(section, table.columns, is_head=False), "</tbody>"]
    return "\n".join([*parts, "</table>"])


def text(words: str) -> str:
    """Return a text as HTML."""
    written = html.escape(words, quote=False)
    written = _ITALICS.sub(lambda match: f"<i>{unicodedata.normalize('NFKC', match[0])}</i>", written)
    written = _RAISED.sub(lambda match: f"<sup>{unicodedata.normalize('NFKC', match[0])}</sup>", written)
    return written.translate(_SPACES).strip()


def _rows(lines: Iterable[entries.Line], columns: str, *, is_head: bool) -> Iterator[str]:
    """Yield one <tr> per row or heading. A label beside several rows takes the empty places below it."""
    covered = dict.fromkeys(range(len(columns)), 0)  # how many rows below a label still takes, by column
    start = "<tr>"
    for line in lines:
        if isinstance(line, entries.Gap):
            start = '<tr class="apart">'
            continue
        if isinstance(line, entries.Heading):
            attributes = {"scope": "rowgroup", "colspan": line.columns, "class": "left"}
            cells = [_element("th", f"<em>{text(line.label)}</em>", attributes)]
        else:
            cells = _cells(line, columns, covered, is_head=is_head)
        yield f"{start}{''.join(cells)}</tr>"
        start = "<tr>"


def _cells(row: entries.TableRow, columns: str, covered: dict[int, int], *, is_head: bool) -> Iterator[str]:
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


def _cell(entry: entries.Entry, kind: str, side: str, width: int, height: int) -> str:
    content, classes = _entry(entry), [side] if side else []
    if kind == "value" and entry == entries.DASH:
        classes.append("undefined")
    elif kind == "value" and "†" in content:
        classes.append("underpowered")
    scope = ""
    if kind == "head":
        scope = "colgroup" if width > 1 else "col"
    elif kind == "label":
        scope = "rowgroup" if height > 1 else "row"
    spans = {"colspan": width if width > 1 else "", "rowspan": height if height > 1 else ""}
    attributes = {"scope": scope if content else "", **spans, "class": " ".join(classes)}
    return _element("th" if scope and content else "td", content, attributes)


def _element(tag: str, content: str, attributes: dict[str, str | int]) -> str:
    written = "".join(f' {name}="{value}"' for name, value in attributes.items() if value)
    return f"<{tag}{written}>{content}</{tag}>"


def _entry(entry: entries.Entry) -> str:
    match entry:
        case entries.Number():
            mean = f"<b>{entry.mean}</b>" if entry.is_bold else entry.mean
            spread = entry.spread and f"<sub>±{entry.spread}</sub>"
            few = entry.short and f"<sup>†{entry.short}</sup>"
            return f"{mean}{spread}{few}{'<sup>°</sup>' * entry.by_chance}".replace("-", "−")
        case entries.Interval():
            return f"[{entry.low},&thinsp;{entry.high}]".replace("-", "−")
        case entries.PValues():
            return f"({';&thinsp;'.join(map(html.escape, entry.texts))})"
        case entries.Joined():
            return "".join(map(_entry, entry.parts))
        case entries.Code():
            return f"<code>{html.escape(entry.text)}</code>"
        case entries.TwoLines():
            return f"{_entry(entry.upper)}<br>{_entry(entry.lower)}"
        case entries.Beside(by_word=True):
            words = [text(word) for word in entry.text.split()]
            return (" " if entry.rows < len(words) else "<br>").join(words)
        case str():
            return text(entry)
    return text(entry.text)
