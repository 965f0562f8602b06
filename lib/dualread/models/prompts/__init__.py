"""The model-visible prompts, byte for byte as the paper prints them, and their rendering.

One prompt is one file, `<name>.txt`, without a trailing line break. A rendered prompt is the text after the image in
the one user turn; the checkpoint's chat template is applied elsewhere. Placeholders: `{QUESTION}`, `{ANSWER}`,
`{OPTION_TEXT_A}` to `{OPTION_TEXT_D}`.

`option_visible` is not a prompt of its own: it is the question field of multiple choice and is placed in `shared`.

References:
    Section "Exact Prompt Templates" of the paper's supplement (app:prompts).
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from dualread.errors import did_you_mean

# Prompts that fill the question field of another one.
_PLACED_IN = {"option_visible": "shared"}

_PLACEHOLDER = re.compile(r"\{(QUESTION|ANSWER|OPTION_TEXT_[A-D])\}")
_LETTERS = "ABCD"


def names() -> tuple[str, ...]:
    """Return the names of all prompts, sorted."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.txt")))


@cache
def template(name: str) -> str:
    """Return the template's text, placeholders included; exactly the bytes of `prompts/<name>.txt`.

    Raises:
        ValueError: There is no such prompt.
    """
    if name not in names():
        meant = did_you_mean(name, names())
        raise ValueError(f"prompts: no prompt named {name!r}. Known: {', '.join(names())}.{meant}")
    return Path(__file__).with_name(f"{name}.txt").read_bytes().decode("utf-8")


def template_files(name: str) -> tuple[str, ...]:
    """Return the files, relative to the package, that `render(name, ...)` reads: what a spec lists under `file`."""
    template(name)
    return tuple(f"models/prompts/{n}.txt" for n in (name, _PLACED_IN.get(name)) if n is not None)


def template_sha256(name: str) -> str:
    """Return the hex digest of the templates that `render(name, ...)` uses, joined by a line feed."""
    texts = [template(Path(file).stem) for file in template_files(name)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def fixed_pieces() -> tuple[str, ...]:
    """Return the fixed strings between placeholders, of all templates, sorted: what rendered prompts are made of."""
    pieces = {piece for name in names() for piece in _PLACEHOLDER.split(template(name))[0::2]}
    return tuple(sorted(pieces - {"", "\n"}))


def render(name: str, *, question: str, options: Sequence[str] = (), answer: str | None = None) -> str:
    """Return the model-visible text of prompt `name`.

    Values are placed literally and in one pass: braces or placeholders inside a question stay what they are. A value
    that the template does not name is not used, so a row can be passed as it is.

    Args:
        name: One of `names()`; `option_visible` gives the whole shared prompt with the options in its question field.
        question: The question, verbatim.
        options: The four options of a multiple-choice question.
        answer: The proposed answer of a self-check prompt.

    Raises:
        ValueError: No such prompt, or the template names a value that was not given.
    """
    if name in _PLACED_IN:
        return render(_PLACED_IN[name], question=option_field(question, options), answer=answer)
    values = {"QUESTION": question} | ({} if answer is None else {"ANSWER": answer})
    return _fill(name, template(name), values)


def option_field(question: str, options: Sequence[str]) -> str:
    """Return the question field of a multiple-choice question: question, labeled options, selection instruction.

    A question that already holds its four labeled options keeps them as they are; only the instruction is appended.

    Raises:
        ValueError: There are not exactly four options.
    """
    if len(options) != len(_LETTERS):
        raise ValueError(
            f"prompts: option_visible needs {len(_LETTERS)} options, got {len(options)}: {list(options)!r} "
            f"for the question {question!r}. Give them, or use the prompt 'shared'."
        )
    text = template("option_visible")
    if shows_options(question, options):
        text = "\n".join(line for line in text.split("\n") if "{OPTION_TEXT_" not in line)
    labeled = {f"OPTION_TEXT_{letter}": option for letter, option in zip(_LETTERS, options, strict=True)}
    return _fill("option_visible", text, {"QUESTION": question, **labeled})


def shows_options(question: str, options: Sequence[str]) -> bool:
    """Tell whether the question already holds all its options, each behind its letter, in order.

    A label is the letter with `.`, `:` or `)` behind it, or in parentheses; letter case and white space do not matter.
    """
    labeled = [
        rf"(?<!\w)\(?{letter}\s*[.:)]\s*" + r"\s+".join(map(re.escape, option.split())) + r"(?!\w)"
        for letter, option in zip(_LETTERS, options, strict=False)
    ]
    return bool(labeled) and re.search(r".*?".join(labeled), question, re.IGNORECASE | re.DOTALL) is not None


def _fill(name: str, text: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise ValueError(f"prompts: {name} needs a value for {match[0]}, none was given.")
        return values[match[1]]

    return _PLACEHOLDER.sub(value, text)
