"""The forms in which people have their rows, brought into the one that the loader `table` documents.

Only what can mean one thing is read: a conversation of one question and one answer, a list of one image, 2.0 for 2,
CLOSED for closed, val for validation. Whatever is changed about a row is noted, and counted in the audit.
"""

import ast
import base64
import binascii
import json
import math
import re
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dualread.data.datasets._multiple_choice import unlabeled
from dualread.data.datasets.base import refuse
from dualread.data.datasets.own_tables import Line, split_name

# {column of a conversation: (name of the speaker, name of what is said, speakers that ask, speakers that answer)}
_CONVERSATIONS = {
    "conversations": ("from", "value", ("human", "user"), ("gpt", "assistant")),
    "messages": ("role", "content", ("user",), ("assistant",)),
}
# Columns of options: A, B, ...; option_A, Choice B, option c.
_OPTION = re.compile(r"(?P<plain>[A-J])|(?i:option|choice)[ _]?(?P<named>[A-Ja-j])")
_IMAGE_TAG = re.compile(r"\A\s*<image>\s*|\s*<image>\s*\Z")
# VQA's own types, beside ours.
_ANSWER_TYPES = {"yes/no": "closed", "number": "open", "other": "open"}
_IDS = ("id", "donor_id", "image_id")
_LISTS = ("reference_answers", "options")
_DATA_URL = re.compile(r"\Adata:image/[\w.+-]+;base64,", re.IGNORECASE)
# How PNG, JPEG, GIF, WebP, TIFF and BMP begin in base64, which has no dot.
_BASE64 = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "SUkq", "TU0AK", "Qk")
_LONGEST_NAME = 255  # characters of a file's name; what is longer and has no dot is an image in base64


def unfolded(lines: Sequence[Line]) -> list[Line]:
    """Return the rows with columns that the loader reads in place of those of other programs.

    These are question and reference_answers in place of a conversation, as LLaVA's are, without a marker `<image>`
    before or after the question; and options in place of a column per option, as in VLMEvalKit's and PMC-VQA's tables.

    Raises:
        DataError: A conversation is not one question and one answer; up to ten rows are listed.
    """
    columns = dict.fromkeys(name for line in lines for name in line.record)
    if (letters := _option_columns(columns)) is not None:
        lines = [_with_options(line, letters) for line in lines]
    if columns.keys().isdisjoint(_CONVERSATIONS):
        return list(lines)
    made = [_unfolded(line) for line in lines]
    refuse(one for one in made if isinstance(one, str))
    return [one for one in made if isinstance(one, Line)]


def _option_columns(columns: Collection[str]) -> list[str] | None:
    """Return the columns that hold one option each, from A on; None without at least two, or beside `options`."""
    found = {(match["plain"] or match["named"]).upper(): name for name in columns if (match := _OPTION.fullmatch(name))}
    in_order = [found[letter] for letter in sorted(found)]
    whole = sorted(found) == list(string.ascii_uppercase[: len(found)]) and len(found) > 1
    return in_order if whole and "options" not in columns else None


def _with_options(line: Line, columns: Sequence[str]) -> Line:
    """Return the row with a list in place of columns of options; those at the end may be empty."""
    options = [None if _is_nan(line.record.get(name)) else line.record.get(name) for name in columns]
    while options and options[-1] in (None, ""):
        options.pop()
    others = {name: value for name, value in line.record.items() if name not in columns}
    note = f"options are those of the columns {', '.join(columns)}"
    return replace(line, record={**others, "options": options}, notes=(*line.notes, note) if options else line.notes)


