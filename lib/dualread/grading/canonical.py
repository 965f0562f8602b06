"""Decide which answers are equal and which questions are the same, by rules on their text alone.

Two answers are equal if and only if their canonical forms are. To find the canonical form of an answer:

1. Write characters that differ in type only in one way (`typography`), convert to lower case and replace every run of
   white space by one space.
2. Split the text into items, at commas, semicolons, `&` and the word "and".
3. From each item, trim punctuation at both ends and drop one leading article (a, an, the).
4. Replace each word by its singular.
5. Replace an item that the frozen table `equivalences.json` lists by its standard form ("ct scan" by "ct").
6. Drop empty and repeated items, sort the others and join them with ", ".

So items compare as a set: their order does not matter. "Left" and "right" are ordinary words and stay different.

The paper leaves some cases open. These are the decisions:

- `typography` says which characters differ in type only. Superscripts do not: "10²" is not "102".
- A comma between two digits separates nothing. "Liver and Heart" equals "Heart, Liver".
- Punctuation is every character of the Unicode categories P* and every ASCII symbol except `+ < = >`, which can be part
  of a quantity. It is trimmed at the ends of an item only, not inside.
- A minus sign or a decimal point directly before a digit belongs to the number: "-5" is not "5", and ".5 cm" is not
  "5 cm". Any dash in this place is a minus sign. A dash before a space or a letter is a bullet; two dashes or several
  points in a row are punctuation.
- Numbers are compared as text: ".5" is not "0.5", "+5" is not "5", and "1,000" is not "1000". The percent sign is
  punctuation, so "5%" equals "5".
- "A" alone is the letter of an option, not an article. Of two articles in a row, one is dropped.
- `singular.json` has the rules of the singular and their exceptions. A rule holds for words of more than four letters
  that end as it says; the longest ending counts. Other words lose their -s. Words of up to three letters, and those in
  -ss, -us, -is and -'s, have no other singular.
- Equivalences replace whole items, never a part of an item.
"""

import json
import re
import string
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from dualread import source_snapshot as source_snapshot
from dualread.errors import ConfigError
from dualread.grading.typography import untyped

DATA_FILES = ("grading/equivalences.json", "grading/singular.json")

_BEGINS_NUMBER = re.compile(r"(?<!-)-(?=\.?[0-9])|(?<!\.)\.(?=[0-9])")
_ARTICLE = re.compile(r"^(?:an?|the) (?=\S)")
_SEPARATOR = re.compile(r"(?<![0-9]),|,(?![0-9])|;|(?:^| |(?<=[,;]))(?:and|&)(?=[ ,;]|$)")


@lru_cache(maxsize=1 << 16)
def canonical(answer: str) -> str:
    """Return the canonical form of an answer. Two answers are equal if and only if their canonical forms are.

    Args:
        answer: Any text.

    Returns:
        The canonical form (see the steps above); "" if the answer holds nothing but punctuation, separators and white
            space. The canonical form of a canonical form is itself, unless a second article begins one of its items.
    """
    items = (_folded(item) for item in _SEPARATOR.split(_normalized(answer)))
    forms = {_equivalences().get(item, item) for item in items}
    return ", ".join(sorted(forms - {""}))


@lru_cache(maxsize=1 << 16)
def question_key(question: str) -> str:
    """Return the normalized text of a question. Questions with equal keys count as the same question.

    The key is the text without differences in type, in lower case, without punctuation, and with one space for every
    run of white space. Punctuation marks are removed, not replaced by spaces: "x-ray" and "xray" have the same key.
    Articles and plurals stay.

    Args:
        question: Any text.

    Returns:
        The key; "" if the question holds nothing but punctuation and white space.
    """
    kept = "".join(character for character in _normalized(question) if not _is_punctuation(character))
    return " ".join(kept.split())


def is_correct(answer: str | None, references: Sequence[str]) -> bool:
    """Return whether an answer equals one of the gold answers, in canonical form.

    Args:
        answer: The parsed answer; None if the completion has no valid answer.
        references: The gold answers, verbatim. One match is enough.

    Returns:
        True if the canonical answer is not empty and equals the canonical form of at least one reference. False
            otherwise, in particular for None, for an answer whose canonical form is "", and without references. An
            empty reference therefore never matches.
    """
    form = "" if answer is None else canonical(answer)
    return form != "" and any(form == canonical(reference) for reference in references)


def _normalized(text: str) -> str:
    return " ".join(untyped(text).lower().split())


def _folded(item: str) -> str:
    text = _trimmed(_ARTICLE.sub("", _trimmed(item), count=1))
    return " ".join(_singular(word) for word in text.split())


def _trimmed(text: str) -> str:
    """Strip punctuation, white space and "and" beside them from both ends, up to a number's sign or decimal point."""
    start, end = 0, len(text)
    while start < end:
        if _is_trimmed(text[start]) and not _BEGINS_NUMBER.match(text, start):
            start += 1
        elif text.startswith("and", start, end) and text[start + 3 : start + 4] in ("", " "):
            start += 3
        else:
            break
    while end > start:
        if _is_trimmed(text[end - 1]):
            end -= 1
        elif text.endswith(" and", start, end):
            end -= 4
        else:
            break
    return text[start:end]


def _is_trimmed(character: str) -> bool:
    return character.isspace() or _is_punctuation(character)


@lru_cache(maxsize=1 << 12)
def _is_punctuation(character: str) -> bool:
    if character in "+<=>":
        return False
    return character in string.punctuation or unicodedata.category(character).startswith("P")


@lru_cache(maxsize=1 << 16)
def _singular(word: str) -> str:
    rules = _singular_rules()
    start, hyphen, last = word.rpartition("-")
    if last in rules["irregular"]:
        return f"{start}{hyphen}{rules['irregular'][last]}"
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")) or last in rules["unchanged"]:
        return word
    if _is_punctuation(word[-2]):  # "patient's", "mg/s"
        return word
    lengths = range(min(rules["longest"], len(word)), 0, -1) if len(word) > 4 else ()
    size = next((length for length in lengths if word[-length:] in rules["endings"]), None)
    return _singular(word[:-1] if size is None else word[:-size] + rules["endings"][word[-size:]])


@cache
def _equivalences() -> dict[str, str]:
    forms, where = _read("equivalences.json")["forms"], "grading/equivalences.json"
    form_of: dict[str, str] = {}
    for item, form in ((item, key) for key, variants in forms.items() for item in (key, *variants)):
        if len(parts := _SEPARATOR.split(_normalized(item))) > 1:
            raise ConfigError(
                f"{where}: {item!r} is never looked up, because answers are split at commas, semicolons, `&` and"
                f' "and" first. Write {" and ".join(repr(_folded(part)) for part in parts)} as items of their own.'
            )
        if item != (looked_up := _folded(_normalized(item))):
            raise ConfigError(f"{where}: {item!r} is never looked up. Write it as {looked_up!r}.")
        if form_of.setdefault(item, form) != form:
            raise ConfigError(f"{where}: {item!r} has the forms {form_of[item]!r} and {form!r}. Leave it under one.")
    return form_of


@cache
def _singular_rules() -> dict:
    rules = _read("singular.json")
    longest = max(map(len, rules["endings"]), default=0)
    return {**rules, "unchanged": frozenset(rules["unchanged"]), "longest": longest}


def _read(name: str) -> dict:
    return json.loads(source_snapshot.read(Path(__file__).with_name(name)))
