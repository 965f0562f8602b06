"""The prompts, byte for byte as the paper prints them, and their rendering.

Each prompt is a file `<name>.txt` without a trailing line break. A rendered prompt is the text that follows the image
in the single user turn; `backbones.encode` applies the checkpoint's chat template. Placeholders are `{QUESTION}`,
`{ANSWER}`, `{HINT}`, a wrong answer (`models.hints`), and `{OPTION_TEXT_A}` to `{OPTION_TEXT_D}`.

A prompt of several turns has parts, each after its marker `[system]`, `[user]` or `[assistant]`, which is alone on its
line. The last part is the user turn with the image and `{QUESTION}`. Line breaks around a part are not of its text.

`their_package.folder.name` is the file `folder/name.txt` of an installed package.

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
from typing import NamedTuple

from dualread import plugins
from dualread import source_snapshot as source_snapshot
from dualread.errors import ConfigError, did_you_mean, in_a_line
from dualread.schema.columns import FEWEST_OPTIONS, MOST_OPTIONS

# Templates that fill the question field of another template.
_PLACED_IN = {"option_visible": "shared"}

_PLACEHOLDER = re.compile(r"\{(QUESTION|ANSWER|HINT|OPTION_TEXT_[A-J])\}")
_LETTERS = string.ascii_uppercase[:MOST_OPTIONS]
_ROLES = ("system", "user", "assistant")
_MARKER = re.compile(r"\[(\w+)\]\s*")


class Turn(NamedTuple):
    """One turn of a conversation: its role ("system", "user" or "assistant") and its text."""

    role: str
    text: str


def names() -> tuple[str, ...]:
    """Return the names of all prompts, sorted."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.txt")))


@cache
def template(name: str) -> str:
    """Return the text of the template with its placeholders: the exact content of its file."""
    package, _, inside = file_of(name).rpartition(":")
    try:
        if not package:
            return source_snapshot.read(Path(__file__).with_name(f"{name}.txt")).decode("utf-8")
        folder = source_snapshot.package_folder(package) or Path("(no such package)")
        return source_snapshot.read(folder / inside).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"prompts: no prompt named {name!r} ({in_a_line(error)}). Known: {', '.join(names())}, and"
            f" package.folder.file of a package that is installed.{did_you_mean(name, names())}"
        ) from error


def file_of(name: str) -> str:
    """Return the file of a prompt as specs name it: below `lib/dualread`, or "package:path" of another package."""
    if name in names() or not plugins.is_foreign(name):
        return f"models/prompts/{name}.txt"
    package, *folders = name.split(".")
    return f"{package}:{'/'.join(folder or '-' for folder in folders)}.txt"


@cache
def turns(name: str) -> tuple[Turn, ...]:
    """Return the turns of the template, with their placeholders; the last one is the user's with the image."""
    lines = (text := template(name)).split("\n")
    markers = [(i, match[1]) for i, line in enumerate(lines) if (match := _MARKER.fullmatch(line))]
    if not any(role in _ROLES for _, role in markers):
        return (Turn("user", text),)
    ends, before = [*(i for i, _ in markers[1:]), len(lines)], "".join(lines[: markers[0][0]]).strip()
    texts = ("\n".join(lines[i + 1 : end]).strip("\r\n") for (i, _), end in zip(markers, ends, strict=True))
    parts = tuple(Turn(role, text) for (_, role), text in zip(markers, texts, strict=True))
    roles, asked = [role for role, _ in parts], parts[-1].text.count("{QUESTION}")
    checks = (
        (not before, f"the text {before[:40]!r} stands before the first part"),
        *((role in _ROLES, f"the part [{role}] is unknown") for role in roles),
        *((text.strip() != "", f"the part [{role}] is empty") for role, text in parts),
        ("system" not in roles[1:], "a part [system] comes after another part"),
        (roles[-1] == "user", f"the last part is [{roles[-1]}]"),
        (asked == 1, f"the last part has {{QUESTION}} {asked} times"),
    )
    for is_right, problem in checks:
        if not is_right:
            raise ConfigError(
                f"prompts: {name!r}: {problem}. Expected at most one [system], at the beginning, then [user] and"
                " [assistant], and at the end a [user] with {QUESTION} once, all of them with a text. Correct the file."
            )
    return parts


def template_sha256(name: str) -> str:
    """Return the hexadecimal digest of the templates that `render(name, ...)` uses, joined by a line feed."""
    texts = [template(part) for part in (name, _PLACED_IN.get(name)) if part is not None]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def fixed_pieces(among: Iterable[str]) -> tuple[str, ...]:
    """Return the fixed strings between the placeholders of the templates `among`, sorted."""
    pieces = {piece for name in among for _, text in turns(name) for piece in _PLACEHOLDER.split(text)[0::2]}
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
    """Return the text of the last turn of prompt `name`, the only one of most; arguments as in `rendered_turns`."""
    return rendered_turns(name, question=question, options=options, answer=answer, hint=hint)[-1].text


def rendered_turns(
    name: str, *, question: str, options: Sequence[str] = (), answer: str | None = None, hint: str | None = None
) -> tuple[Turn, ...]:
    """Return the turns of prompt `name` that the model sees; the last one is the user's with the image.

    Values are inserted literally and in one pass: braces and placeholders inside a value are not interpreted. Values
    that the template does not use are ignored.

    Args:
        name: One of `names()`; `option_visible` gives the whole shared prompt with the options in its question field.
        question: The question, verbatim.
        options: The two to ten options of a multiple-choice question.
        answer: The proposed answer, for the prompt of a self-check.
        hint: The wrong answer, for a prompt that misleads.

    Raises:
        ConfigError: There is no such prompt, or its parts are not as this module says.
        ValueError: A value that the template uses is not given.
    """
    if name in _PLACED_IN:
        return rendered_turns(_PLACED_IN[name], question=option_field(question, options), answer=answer, hint=hint)
    texts = {"QUESTION": question, "ANSWER": answer, "HINT": hint}
    values = {name: value for name, value in texts.items() if value is not None}
    return tuple(Turn(role, _fill(name, text, values)) for role, text in turns(name))


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
