r"""The printed cells of a table, read back from its LaTeX by the labels of their block, row and column.

A cell is written here as the CSV prints it: .952±.004, with a dagger and the initials of the sides with few images.
"""

import re
from typing import NamedTuple

from dualread.reporting.tables.published import published_cells
from dualread.reporting.tables.values import Key, Value

_NUMBER = re.compile(
    r"\$(?P<bold>\\mathbf\{)?(?P<mean>[+-]?[\d.]+)\}?(?:_\{\\pm(?P<std>[\d.]+)\})?(?:\{\}\^\{\\dagger\\mathrm\{(?P<short>sd?|d)\}\})?\$"
    r"|---|(?P<count>^\d+$)"
)
# A field that repeats the one above it.
_DITTO = "''"
# The heads of columns that hold labels; all other columns hold cells.
_LABELS = (
    "Backbone",
    "Dataset",
    "Method",
    "Method $-$ baseline",
    "Variant",
    "Actor",
    "Family",
    "Condition",
    "Training",
)


class Place(NamedTuple):
    """One field of a tabular: all labels above and beside it, without arrows and counts; and its LaTeX."""

    labels: tuple[str, ...]
    text: str


def places(tex):
    """Yield every field below the heads of the tabulars, except those in columns of labels."""
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
            fields = _filled([_without_raisebox(text) for text in line.removesuffix(r" \\").split(" & ")], left)
            fields = above = [above[k] if text == _DITTO else text for k, text in enumerate(fields)]
            beside = [text for labels, text in zip(columns, fields, strict=True) if labels and labels[-1] in _LABELS]
            for labels, text in zip(columns, fields, strict=True):
                if labels and labels[-1] not in _LABELS:
                    yield Place((*heading, *filter(None, beside), *labels), text)


def key_of(*, backbone, method, metric, dataset="slake", subset="all"):
    """Return the key of the cell with these labels."""
    if dataset == "ood":
        dataset = "ood_ccg" if metric.endswith("ccg_auc") else "ood6"
    return Key(backbone, dataset, subset, method, metric)


def read(tex, meanings, key=key_of):
    """Return {key: printed cell}.

    Args:
        tex: The LaTeX of a table.
        meanings: For each label, the fields of the key that it stands for; for the label of a column also `metrics`.
        key: Makes a key of these fields and one metric.
    """
    return {cell: text for cell, (text, _) in _cells(tex, meanings, key).items()}


def read_bold(tex, meanings):
    """Return the keys of the cells that are printed in bold."""
    return {cell for cell, (_, bold) in _cells(tex, meanings, key_of).items() if bold}


def published(table):
    """Return the values of the paper's `table`, keyed as ours are; three runs where it prints a deviation, else one.

    The paper calls its OOD means `ood`; ours say over which data sets: `ood6`, and `ood_ccg` for CCG.
    """
    values = {}
    for place, (mean, std) in published_cells().items():
        if place.table == table:
            names = place._replace(dataset=place.quantity.dataset)[1:]
            key = Key(*(name or None for name in names))
            values[key] = Value(mean=mean, std=std, n_runs=1 if std is None else 3, n=None)
    return values


def as_printed(value, digits=3):
    """Return a published value as the CSV prints it: .952±.004, 1.000, 109.7±3.1."""
    texts = [f"{number:.{digits}f}" for number in (value.mean, value.std) if number is not None]
    return "±".join(text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text for text in texts)


def _cells(tex, meanings, key):
    found = {}
    for place in places(tex):
        meant = [meanings[label] for label in place.labels]  # an unexpected label is an error
        fields = {name: value for meaning in meant for name, value in meaning.items()}
        metrics = fields.pop("metrics", ())
        numbers = list(_NUMBER.finditer(place.text))
        if len(numbers) == 1 and _text(numbers[0]) == "---":
            numbers *= len(metrics)  # one dash stands for all metrics of the column
        if metrics and place.text:
            for metric, number in zip(metrics, numbers, strict=True):
                cell = key(**fields, metric=metric)
                assert cell not in found, f"{cell} is printed twice"
                found[cell] = (_text(number), number["bold"] is not None)
    return found


def _text(found):
    if found["count"]:
        return found["count"]
    if found["mean"] is None:
        return "---"
    return (
        found["mean"] + (f"±{found['std']}" if found["std"] else "") + (f"†{found['short']}" if found["short"] else "")
    )


def _columns(head):
    """Return the labels above each column, from top to bottom."""
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
    return [
        tuple(filter(None, labels)) for labels in zip(*(row + [""] * (width - len(row)) for row in rows), strict=True)
    ]


def _without_raisebox(text):
    return _arguments(text)[1] if text.startswith(r"\raisebox") else text


def _filled(fields, left):
    """Return the fields of a line, where those that a \\multirow spans have its text.

    `left` says for each column how many further lines its \\multirow spans, and its text. It is updated.
    """
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
    r"""Return the arguments of a command: 2, * and a of \multirow{2}{*}{a}."""
    found, depth, start = [], 0, 0
    for k, character in enumerate(command):
        if character in "{}" and command[k - 1] != "\\":
            depth += 1 if character == "{" else -1
            if character == "{" and depth == 1:
                start = k + 1
            elif character == "}" and depth == 0:
                found.append(command[start:k])
    return found
