"""Find the option of a multiple-choice question that a text names: by its text, its letter, or its number.

Options have the letters A, B, C, ... in their order. A column of gold answers names all options in one way (`WAYS`),
because "1" alone may be the first option, the second, or the text of one.
"""

import re
import string
from collections.abc import Callable, Mapping, Sequence

from dualread.grading.canonical import canonical, question_key

# "A", "(a)", "[B]", "C.", "Option D", "The answer is (A)", and what follows the letter behind a separator.
_LETTER = re.compile(
    r"(?:(?:the )?(?:(?:correct|right|best|final) )?(?:answer|option|choice)(?: is)?:? )?"
    r"(?:[(\[{] ?)?(?P<letter>[A-Z])(?: ?[)\]}][.:]?|[.:,]| [-\u2013\u2014] |$)(?P<rest>.*)",
    re.IGNORECASE,
)
_MARKUP = str.maketrans("", "", '*_`"')
_ARTICLE = re.compile(r"^(?:an?|the) ")


def choices_by_name(options: Sequence[str], answer_type: str | None) -> dict[str, str]:
    """Return a question's choices by name: options by their letters, or yes and no of a closed one without any."""
    if options:
        return dict(zip(string.ascii_uppercase, options, strict=False))
    return {"yes": "yes", "no": "no"} if answer_type == "closed" else {}


def option_of(text: str, options: Sequence[str], *, letters_first: bool = False) -> int | None:
    """Return the place of the option that an answer names; None if it names none, or if two fit.

    An answer names an option by its text (in canonical form); by its letter ("A", "(a)", "B.", "Option C", "The answer
    is D"); or by its letter and its text ("A. liver", "(B) The kidney, because ..."). What stands behind a letter has
    to begin with the option's text, so that "C. difficile" is not option C. Numbers are texts here. There are at most
    26 options, "" where there is none. With `letters_first`, "A" is the first option even if it is the text of another
    one, as in harnesses that ask for letters; otherwise the text of an option comes first.
    """
    ways = (_by_letter, _by_text) if letters_first else (_by_text, _by_letter)
    return next((place for way in ways if (place := way(text, options)) is not None), None)


def name_of(options: Sequence[str], place: int) -> str:
    """Return the text by which an option is compared with others: its own, with its letter where this is not enough.

    That is where two options have one canonical form, or the text of one is the letter of another.
    """
    forms = [canonical(option) for option in options if option.strip()]
    letters = string.ascii_lowercase[: len(options)]
    plain = len(set(forms)) == len(forms) and not any(len(form) == 1 and form in letters for form in forms)
    return options[place] if plain else f"({string.ascii_uppercase[place]}) {options[place]}"


def _by_text(text: str, options: Sequence[str]) -> int | None:
    exact = [place for place, option in enumerate(options) if option.strip() and option.strip() == text.strip()]
    form = canonical(text)
    equal = exact or [place for place, option in enumerate(options) if form and canonical(option) == form]
    return equal[0] if len(equal) == 1 else None


def _by_letter(text: str, options: Sequence[str]) -> int | None:
    if (match := _LETTER.fullmatch(" ".join(text.translate(_MARKUP).split()))) is None:
        return None
    place = string.ascii_uppercase.index(match["letter"].upper())
    if place >= len(options) or not options[place].strip():
        return None
    rest, option = _plain(match["rest"]), _plain(options[place])
    return place if rest == "" or (option != "" and f"{rest} ".startswith(f"{option} ")) else None


def _plain(text: str) -> str:
    return _ARTICLE.sub("", question_key(text), count=1)


def _by_number(first: int) -> Callable[[str, Sequence[str]], int | None]:
    def place_of(text: str, options: Sequence[str]) -> int | None:
        number = re.fullmatch(r"\s*([0-9]{1,2})(?:\.0+)?\s*", text)  # 2.0 is 2, as a table may store it
        place = int(number[1]) - first if number else -1
        return place if 0 <= place < len(options) and options[place].strip() else None

    return place_of


# {how a gold answer names an option: the function that returns the option's place, or None}
WAYS: Mapping[str, Callable[[str, Sequence[str]], int | None]] = {
    "text": _by_text,
    "letter": _by_letter,
    "number from 0": _by_number(0),
    "number from 1": _by_number(1),
}
