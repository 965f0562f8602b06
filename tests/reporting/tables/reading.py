r"""The printed cells of a table, read back from its LaTeX by the labels of their block, row and column.

A cell is written here as the CSV prints it: .952±.004, with a dagger where it is underpowered.
"""

import re
from typing import NamedTuple

from dualread.reporting.tables.values import Key

_NUMBER = re.compile(
    r"\$(?P<bold>\\mathbf\{)?(?P<mean>[+-]?[\d.]+)\}?(?:_\{\\pm(?P<std>[\d.]+)\})?(?P<weak>\{\}\^\{\\dagger\})?\$"
    r"|---|(?P<count>^\d+$)"
)
_DITTO = "''"
# Columns of labels; what others hold is a cell, or belongs to none.
_LABELS = ("Backbone", "Dataset", "Method", "Method $-$ baseline", "Variant", "Actor", "Family")


class Place(NamedTuple):
    """One field of a tabular: every label over and beside it, without arrows and sizes; and its LaTeX."""

    labels: tuple[str, ...]
    text: str


def places(tex):
    """Every field of the tabulars, below their heads, that stands in no column of labels."""
    for rest in tex.split(r"\toprule")[1:]:
        yield from _places(rest.split(r"\bottomrule")[0].splitlines())


def _places(lines):
    start = lines.index(r"\midrule")
    columns = _columns([line for line in lines[:start] if line.endswith(r"\\")])
    heading, left, above = [], {}, []
    for line in lines[start:]:
        if line.startswith(r"\multicolumn"):
            heading, left, above = re.split(", |: ", _arguments(_arguments(line)[2])[0]), {}, []
        elif line.endswith(r"\\"):
            fields = _filled([_lowered(text) for text in line.removesuffix(r" \\").split(" & ")], left)
            fields = above = [above[k] if text == _DITTO else text for k, text in enumerate(fields)]
            beside = [text for labels, text in zip(columns, fields, strict=True) if labels and labels[-1] in _LABELS]
            for labels, text in zip(columns, fields, strict=True):
                if labels and labels[-1] not in _LABELS:
                    yield Place((*heading, *filter(None, beside), *labels), text)


def key_of(*, backbone, method, metric, dataset="slake", subset="all"):
    """The key of a cell, from what its labels say."""
    if dataset == "ood":
        dataset = "ood_ccg" if metric.endswith("ccg_auc") else "ood6"
    return Key(backbone, dataset, subset, method, metric)


def read(tex, meanings, key=key_of):
    """Every cell by its key: `meanings` has the fields of a key that a label tells, and the metrics of a column."""
    return {of: text for of, (text, _) in _cells(tex, meanings, key).items()}


def read_bold(tex, meanings):
    return {of for of, (_, bold) in _cells(tex, meanings, key_of).items() if bold}


def printed(line):
    """The numbers of a line, in reading order; whatever has no form of a cell is passed over."""
    return [_text(found) for found in _NUMBER.finditer(line)]


def body(table):
    """The lines between the head and the bottom that hold cells, without the headings of blocks."""
    lines = table.tex.splitlines()
    inside = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    return [line for line in inside if line.endswith(r"\\") and not line.startswith(r"\multicolumn")]


def label(line, column=0):
    return line.removesuffix(r" \\").split(" & ")[column]


def as_printed(value, digits=3):
    """What a published value looks like: .952±.004, 1.000, 109.7±3.1."""
    texts = [f"{number:.{digits}f}" for number in (value.mean, value.std) if number is not None]
    return "±".join(text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text for text in texts)


def _cells(tex, meanings, key):
    found = {}
    for place in places(tex):
        fields = [meanings[label] for label in place.labels]  # a label that nobody expects is an error
        told = {name: value for of in fields for name, value in of.items()}
        metrics = told.pop("metrics", ())
        numbers = list(_NUMBER.finditer(place.text))
        if len(numbers) == 1 and _text(numbers[0]) == "---":
            numbers *= len(metrics)  # one dash for all of them
        if metrics and place.text:
            for metric, number in zip(metrics, numbers, strict=True):
                of = key(**told, metric=metric)
                assert of not in found, f"{of} is printed twice"
                found[of] = (_text(number), number["bold"] is not None)
    return found


def _text(found):
    if found["count"]:
        return found["count"]
    if found["mean"] is None:
        return "---"
    return found["mean"] + (f"±{found['std']}" if found["std"] else "") + ("†" if found["weak"] else "")


def _columns(head):
    """The labels of each column, from top to bottom."""
    rows = []
    for line in head:
        fields = []
        for text in line.removesuffix(r" \\").split(" & "):
            spans = text.startswith(r"\multicolumn")
            n, _, content = _arguments(text) if spans else (1, "", text)
            content = re.sub(r"\$\\(up|down)arrow\$| \(\$n=\d+\$\)", "", content)
            fields += [content] * int(n)
        rows.append(fields)
    width = max(map(len, rows))
    return [tuple(filter(None, of)) for of in zip(*(row + [""] * (width - len(row)) for row in rows), strict=True)]


def _lowered(text):
    return _arguments(text)[1] if text.startswith(r"\raisebox") else text


def _filled(fields, left):
    """The fields of a line, those below a \\multirow with its text; `left` is for how many lines it still is."""
    for k, text in enumerate(fields):
        if text.startswith(r"\multirow"):
            n, _, content = _arguments(text)
            left[k] = (int(n), content)
        if k in left:
            n, content = left.pop(k)
            assert text == "" or text.startswith(r"\multirow"), f"{text} under {content}"
            fields[k] = content
            if n > 1:
                left[k] = (n - 1, content)
    return fields


def _arguments(command):
    r"""The arguments in braces of a command: 2, * and a of \multirow{2}{*}{a}."""
    found, depth, start = [], 0, 0
    for k, character in enumerate(command):
        if character in "{}" and command[k - 1] != "\\":
            depth += 1 if character == "{" else -1
            if character == "{" and depth == 1:
                start = k + 1
            elif character == "}" and depth == 0:
                found.append(command[start:k])
    return found
