"""Write a phantom hospital in SLAKE's official format, with the quirks of the real files.

The files are train.json, validate.json, test.json and imgs/xmlabN/source.jpg. As in the real data set, the rows are in
two languages, and only the Chinese rows of one split ask about images of another. The order of the keys varies, and so
does the case of the answers, some of which have two spaces. The training split has one empty answer, and a block of
rows that is repeated with new ids.

Most questions are about the whole image, because the tiny models answer those about lesions badly on every image. Where
all questions are about as hard, it is the image that decides whether an answer is right.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dualread.training.phantoms.questions import N_QUESTIONS, SceneQuestion, ask
from dualread.training.writers import base

SPLITS = ("train", "validation", "test")
MOST_QUESTIONS = N_QUESTIONS
IMAGE_NAME = "xmlab{}"

_FILES = {"train": "train.json", "validation": "validate.json", "test": "test.json"}
_MODALITY = {"ct": "CT", "mri": "MRI", "x-ray": "X-Ray"}
_LOCATION = {"chest": "Lung", "abdomen": "Abdomen", "head": "Brain", "pelvis": "Pelvic Cavity"}
_ORGAN_ZH = {"chest": "肺", "abdomen": "肝脏", "head": "脑", "pelvis": "膀胱"}
_KEYS = ("img_id", "img_name", "question", "answer", "q_lang", "location", "modality", "answer_type")
_KEY_ORDERS = (
    (*_KEYS, "base_type", "content_type", "triple", "qid"),
    (*_KEYS, "base_type", "triple", "qid", "content_type"),
    (*_KEYS, "content_type", "base_type", "triple", "qid"),
)
# How often a question is asked, compared with the others.
_SHARES = {
    **{("modality", "open"): 4.0, ("plane", "open"): 4.0, ("organ", "open"): 4.0, ("knowledge", "open"): 4.0},
    **{("modality", "closed"): 1.0, ("organ", "closed"): 1.0},
    **{("abnormality", "open"): 1.0, ("abnormality", "closed"): 1.0},
}
_SHARE_OF_OTHERS = 0.5  # those about position, size, shape, color and number of lesions
_REPEATED_ROWS = 7  # the real train rows 592 to 598 repeat 585 to 591


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    everyone = base.cases(hospital)
    for case in everyone:
        yield f"imgs/{_file(case)}", base.jpeg(base.picture(case, hospital))
    qid = 0
    for split in (split for split in SPLITS if split in hospital.images):
        rows = list(_rows(split, everyone, hospital, first_qid=qid))
        qid += len(rows)
        yield _FILES[split], (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode()


def _rows(
    split: str, everyone: Sequence[base.Case], hospital: base.Hospital, *, first_qid: int
) -> Iterator[dict[str, Any]]:
    rng = base.random(hospital, "rows", split)
    chosen = [case for case in everyone if case.split == split]
    foreign = [case for case in everyone if case.split != split]
    english = []
    for case in chosen:
        asked = ask(case.scene)
        shares = [_SHARES.get((question.content_family, question.answer_type), _SHARE_OF_OTHERS) for question in asked]
        for question in base.pick(asked, hospital.questions_per_image, rng, shares):
            english.append(_row(case, question, _written(question, rng)))
    if split == "train":  # the defects: the last answer is empty, and the first rows of the first image are repeated
        english[-1]["answer"] = ""
        first = [row for row in english if row["img_id"] == english[0]["img_id"]][:_REPEATED_ROWS]
        english[len(first) : len(first)] = first
    # Chinese rows about every image of this split, and about a few images whose English rows are in other splits.
    n_foreign = min(len(foreign), len(chosen) // 4)
    others = [foreign[i] for i in sorted(rng.choice(len(foreign), n_foreign, replace=False))] if n_foreign else []
    chinese = [row for case in [*chosen, *others] for row in _chinese(case)]
    for qid, row in enumerate([*english, *chinese], start=first_qid):
        order = _KEY_ORDERS[int(rng.choice(3, p=[0.75, 0.2, 0.05]))]
        yield {key: qid if key == "qid" else row[key] for key in order}


def _written(question: SceneQuestion, rng: np.random.Generator) -> str:
    """Return the answer as people write it: CT, Yes, No; other words sometimes capitalized or with two spaces."""
    capitalize, widen = rng.random(2) < (0.5, 0.1)
    answer = _MODALITY.get(question.answer, question.answer)
    if answer == question.answer and (capitalize or answer in ("yes", "no")):
        answer = answer.capitalize()
    return answer.replace(" ", "  ") if widen else answer


def _chinese(case: base.Case) -> Iterator[dict[str, Any]]:
    abnormal = "是" if case.scene.lesion_count else "否"
    for family, kind, question, answer in (
        ("modality", "open", "这张图像使用的是什么成像方式？", _MODALITY[case.scene.modality]),
        ("organ", "open", "图中的主要器官是什么？", _ORGAN_ZH[case.scene.region]),
        ("abnormality", "closed", "图像看起来异常吗？", abnormal),
    ):
        asked = SceneQuestion(content_family=family, answer_type=kind, question=question, answer=answer)
        yield {**_row(case, asked, answer), "q_lang": "zh"}


def _file(case: base.Case) -> str:
    return f"{IMAGE_NAME.format(case.image_id)}/source.jpg"


def _row(case: base.Case, question: SceneQuestion, answer: str) -> dict[str, Any]:
    knowledge = question.content_family == "knowledge"
    return {
        "img_id": case.image_id,
        "img_name": _file(case),
        "question": question.question,
        "answer": answer,
        "q_lang": "en",
        "location": _LOCATION[case.scene.region],
        "modality": _MODALITY[case.scene.modality],
        "answer_type": question.answer_type.upper(),
        "base_type": "kvqa" if knowledge else "vqa",
        "content_type": "KG" if knowledge else question.content_family.capitalize(),
        "triple": ["vhead", "_", "_"],
    }
