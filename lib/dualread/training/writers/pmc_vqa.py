"""Write a phantom hospital in PMC-VQA's official format, with the quirks of the real files.

The files are test_clean.csv (Figure_path, Question, Answer, Choice A to D as " A:text", Answer_label) and
images/PMCN_F1.jpg, figures with a white margin. Planted defects: choices with another letter or without a letter, "NA"
as an answer, the same choice twice, an empty choice, and a few questions whose answer is yes or no.
"""

from collections.abc import Iterator
from dataclasses import replace

from PIL import ImageOps

from dualread.training.phantoms.questions import SceneQuestion
from dualread.training.writers import base

WORDING: base.Wording = {
    ("modality", "open"): "What imaging technique was used to obtain the figure?",
    ("plane", "open"): None,
    ("organ", "open"): "What organ is shown in the figure?",
    ("knowledge", "open"): None,
    ("abnormality", "closed"): "Does the figure show a lesion?",
    ("abnormality", "open"): "What type of lesion is shown in the figure?",
    ("position", "open"): None,
    ("size", "open"): "What is the size of the lesion shown in the figure?",
    ("shape", "open"): None,
    ("color", "open"): "What is the color of the lesion shown in the figure?",
    ("quantity", "open"): None,
}
SPLITS = ("test",)
MOST_QUESTIONS = len(WORDING) - 1  # the closed question replaces another one

_COLUMNS = ("Figure_path", "Question", "Answer", *(f"Choice {letter}" for letter in "ABCD"), "Answer_label")
# Of every twelve rows, these have a defect.
_PERIOD, _CLOSED, _WRONG_LETTER, _NO_LETTER, _REPEATED_CHOICE, _EMPTY_CHOICE = 12, 1, 3, 5, 7, 9


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    everyone, margin = base.cases(hospital), hospital.size // 16
    for case in everyone:
        # As a figure of an article: with a white margin, wider than high.
        framed = ImageOps.expand(base.picture(case, hospital), border=(3 * margin, margin), fill="white")
        yield f"images/PMC{case.image_id}_F1.jpg", base.jpeg(framed)
    rows = (_row(k, case, question) for k, (case, question) in enumerate(_asked(everyone, hospital)))
    yield "test_clean.csv", base.csv_table(_COLUMNS, rows)


def _asked(everyone: list[base.Case], hospital: base.Hospital) -> Iterator[tuple[base.Case, SceneQuestion]]:
    rng = base.random(hospital, "rows")
    k = 0
    for case in everyone:
        asked = base.questions(case, WORDING)
        (closed,) = (question for question in asked if not question.options)
        with_options = replace(closed, options=("yes", "no", "cannot be determined", "not applicable"))
        for question in base.pick([q for q in asked if q.options], hospital.questions_per_image, rng):
            yield case, with_options if k % _PERIOD == _CLOSED else question
            k += 1


def _row(k: int, case: base.Case, question: SceneQuestion) -> tuple[str, ...]:
    answer = base.written(question.answer)
    choices = [base.written(option) for option in question.options]
    label = choices.index(answer)
    if question.answer == "none" and question.content_family == "abnormality":
        answer = choices[label] = "NA"
    wrong = [place for place in range(4) if place != label]
    defect = k % _PERIOD
    if defect == _REPEATED_CHOICE:
        choices[wrong[1]] = choices[wrong[0]].lower()
    if defect == _EMPTY_CHOICE:
        choices[wrong[1]] = ""
    letters = ["A", "C" if defect == _WRONG_LETTER else "B", "C", "D"]
    marks = ["" if defect == _NO_LETTER and letter == "A" else f" {letter}:" for letter in letters]
    marked = [mark + choice for mark, choice in zip(marks, choices, strict=True)]
    return f"PMC{case.image_id}_F1.jpg", question.question, answer, *marked, "ABCD"[label]
