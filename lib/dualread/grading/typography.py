"""Write characters that differ in type only in one way.

The form is Unicode NFKC, with these decisions:

- Hyphens, dashes and minus signs are `-`. Apostrophes, single quotation marks, primes, and accents without a letter are
  `'`; double quotation marks and double primes are `"`.
- Zero-width characters, soft hyphens, the byte order mark, marks of direction, variation selectors, and control
  characters that are no white space vanish.
- Decimal digits of any script, circled ones included, are 0 to 9.
- Superscript and subscript digits and signs stay what they are, because "10²" is not "102".
- A fraction of one character is its digits behind a space: "1½" is "1 1/2", and not "11/2".
"""

import unicodedata
from itertools import groupby

_APOSTROPHES = "`\u00b4\u02b9\u02bb\u02bc\u02bd\u055a\u05f3\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a"
_QUOTES = "\u00ab\u00bb\u02ba\u02ee\u05f4\u201c\u201d\u201e\u201f\u2033\u2036\u275d\u275e\u301d\u301e\u301f"
_DASHES = "\u02d7\u2043\u2212"  # and the category Pd
_SEEN = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u08e2"  # of the category Cf, but not invisible
_UNSEEN = "\u034f\u115f\u1160\u3164\uffa0"  # of other categories
_SHORT = 10_000  # characters
_MOST_MARKS = 30  # as in Unicode's stream-safe text format
_VARIATION_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def untyped(text: str) -> str:
    """Return the text without differences in type; white space stays as it is, but for no-break and similar spaces.

    The result for a result is itself.
    """
    if text.isascii() and text.isprintable() and "`" not in text:
        return text
    text = text.translate(_CHARACTERS)
    if len(text) > _SHORT:
        # A run of combining marks is cut to 30, which no language exceeds: to order n of them takes n^2 steps.
        runs = (list(run) for _, run in groupby(text, lambda character: unicodedata.combining(character) > 0))
        text = "".join("".join(run[:_MOST_MARKS] if unicodedata.combining(run[0]) else run) for run in runs)
    return unicodedata.normalize("NFC", text)


class _Characters(dict[int, str]):
    """{code point: what it becomes}, for `str.translate`; found when a character is met first."""

    def __missing__(self, code: int) -> str:
        """Return what the character becomes, in Unicode NFKD except for superscript and subscript digits and signs."""
        self[code] = became = self._became(chr(code))
        return became

    def _became(self, character: str) -> str:
        category = unicodedata.category(character)
        if character in _APOSTROPHES:
            return "'"
        if character in _QUOTES:
            return '"'
        if category == "Pd" or character in _DASHES:
            return "-"
        if (
            category in ("Cc", "Cf")
            or character in _UNSEEN
            or any(ord(character) in selectors for selectors in _VARIATION_SELECTORS)
        ):
            return character if character.isspace() or character in _SEEN else ""
        if category == "Nd":
            return str(unicodedata.decimal(character))
        kind, *parts = unicodedata.decomposition(character).split() or [""]
        if kind in ("<super>", "<sub>") and not chr(int(parts[0], 16)).isalpha():
            return character
        if not kind:
            return "/" if character == "\u2044" else unicodedata.normalize("NFKD", character)
        decomposed = "".join(self[int(part, 16)] for part in (parts if kind.startswith("<") else (kind, *parts)))
        return f" {decomposed}" if kind == "<fraction>" else decomposed  # 1 and a half is not 11 halves


_CHARACTERS = _Characters()
