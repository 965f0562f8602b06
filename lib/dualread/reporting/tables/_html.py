"""Tables as HTML: captions, headings, spans and the text of every cell. Rules and distances are for the style sheet.

Texts are written in LaTeX's notation, since most hold formulas. The notation is small and closed: a command outside it,
which only the config can bring in (`cost` of a method), is shown as it is written.
"""

import html
import re
from collections.abc import Iterator, Sequence

from dualread.reporting.tables._latex import Beside, Entry, Float, Gap, Heading, Line, Over, Raised, TableRow, TwoLines
from dualread.reporting.tables.format import DASH

_SIDES = {"l": "left", "p": "left", "r": "right"}  # a cell without a class is centered
_TOKEN = re.compile(r"\\[A-Za-z]+\s*|\\.|---|--|-|\{,\}|[{}$&^_~]|[^\\{}$&^_~-]+|.", re.DOTALL)
_SYMBOLS = {
    **{
        r"\alpha": "α",
        r"\beta": "β",
        r"\gamma": "γ",
        r"\kappa": "κ",
        r"\lambda": "λ",
        r"\rho": "ρ",
        r"\tau": "τ",
        r"\Delta": "Δ",
    },
    **{r"\pm": "±", r"\times": "×", r"\le": "≤", r"\ge": "≥", r"\surd": "✓", r"\dagger": "†", r"\circ": "°"},
    **{r"\uparrow": "↑", r"\downarrow": "↓", r"\ldots": "…", r"\cdot": "·", r"\approx": "≈"},
    **{r"\textbackslash": "\\", r"\textasciitilde": "~", r"\textasciicircum": "^"},
    **{r"\textless": "&lt;", r"\textgreater": "&gt;"},
    **{r"\quad": "&emsp;", r"\,": "&thinsp;", r"\!": "", r"\ ": " "},
    **{f"\\{character}": html.escape(character) for character in "&%$#_{}"},
}
_ELEMENTS = {r"\mathbf": "b", r"\textbf": "b", r"\emph": "em", r"\textit": "em", r"\texttt": "code"}
_SCRIPT = {"E": "ℰ", "D": "𝒟", "P": "𝒫", "L": "ℒ"}  # \mathcal


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
        if isinstance(line, Heading):
            attributes = {"scope": "rowgroup", "colspan": line.columns, "class": "left"}
            cells = [_element("th", f"<em>{html.escape(line.label, quote=False)}</em>", attributes)]
        else:
            cells = _cells(line, columns, covered, is_head=is_head)
        yield f"{start}{''.join(cells)}</tr>"
        start = "<tr>"


def _cells(row: TableRow, columns: str, covered: dict[int, int], *, is_head: bool) -> Iterator[str]:
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


def inline_html(text: str) -> str:
    """Return `text`, in LaTeX's notation, as HTML."""
    return _Conversion(text).until("").strip()


class _Conversion:
    """One pass over a text."""

    def __init__(self, tex: str) -> None:
        self._tex, self._at = tex, 0

    def until(self, end: str, *, math: bool = False, upright: bool = False) -> str:
        """Convert up to the token `end`, which is consumed, or to the end of the text."""
        parts = []
        while self._at < len(self._tex) and (token := self._token()) != end:
            parts.append(self._converted(token, math=math, upright=upright))
        return "".join(parts)

    def _token(self) -> str:
        match = _TOKEN.match(self._tex, self._at)
        assert match is not None
        self._at = match.end()
        token = match[0]
        return token.rstrip() if len(token) > 2 and token.startswith("\\") else token

    def _argument(self, *, math: bool, upright: bool = False) -> str:
        """Convert the group that follows, or one character or command."""
        while self._tex[self._at : self._at + 1].isspace():
            self._at += 1
        first = self._tex[self._at : self._at + 1]
        if first == "{":
            self._at += 1
            return self.until("}", math=math, upright=upright)
        if first == "\\":
            return self._converted(self._token(), math=math, upright=upright)
        self._at += 1
        return _letters(first, math=math, upright=upright)

    def _converted(self, token: str, *, math: bool, upright: bool) -> str:
        if token == "}":
            return ""
        if token == "{":
            return self.until("}", math=math, upright=upright)
        if token == "{,}":
            return ","  # between the digits of a number
        if token == "$":
            return self.until("$", math=True)
        if token in ("^", "_") and math:
            element = "sup" if token == "^" else "sub"
            return f"<{element}>{self._argument(math=True)}</{element}>"
        if token.startswith("\\"):
            return self._command(token, math=math)
        if token == "~":
            return "&nbsp;"
        if token.startswith("-"):
            return "−" * len(token) if math else {"---": "—", "--": "–", "-": "-"}[token]
        return _letters(token, math=math, upright=upright)

    def _command(self, token: str, *, math: bool) -> str:
        if token in _SYMBOLS:
            return _SYMBOLS[token]
        if token in _ELEMENTS:
            return f"<{_ELEMENTS[token]}>{self._argument(math=math)}</{_ELEMENTS[token]}>"
        if token in (r"\mathrm", r"\text", r"\textrm"):
            return self._argument(math=math, upright=True)
        if token == r"\mathcal":
            letter = self._argument(math=math, upright=True)
            return _SCRIPT.get(letter, letter)
        return f"<code>{html.escape(token)}</code>"


def _letters(text: str, *, math: bool, upright: bool) -> str:
    """Return characters as HTML; in a formula spaces mean nothing and letters are variables."""
    if not math:
        return html.escape(text, quote=False).replace("''", "”")
    text = html.escape("".join(text.split()), quote=False).replace(",", ",&thinsp;")
    return text if upright else re.sub(r"(?<![&\w])[A-Za-z]+(?!\w*;)", r"<i>\g<0></i>", text)
