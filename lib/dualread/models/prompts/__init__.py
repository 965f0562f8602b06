"""The prompts, byte for byte as the paper prints them, and their rendering.

Each prompt is a file `<name>.txt` without a trailing line break. A rendered prompt is the text that follows the image
in the single user turn; `backbones.encode` applies the checkpoint's chat template. Placeholders are `{QUESTION}`,
`{ANSWER}`, `{HINT}`, a wrong answer (`models.hints`), and `{OPTION_TEXT_A}` to `{OPTION_TEXT_D}`.

`option_visible` is not a complete prompt: it is the question field of multiple-choice questions, within `shared`. The
paper has four options. With two to ten, there are as many lines of the same form, with the letters A to J.

References:
    Section "Exact Prompt Templates" of the paper's supplement (app:prompts).
"""

import hashlib
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from dualread import source_snapshot as source_snapshot
from dualread.schema.columns import FEWEST_OPTIONS, MOST_OPTIONS

# Templates that fill the question field of another template.
_PLACED_IN = {"option_visible": "shared"}

_PLACEHOLDER = re.compile(r"\{(QUESTION|ANSWER|HINT|OPTION_TEXT_[A-J])\}")
_LETTERS = string.ascii_uppercase[:MOST_OPTIONS]


def names() -> tuple[str, ...]:
    """Return the names of all prompts, sorted."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.txt")))


@cache
def template(name: str) -> str:
    """Return the text of the template with its placeholders: the exact content of `prompts/<name>.txt`.

    Raises:
        ValueError: There is no such prompt.
    """
    if name not in names():
        raise ValueError(f"prompts: no prompt named {name!r}. Known: {', '.join(names())}.")
    return source_snapshot.read(Path(__file__).with_name(f"{name}.txt")).decode("utf-8")


def template_sha256(name: str) -> str:
    """Return the hexadecimal digest of the templates that `render(name, ...)` uses, joined by a line feed."""
    texts = [template(part) for part in (name, _PLACED_IN.get(name)) if part is not None]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def fixed_pieces(among: Iterable[str]) -> tuple[str, ...]:
    """Return the fixed strings between the placeholders of the templates `among`, sorted."""
    pieces = {piece for name in among for piece in _PLACEHOLDER.split(template(name))[0::2]}
    return tuple(sorted(pieces - {"", "\n"}))


def made_of(text: str) -> tuple[str, ...]:
    """Return the names of the complete prompts that are this text, with something at each placeholder; sorted."""
    return tuple(name for name in names() if name not in _PLACED_IN and _is_made_of(template(name), text))


def _is_made_of(template: str, text: str) -> bool:
    first, *others = _PLACEHOLDER.split(template)[0::2]
    if not others:
        return text == template
    end = len(first) if text.startswith(first) else -1
    for piece in others[:-1]:
        start = text.find(piece, end) if end >= 0 else -1
        end = -1 if start < 0 else start + len(piece)
    return end >= 0 and text.endswith(others[-1]) and len(text) - len(others[-1]) >= end


def render(
    name: str, *, question: str, options: Sequence[str] = (), answer: str | None = None, hint: str | None = None
) -> str:
    """Return the text of prompt `name` that the model sees.

    Values are inserted literally and in one pass: braces and placeholders inside a value are not interpreted. Values
    that the template does not use are ignored.

    Args:
        name: One of `names()`; `option_visible` gives the whole shared prompt with the options in its question field.
        question: The question, verbatim.
        options: The two to ten options of a multiple-choice question.
        answer: The proposed answer, for the prompt of a self-check.
        hint: The wrong answer, for a prompt that misleads.

    Raises:
        ValueError: There is no such prompt, or a value that the template uses is not given.
    """
    if name in _PLACED_IN:
        return render(_PLACED_IN[name], question=option_field(question, options), answer=answer, hint=hint)
    texts = {"QUESTION": question, "ANSWER": answer, "HINT": hint}
    values = {name: value for name, value in texts.items() if value is not None}
    return _fill(name, template(name), values)


def option_field(question: str, options: Sequence[str]) -> str:
    """Return the question field of a multiple-choice question: the question, the labeled options, the instruction.

    If the question already contains its labeled options, only the instruction is appended.

    Raises:
        ValueError: There are less than two options, or more than ten.
    """
    if not FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS:
        raise ValueError(
            f"prompts: option_visible: {len(options)} options ({list(options)!r}) for the question {question!r}. "
            f"Expected {FEWEST_OPTIONS} to {MOST_OPTIONS}. Change the options, or use the prompt 'shared'."
        )
    letters = "" if shows_options(question, options) else _LETTERS[: len(options)]
    asked, *instruction = [line for line in template("option_visible").split("\n") if "{OPTION_TEXT_" not in line]
    text = "\n".join([asked, *(f"{letter}. {{OPTION_TEXT_{letter}}}" for letter in letters), *instruction])
    labeled = {f"OPTION_TEXT_{letter}": option for letter, option in zip(_LETTERS, options, strict=False)}
    return _fill("option_visible", text, {"QUESTION": question, **labeled})


def shows_options(question: str, options: Sequence[str]) -> bool:
    """Return whether the question already contains all its options in order, each after its label.

    A label is the letter followed by `.`, `:` or `)`, or in parentheses; letter case and white space are ignored.
    """
    end = 0
    for letter, option in zip(_LETTERS, options, strict=False):
        labeled = rf"(?<!\w)\(?{letter}\s*[.:)]\s*" + r"\s+".join(map(re.escape, option.split())) + r"(?!\w)"
        if (match := re.compile(labeled, re.IGNORECASE).search(question, end)) is None:
            return False
        end = match.end()
    return len(options) > 0


def _fill(name: str, text: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise ValueError(f"prompts: {name} needs a value for {match[0]}, but none was given.")
        return values[match[1]]

    return _PLACEHOLDER.sub(value, text)
