"""Bring answers and questions to the form in which they are compared. Pure, deterministic, no model.

An answer: Unicode NFKC, lower case, white space collapsed, split into items, and for every item: punctuation trimmed,
one leading article dropped, each word folded to the singular, then the frozen table `equivalences.json`. Several items
compare as a set, whatever their order. Left and right are ordinary words and never collapsed.

What the paper leaves open, decided here:
- Items are separated by a comma (not between two digits), a semicolon, `&` or the word `and`: "Liver and Heart" is
  "Heart, Liver". Sets of one and the same item are that item.
- Punctuation is the Unicode categories P* and the ASCII symbols, except `+ < = >`, which can carry a quantity's
  meaning. It is trimmed at the ends of an item and stays inside words.
- A minus sign or a decimal point directly before a digit belongs to the number: "-5" is not "5", ".5 cm" is not "5 cm".
  A hyphen, a figure dash or an en dash is a minus sign there, as U+2212 is. A dash before a space or a letter is a
  bullet, and two dashes or several points in a row are punctuation. Numbers are not calculated with: ".5" is not "0.5",
  "+5" not "5", "1,000" not "1000"; the per cent sign is punctuation.
- "A" alone is not an article but an option's letter. The fold leaves words of up to three letters alone.
- Equivalences replace whole items, never a part of one.
"""

import json
import re
import string
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

DATA_FILES = ("grading/equivalences.json", "grading/singular.json")

# Hyphen-minus, hyphen (the non-breaking one in NFKC), figure dash, en dash, minus sign.
_MINUS = "-\u2010\u2012\u2013\u2212"
_BEGINS_NUMBER = re.compile(rf"(?<![{_MINUS}])[{_MINUS}](?=\.?\d)|(?<!\.)\.(?=\d)")
_ARTICLE = re.compile(r"^(?:an?|the) (?=\S)")
_SEPARATOR = re.compile(r"(?<![0-9]),|,(?![0-9])|;|(?:^| )(?:and|&)(?= |$)")


@lru_cache(maxsize=1 << 16)
def canonical(answer: str) -> str:
    """Return the canonical form of an answer; "" when nothing but punctuation and white space is left."""
    items = {_item(item) for item in _SEPARATOR.split(_normalized(answer))}
    return ", ".join(sorted(items - {""}))


@lru_cache(maxsize=1 << 16)
def question_key(question: str) -> str:
    """Return the normalized question: NFKC, lower case, every punctuation mark dropped, white space collapsed.

    A mark is dropped, not replaced by a space: "x-ray" and "xray" ask the same.
    """
    kept = "".join(character for character in _normalized(question) if not _is_punctuation(character))
    return " ".join(kept.split())


def is_correct(answer: str | None, references: Sequence[str]) -> bool:
    """Tell whether the canonical answer is non-empty and equals the canonical form of one of the gold answers."""
    form = "" if answer is None else canonical(answer)
    return form != "" and any(form == canonical(reference) for reference in references)


def _normalized(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def _item(item: str) -> str:
    text = _trimmed(_ARTICLE.sub("", _trimmed(item), count=1))
    folded = " ".join(_singular(word) for word in text.split())
    return _equivalences().get(folded, folded)


def _trimmed(text: str) -> str:
    """Strip punctuation and white space from both ends, up to the sign or decimal point that begins a number."""
    start, end = 0, len(text)
    while start < end and _is_trimmed(text[start]) and not _BEGINS_NUMBER.match(text, start):
        start += 1
    while end > start and _is_trimmed(text[end - 1]):
        end -= 1
    is_negative = text[start:end][:1] in tuple(_MINUS) and _BEGINS_NUMBER.match(text, start)
    return f"-{text[start + 1 : end]}" if is_negative else text[start:end]


def _is_trimmed(character: str) -> bool:
    return character.isspace() or _is_punctuation(character)


@lru_cache(maxsize=1 << 12)
def _is_punctuation(character: str) -> bool:
    if character in "+<=>":
        return False
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def _singular(word: str) -> str:
    guards = _singular_guards()
    if word in guards["irregular"]:
        return guards["irregular"][word]
    if len(word) <= 3 or word.endswith(("ss", "us", "is", "'s", "’s")) or word in guards["unchanged"]:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") else word


@cache
def _equivalences() -> dict[str, str]:
    forms = _read("equivalences.json")["forms"]
    return {variant: form for form, variants in forms.items() for variant in variants}


@cache
def _singular_guards() -> dict:
    guards = _read("singular.json")
    return {"irregular": guards["irregular"], "unchanged": frozenset(guards["unchanged"])}


def _read(name: str) -> dict:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
