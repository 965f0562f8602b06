"""The text inside our tables, LaTeX to HTML: a closed vocabulary; a command outside it is shown as it is."""

import html
import re
from collections.abc import Iterator

_TOKEN = re.compile(r"%[^\n]*\n?|\\[A-Za-z]+\s*|\\.|---|--|-|\{,\}|[{}$&^_~]|[^\\{}$&^_~%-]+|.", re.DOTALL)
_OPTION = re.compile(r"\s*\[[^\]]*\]")
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
    **{r"\pm": "±", r"\times": "×", r"\le": "≤", r"\ge": "≥", r"\surd": "✓", r"\dagger": "†"},
    **{r"\uparrow": "↑", r"\downarrow": "↓", r"\ldots": "…", r"\cdot": "·", r"\approx": "≈"},
    **{r"\textbackslash": "\\", r"\textasciitilde": "~", r"\textasciicircum": "^"},
    **{r"\textless": "&lt;", r"\textgreater": "&gt;"},
    **{r"\quad": "&emsp;", r"\,": "&thinsp;", r"\!": "", r"\ ": " "},
    **{f"\\{character}": html.escape(character) for character in "&%$#_{}"},
}
_ELEMENTS = {r"\mathbf": "b", r"\textbf": "b", r"\emph": "em", r"\textit": "em", r"\texttt": "code"}
_SCRIPT = {"E": "ℰ", "D": "𝒟", "P": "𝒫", "L": "ℒ"}  # \mathcal


class TextConverter:
    """Converts pieces of one document and remembers the commands that it does not know, in the order of their use."""

    def __init__(self) -> None:
        self.unknown: dict[str, None] = {}

    def html(self, tex: str) -> str:
        """Return `tex`, text mode, as HTML."""
        return _Reading(tex, self.unknown).until("").strip()


class _Reading:
    """One pass over a text."""

    def __init__(self, tex: str, unknown: dict[str, None]) -> None:
        self._tex, self._at, self._unknown = tex, 0, unknown

    def until(self, end: str, *, math: bool = False, upright: bool = False) -> str:
        """Convert up to the token `end`, which is consumed, or to the end of the text."""
        parts = []
        while self._at < len(self._tex) and (token := self._token()) != end:
            parts.append(self._converted(token, math=math, upright=upright))
        return "".join(parts)

    def _token(self) -> str:
        found = _TOKEN.match(self._tex, self._at)
        assert found is not None
        self._at = found.end()
        token = found[0]
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
        if token.startswith("%") or token == "}":
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
        if token == "\\\\":
            self._skip_option()
            return "<br>"
        if token in _SYMBOLS:
            return _SYMBOLS[token]
        if token in _ELEMENTS:
            return f"<{_ELEMENTS[token]}>{self._argument(math=math)}</{_ELEMENTS[token]}>"
        if token in (r"\mathrm", r"\text", r"\textrm"):
            return self._argument(math=math, upright=True)
        if token == r"\mathcal":
            letter = self._argument(math=math, upright=True)
            return _SCRIPT.get(letter, letter)
        if token in (r"\shortstack", r"\raisebox"):
            if token == r"\raisebox":
                self._argument(math=False)  # how high
            self._skip_option()
            return self._argument(math=False)
        self._unknown[token] = None
        return f"<code>{html.escape(token)}</code>"

    def _skip_option(self) -> None:
        if found := _OPTION.match(self._tex, self._at):
            self._at = found.end()


def _letters(text: str, *, math: bool, upright: bool) -> str:
    """Return characters as HTML; in a formula spaces mean nothing and letters are variables."""
    if not math:
        return html.escape(text, quote=False).replace("''", "”")
    text = html.escape("".join(text.split()), quote=False).replace(",", ",&thinsp;")
    return text if upright else re.sub(r"(?<![&\w])[A-Za-z]+(?!\w*;)", r"<i>\g<0></i>", text)


def group(tex: str, at: int) -> tuple[str, int]:
    """Return the content of the braces that open at `at`, after spaces, and the position behind them.

    Raises:
        ValueError: No brace opens there, or it is not closed.
    """
    at += len(tex[at:]) - len(tex[at:].lstrip())
    if tex[at : at + 1] != "{":
        raise ValueError(f"expected {{ at {tex[at : at + 20]!r}")
    depth = 0
    for found in _TOKEN.finditer(tex, at):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return tex[at + 1 : found.start()], found.end()
    raise ValueError(f"no }} closes {tex[at : at + 20]!r}")


def split(tex: str, separator: str) -> Iterator[str]:
    """Yield the parts of `tex` between every `separator`, a token, that stands in no braces."""
    depth = start = 0
    for found in _TOKEN.finditer(tex):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if found[0] == separator and depth == 0:
            yield tex[start : found.start()]
            start = found.end()
    yield tex[start:]