def _unfolded(line: Line) -> Line | str:
    name = next((name for name in _CONVERSATIONS if line.record.get(name) is not None), None)
    if name is None or "question" in line.record:
        return line
    speaker, said, ask, answer = _CONVERSATIONS[name]
    turns = line.record[name]
    turns = turns if isinstance(turns, list) and all(isinstance(turn, Mapping) for turn in turns) else []
    if len(turns) != 2 or turns[0].get(speaker) not in ask or turns[1].get(speaker) not in answer:
        who = ", ".join(str(turn.get(speaker))[:20] for turn in turns[:6]) or "no turns"
        return (
            f"{line.place}: {name} has {len(turns)} turns ({who}), expected a question by {ask[0]} and an answer by"
            f" {answer[0]}. Write one row per question."
        )
    question, reply = (turn.get(said) for turn in turns)
    if not isinstance(question, str) or not isinstance(reply, str):
        return f"{line.place}: {name}: {said} is no text in both turns. Write texts, and the image in its own column."
    bare = _IMAGE_TAG.sub("", question)
    record = {key: value for key, value in line.record.items() if key != name}
    notes = ("a marker <image> beside the question is taken off",) if bare != question else ()
    return replace(line, record={**record, "question": bare, "reference_answers": [reply]}, notes=(*line.notes, *notes))


def in_form(lines: Sequence[Line]) -> list[Line]:
    """Return the rows, whose columns have our names, with values in the form that the loader documents.

    What is in no known form stays as it is, for the loader to refuse.
    """
    whole = {name for name in (*_IDS, *_LISTS) if _all_whole([line.record.get(name) for line in lines])}
    return [_in_form(line, whole) for line in lines]


def _in_form(line: Line, whole: set[str]) -> Line:
    record = {name: None if _is_nan(value) else value for name, value in line.record.items()}
    notes = list(line.notes)
    for name in _IDS:
        if _is_whole(value := record.get(name)) or isinstance(value, str):
            record[name] = _text(value, name in whole)
    for name in _LISTS:
        if record.get(name) is not None:
            record[name] = [_text(item, name in whole) for item in _listed(record[name])]
    options = record.get("options") or []
    while options and options[-1] is None:  # what a row does not fill of a struct
        options.pop()
    if all(isinstance(option, str) for option in options) and (bare := unlabeled(options)) != options and all(bare):
        record["options"] = bare
        notes.append("labels (A., B., ...) of options are taken off")
    if "split" in record:
        record["split"] = split_name(record["split"])
    if isinstance(kind := record.get("answer_type"), str):
        plain = kind.strip().lower()
        record["answer_type"] = _ANSWER_TYPES.get(plain, plain) or None
    if "image" in record:
        record["image"] = _image(record["image"])
    return line if record == line.record else replace(line, record=record, notes=tuple(notes))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _listed(value: Any) -> list[Any]:
    """Return the items of a list, also of one that was written as text; a mapping from A, B, ... has its values."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        value = _parsed(value)
    if isinstance(value, Mapping):
        letters = list(string.ascii_uppercase[: len(value)])
        return list(value.values()) if list(value) == letters else [value]
    return list(value) if isinstance(value, list | tuple) else [value]


def _parsed(text: str) -> Any:
    """Return the list or the mapping that a text is, as JSON or Python writes it; else the text."""
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(found, list | Mapping):
            return found
    return text


def _is_whole(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and value.is_integer())


def _text(value: Any, whole: bool = False) -> Any:
    """Return a number as text, 2.0 as "2"; in a column of whole numbers, the text "2.0" as well."""
    if _is_whole(value):
        return str(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return str(value)
    return value.strip().removesuffix(".0") if whole and isinstance(value, str) else value


def _all_whole(values: Sequence[Any]) -> bool:
    """Return whether a column holds nothing but texts such as "2" and "2.0": whole numbers that became floats."""
    texts = [item for value in values if value is not None for item in _listed(value)]
    numbers = [text for text in texts if isinstance(text, str) and re.fullmatch(r"\s*-?[0-9]+(\.0)?\s*", text)]
    return len(numbers) == len(texts) and any("." in text for text in numbers)


def _image(value: Any) -> Any:
    """Return the one image of a list, and the bytes of one in base64; a backslash in a path is a slash."""
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        return value
    if _DATA_URL.match(value) or ("." not in value and (value.startswith(_BASE64) or len(value) > _LONGEST_NAME)):
        try:
            return base64.b64decode("".join(_DATA_URL.sub("", value).split()), validate=True)
        except (binascii.Error, ValueError):
            return value
    return value.replace("\\", "/")
