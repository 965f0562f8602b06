"""Write a phantom hospital in the official format of the VQA-Med 2019 test set, with the quirks of the real files.

The files are VQAMed2019_Test_Questions_w_Ref_Answers.txt (`image|category|question|answer`),
VQAMed2019_Test_Questions.txt (`image|question`) and VQAMed2019_Test_Images/<image>.jpg. There is one question per
image, and all text is in lower case. Half of the questions are answered by yes or no, as many by yes as by no. As in
the real data set, `#` separates alternatives, `(...)` marks optional text, and some images are also in VQA-RAD. Planted
defect: images that are upright only after their EXIF orientation is applied.
"""

from collections.abc import Iterator

import numpy as np
from PIL import Image

from dualread.training.phantoms.questions import SceneQuestion
from dualread.training.writers import base

WORDING: base.Wording = {
    ("modality", "open"): "what imaging modality was used?",
    ("modality", "closed"): None,
    ("plane", "open"): "in what plane was this image taken?",
    ("organ", "open"): "what organ is primarily seen in the image?",
    ("abnormality", "closed"): "is there something wrong in the image?",
    ("abnormality", "open"): "what is the primary abnormality in this image?",
    ("position", "closed"): None,
    ("size", "closed"): None,
}
SPLITS = ("test",)
MOST_QUESTIONS = 1  # the id of a row is its image

_FIRST = 60000
_ROTATED = 7  # every seventh image is stored rotated
_ORIENTATION = 0x0112  # the EXIF tag; 6 means: turn by 90 degrees to the right to see it upright


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    everyone = base.cases_of(hospital, _FIRST)
    for case in everyone:
        yield f"VQAMed2019_Test_Images/synpic{case.image_id}.jpg", _image(case, hospital)
    asked = _asked(everyone, base.random(hospital, "rows"))
    rows = [(f"synpic{case.image_id}", *_texts(question, case)) for case, question in zip(everyone, asked, strict=True)]
    answered = "".join(f"{image}|{category}|{question}|{answer}\n" for image, category, question, answer in rows)
    yield "VQAMed2019_Test_Questions_w_Ref_Answers.txt", answered.encode()
    yield "VQAMed2019_Test_Questions.txt", "".join(f"{image}|{question}\n" for image, _, question, _ in rows).encode()


def _image(case: base.Case, hospital: base.Hospital) -> bytes:
    image = base.picture_of(case, hospital)
    if case.image_id in base.TWINS or case.image_id % _ROTATED:
        return base.jpeg(image)
    exif = Image.Exif()
    exif[_ORIENTATION] = 6
    return base.jpeg(image.transpose(Image.Transpose.ROTATE_90), exif=exif)


def _asked(everyone: list[base.Case], rng: np.random.Generator) -> list[SceneQuestion]:
    """Choose one question per image, so that half of the answers are yes or no in turn, as far as the images allow."""
    asked: list[SceneQuestion] = []
    wanted, n_closed = ["yes", "no"], 0
    for k, case in enumerate(everyone):
        possible = base.questions(case, WORDING)
        closed = [question for question in possible if question.answer == wanted[0]]
        if closed and 2 * n_closed <= k:
            asked.append(_one(closed, rng))
            wanted.reverse()
            n_closed += 1
        else:
            asked.append(_one(_open(possible), rng))
    if n_closed % 2:  # there is one yes more than no
        last = max(k for k, question in enumerate(asked) if question.answer == "yes")
        asked[last] = _one(_open(base.questions(everyone[last], WORDING)), rng)
    return asked


def _open(possible: list[SceneQuestion]) -> list[SceneQuestion]:
    return [question for question in possible if question.answer_type == "open"]


def _one(possible: list[SceneQuestion], rng: np.random.Generator) -> SceneQuestion:
    return possible[int(rng.integers(len(possible)))]


def _texts(question: SceneQuestion, case: base.Case) -> tuple[str, str, str]:
    """Return category, question and answer; some answers have an alternative or optional text."""
    family, answer = question.content_family, question.answer
    if (family, question.answer_type) == ("organ", "open"):
        answer = f"{answer}#{case.scene.region}"
    if (family, question.answer_type) == ("modality", "open"):
        answer = f"{answer} (imaging)"
    return family if family in ("modality", "plane", "organ") else "abnormality", question.question.lower(), answer
