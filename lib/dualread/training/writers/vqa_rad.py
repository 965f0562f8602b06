"""Write a phantom hospital in VQA-RAD's official format, with the quirks of the real files.

The files are "VQA_RAD Dataset Public.json" and "VQA_RAD Image Folder/synpicN.jpg". As in the real data set, each
question, not each image, belongs to train or test (`phrase_type`), and questions of train ask about images of test too.
Some questions have two phrasings with the same `qid_linked_id`. Planted defects: answers that are numbers, tabs after
an answer and a question, a trailing space in `answer_type`, misspelled question types, and a train row that repeats a
test row.
"""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np

from dualread.training.phantoms.questions import SceneQuestion
from dualread.training.writers import base

WORDING: base.Wording = {
    ("modality", "open"): "How was this image taken?",
    ("modality", "closed"): None,
    ("plane", "open"): "What plane is this image in?",
    ("organ", "closed"): "Is the liver visible in the image?",
    ("abnormality", "closed"): "Is there an abnormality in the image?",
    ("abnormality", "open"): "What is the abnormality?",
    ("position", "open"): "Where is the abnormality located?",
    ("position", "closed"): None,
    ("size", "closed"): None,
    ("shape", "open"): "How would you describe the shape of the mass?",
    ("color", "closed"): "Is the abnormality white or black?",
    ("quantity", "open"): "How many lesions are there?",
}
SPLITS = ("train", "test")
MOST_QUESTIONS = len(WORDING)

_FIRST = 10000
_ORGAN = {"chest": "CHEST", "abdomen": "ABD", "head": "HEAD", "pelvis": "ABD"}
_TYPE = {
    **{"modality": "MODALITY", "plane": "PLANE", "organ": "ORGAN", "abnormality": "ABN"},
    **{"position": "POS", "size": "SIZE", "shape": "ATTRIB", "color": "COLOR", "quantity": "COUNT"},
}
_MISSPELLED = {"ATTRIB": "ATRIB", "PRES": "PRSE", "COLOR": "Color"}  # in the first row with each


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    everyone = base.cases_of(hospital, _FIRST)
    for case in everyone:
        yield f"VQA_RAD Image Folder/synpic{case.image_id}.jpg", base.jpeg(base.picture_of(case, hospital))
    rng = base.random(hospital, "rows")
    rows = _with_defects([row for case in everyone for row in _rows(case, hospital, rng)])
    for qid, row in enumerate(rows):
        row["qid"] = str(qid)
    yield "VQA_RAD Dataset Public.json", json.dumps(rows).encode()


def _rows(case: base.Case, hospital: base.Hospital, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    familiar = base.questions(case, dict.fromkeys(WORDING))  # in the wording of the SLAKE writer
    both = list(zip(base.questions(case, WORDING), familiar, strict=True))
    for k, (question, paraphrase) in enumerate(base.pick(both, hospital.questions_per_image, rng)):
        train = case.split == "train" or ("train" in hospital.images and case.image_id not in base.TWINS and k % 3 == 2)
        phrases = ("freeform", "para") if train else ("test_freeform", "test_para")
        linked = str(UUID(bytes=rng.bytes(16)))
        paraphrased, numeric, capitalized = rng.random(3) < 0.5
        answer: str | int = question.answer
        if answer.isdigit() and numeric:
            answer = int(answer)
        elif capitalized or answer in ("yes", "no"):
            answer = answer.capitalize()
        yield _row(case, question, answer, phrases[0], linked)
        if paraphrased and question != paraphrase:
            yield _row(case, paraphrase, answer, phrases[1], linked)


def _row(case: base.Case, question: SceneQuestion, answer: str | int, phrase_type: str, linked: str) -> dict[str, Any]:
    present = (question.content_family, question.answer_type) == ("abnormality", "closed")
    return {
        "qid": "",
        "phrase_type": phrase_type,
        "qid_linked_id": linked,
        "image_case_url": f"https://medpix.nlm.nih.gov/case?id={case.image_id}",
        "image_name": f"synpic{case.image_id}.jpg",
        "image_organ": _ORGAN[case.scene.region],
        "evaluation": "not evaluated",
        "question": question.question,
        "question_rephrase": "NULL",
        "question_relation": "NULL",
        "question_frame": "NULL",
        "question_type": "PRES" if present else _TYPE[question.content_family],
        "answer": answer,
        "answer_type": question.answer_type.upper(),
    }


def _with_defects(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Plant each defect in the first row that allows it; if there is a train split, repeat the first test row there."""
    closed = [row for row in rows if row["answer_type"] == "CLOSED"]
    worded = [row for row in rows if row["answer_type"] == "OPEN" and isinstance(row["answer"], str)]
    for row in closed[:1]:
        row["answer_type"] = "CLOSED "
    for row in worded[:1]:
        row["answer"] += "\t"
    rows[-1]["question"] += "\t"
    for correct, misspelled in _MISSPELLED.items():
        for row in [row for row in rows if row["question_type"] == correct][:1]:
            row["question_type"] = misspelled
    tested = next(row for row in rows if row["phrase_type"] == "test_freeform")
    trained = any(row["phrase_type"] == "freeform" for row in rows)
    return [*rows, {**tested, "phrase_type": "freeform"}] if trained else rows
