"""Read the files of VQA-Med: lines with `|` between the fields, and a folder of synpic<number>.jpg.

A line of a training or validation set of 2020 and 2021 is `image|question|answer`. A test set has two files,
`image|question` and `image|answer`, which belong together by the image; the official evaluator wants them in one order,
and here any order is read. There is one question per image. Where several answers are right, `|` separates them, as in
the test set of 2021, or `#`, as the evaluator of 2020 reads it. Text in brackets is part of an answer (`pulmonary
arteriovenous malformation (pavm)`): nothing says that it may be left out, as it may in 2019, and the official
accuracy is an exact match. One answer of 2021 is in quotes, as a spreadsheet writes it, and is read without them, as
the official evaluator has it. Lines may end in CRLF or without a line end, blank lines are skipped, and white space
around a field is kept.

The archives differ in how deep a folder they unpack into, and hold the images in an archive of their own. So files and
folders are found by their names. Folders of macOS (`__MACOSX`), which are in the official archives, are not entered.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dualread import limits
from dualread.data.datasets.base import Loaded, Picture, Row, answer_type, lines_of
from dualread.errors import DataError, refuse

_DEEPEST = 4  # folders that are entered, below the data set's own
_MAC = "__MACOSX"


def load_parts(folder: Path, *parts: Sequence[str]) -> Loaded:
    """Return the rows of released parts, in the order of their files of questions.

    A part names its file of questions, perhaps one of answers, and its folder of images, as patterns of `HUB_FILES`.
    """
    rows: list[Row] = []
    files = []
    for part in parts:
        questions, *others, images = (place_of(folder, pattern.strip("*")) for pattern in part)
        answers = None
        for file in others:
            fields = fields_of(file, "image|answer")
            answers = {image.strip(): _alternatives(text) for image, text in fields.values()}
        files.append(questions)
        rows += _rows(questions, images.absolute(), answers, rows[-1].source_row + 1 if rows else 0)
    return Loaded(file=files[0], rows=rows, audit=[])


def place_of(folder: Path, name: str) -> Path:
    """Return the file or folder of this name in `folder`, however deep its archive put it."""
    patterns = ("*/" * deep + name for deep in range(_DEEPEST + 1))
    paths = [path for pattern in patterns for path in folder.glob(pattern) if _MAC not in path.parts]
    if not paths:
        raise DataError(f"{folder}: no {name} in it. Unpack the official archive there, and the images' own archive.")
    if len(paths) > 1:
        places = ", ".join(str(path.parent) for path in paths[:3])
        raise DataError(f"{folder}: {name} is there {len(paths)} times: in {places}. Keep one of them.")
    return paths[0]


def _rows(file: Path, images: Path, answers: Mapping[str, tuple[str, ...]] | None, before: int) -> Iterator[Row]:
    """Yield the rows of one file, which without `answers` has them itself; `before` counts lines of earlier files."""
    fields = fields_of(file, "image|question|answer" if answers is None else "image|question")
    names = {parts[0].strip() for parts in fields.values()}
    if answers is not None and (apart := sorted(names ^ answers.keys())):
        raise DataError(
            f"{file}: {len(apart)} images have a question or an answer, but not both, such as {apart[0]}. Restore both"
            " files from one official archive."
        )
    for i, (image, question, *answer) in fields.items():
        name = image.strip()
        golds = _alternatives(answer[0]) if answers is None else answers[name]
        yield Row(
            official_id=name,
            question=question,
            reference_answers=golds,
            answer_type=answer_type(golds[0]),
            content_family="abnormality",
            images=(Picture(images / f"{name}.jpg", name),),
            source_row=before + i,
        )


def fields_of(file: Path, form: str) -> dict[int, list[str]]:
    """Return the fields of each line that is not blank, by its number from 0; the last one may contain `|`.

    The first field of `form`, such as `image|answer`, is an image, of which no other line is.
    """
    lines = {i: line.split("|", form.count("|")) for i, line in lines_of(file).items()}
    refuse(f"{file}: line {i + 1}: {problem}. Correct the line." for i, problem in _problems(lines, form))
    return lines


def _problems(lines: Mapping[int, Sequence[str]], form: str) -> Iterator[tuple[int, str]]:
    first: dict[str, int] = {}
    for i, fields in lines.items():
        image = fields[0].strip()
        if len(fields) <= form.count("|"):
            yield i, f"{len(fields)} fields, expected {form}"
        elif limits.leaves_folder(image):
            yield i, f"the image is {fields[0]!r}, expected the name of a file without .jpg"
        elif first.setdefault(image, i) != i:
            yield i, f"the image {image} is also in line {first[image] + 1}, expected one line per image"


def _alternatives(answers: str) -> tuple[str, ...]:
    """Return the answers that are right; one empty text if none is given, which is never right."""
    texts = [_unquoted(text) for text in answers.replace("#", "|").split("|") if text.strip()]
    return tuple(dict.fromkeys(texts)) or ("",)


def _unquoted(text: str) -> str:
    """Return an answer verbatim, but without the quotes in which a spreadsheet has put it, doubling those inside."""
    quoted = text.strip()
    inside = quoted[1:-1].replace('""', "")
    is_quoted = len(quoted) > 1 and quoted[0] == quoted[-1] == '"' and '"' not in inside
    return quoted[1:-1].replace('""', '"') if is_quoted else text
