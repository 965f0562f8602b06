"""Read the files of VQA-Med 2020 and 2021: lines with `|` between the fields, and a folder of synpic<number>.jpg.

A line of a training or validation set is `image|question|answer`. A test set has two files, `image|question` and
`image|answer`, which belong together by the image; the official evaluator wants them in one order, and here any order
is read. There is one question per image. Where several answers are right, `|` separates them, as in the test set of
2021, or `#`, as the evaluator of 2020 reads it. Text in brackets is part of an answer (`pulmonary arteriovenous
malformation (pavm)`): nothing says that it may be left out, as it may in 2019, and the official accuracy is an exact
match. One answer of 2021 is in quotes, as a spreadsheet writes it, and is read without them, as the official evaluator
has it. Lines may end in CRLF or without a line end, blank lines are skipped, and white space around a field is kept.

The archives differ in how deep a folder they unpack into, and hold the images in an archive of their own. So files and
folders are found by their names. Folders of macOS (`__MACOSX`), which are in the official archives, are not entered.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dualread import limits
from dualread.data.datasets.base import Loaded, Picture, Row, answer_type, lines_of
from dualread.errors import DataError, refuse

_DEEPEST = 4  # folders that are entered, below the data set's own
_MAC = "__MACOSX"


@dataclass(frozen=True, kw_only=True)
class ReleasedPart:
    """A set of questions as it was released: the names of its files.

    Attributes:
        questions: `image|question|answer`, or `image|question` if `answers` is given.
        images: The folder of the images.
        answers: `image|answer`, perhaps with more answers.
    """

    questions: str
    images: str
    answers: str | None = None


def load_parts(folder: Path, parts: tuple[ReleasedPart, ...]) -> Loaded:
    """Return the rows of all parts, in the order of their files of questions.

    Raises:
        DataError: A file or a folder of images is missing or there twice; a line lacks a field; an image has two
            questions; or the images of questions and answers differ. The message lists up to ten lines.
    """
    rows: list[Row] = []
    files = []
    for part in parts:
        file, images = _one(folder, part.questions), _one(folder, part.images)
        answered = None
        if part.answers:
            of_answers = _one(folder, part.answers)
            fields = {i: line.split("|", 1) for i, line in lines_of(of_answers).items()}
            _refuse_lines(of_answers, fields, "image|answer, or image|answer|answer")
            answered = {image.strip(): _alternatives(answers) for image, answers in fields.values()}
        files.append(file)
        rows += _rows(file, images.absolute(), answered, rows[-1].source_row + 1 if rows else 0)
    return Loaded(file=files[0], rows=rows, audit=[])


def _one(folder: Path, name: str) -> Path:
    """Return the file or folder of this name in `folder`, however deep its archive put it."""
    patterns = ("*/" * deep + name for deep in range(_DEEPEST + 1))
    paths = [path for pattern in patterns for path in folder.glob(pattern) if _MAC not in path.parts]
    if not paths:
        raise DataError(f"{folder}: no {name} in it. Unpack the official archive there, and the images' own archive.")
    if len(paths) > 1:
        places = ", ".join(str(path.parent) for path in paths[:3])
        raise DataError(f"{folder}: {name} is there {len(paths)} times: in {places}. Keep one of them.")
    return paths[0]


def _rows(file: Path, images: Path, answered: dict[str, tuple[str, ...]] | None, before: int) -> Iterator[Row]:
    """Yield the rows of one file; `before` is the number of lines of the files before it."""
    wanted = "image|question" if answered is not None else "image|question|answer"
    fields = {i: line.split("|", wanted.count("|")) for i, line in lines_of(file).items()}
    _refuse_lines(file, fields, wanted)
    names = {parts[0].strip() for parts in fields.values()}
    if answered is not None and (apart := sorted(names ^ answered.keys())):
        raise DataError(
            f"{file}: {len(apart)} images have a question or an answer, but not both, such as {apart[0]}. Restore both"
            " files from one official archive."
        )
    for i, (image, question, *answer) in fields.items():
        name = image.strip()
        golds = answered[name] if answered is not None else _alternatives(answer[0])
        yield Row(
            official_id=name,
            question=question,
            reference_answers=golds,
            answer_type=answer_type(golds[0]),
            content_family="abnormality",
            options=(),
            modality=None,
            location=None,
            images=(Picture(images / f"{name}.jpg", name),),
            source_row=before + i,
        )


def _refuse_lines(file: Path, lines: dict[int, list[str]], wanted: str) -> None:
    refuse(f"{file}: line {i + 1}: {problem}. Correct the line." for i, problem in _problems(lines, wanted))


def _problems(lines: dict[int, list[str]], wanted: str) -> Iterator[tuple[int, str]]:
    n = wanted.partition(",")[0].count("|") + 1
    first: dict[str, int] = {}
    for i, fields in lines.items():
        image = fields[0].strip()
        if len(fields) != n:
            yield i, f"{len(fields)} fields, expected {wanted}"
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
