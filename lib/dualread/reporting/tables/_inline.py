"""The text of a cell or a caption as HTML.

Texts are written in LaTeX's notation, since most hold formulas. The notation is small and closed: a command outside it,
which only the config can bring in (`cost` of a method), is shown as it is written.
"""

import html
import re

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


def inline_html(text: str) -> str:
    """Return `text`, in LaTeX's notation, as HTML."""
    return _Reading(text).until("").strip()


class _Reading:
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
