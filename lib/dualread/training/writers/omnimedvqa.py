"""Write a phantom hospital in OmniMedVQA's official format, with the quirks of the real files.

The files are QA_information/Open-access/<data set>.json, one per data set of the collection (here one per modality),
and Images/<data set>/N.png, with CT in 16 bits and X-rays in one channel. Planted defects: answers that differ from
their option in letter case or a final dot, answers that are no option, rows with two options, and a row whose modality
is under `modality` instead of `modality_type`.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

from dualread.training.phantoms.questions import SceneQuestion
from dualread.training.writers import base

WORDING: base.Wording = {
    ("modality", "open"): "What imaging technique was employed to obtain this picture?",
    ("plane", "open"): None,
    ("organ", "open"): "Which organ is depicted in this picture?",
    ("organ", "closed"): "Is the liver visible in this picture?",
    ("abnormality", "closed"): None,
    ("abnormality", "open"): "What abnormality is present in this picture?",
    ("position", "open"): None,
    ("size", "open"): "What is the size of the abnormality in this picture?",
    ("shape", "open"): None,
    ("color", "open"): None,
    ("quantity", "open"): "What is the number of lesions in this picture?",
}
SPLITS = ("test",)
MOST_QUESTIONS = len(WORDING)

_SETS = {"ct": "Phantom CT", "mri": "Phantom MR", "x-ray": "Phantom X-ray"}
_MODALITY = {"ct": "CT(Computed Tomography)", "mri": "MR (Mag-netic Resonance Imaging)", "x-ray": "X-Ray"}
_TYPE = {
    "modality": "Modality Recognition",
    **dict.fromkeys(("plane", "organ"), "Anatomy Identification"),
    "abnormality": "Disease Diagnosis",
    "size": "Lesion Grading",
}
_PERIOD, _NO_MATCH = 9, 4  # of every nine rows of a data set, the fifth has an answer that is no option


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    everyone = base.cases(hospital)
    rng = base.random(hospital, "rows")
    for modality, name in _SETS.items():
        chosen = [case for case in everyone if case.scene.modality == modality]
        for case in chosen:
            image = base.picture(case, hospital)
            if modality == "ct":
                image = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
            yield _path(case), base.png(image.convert("L") if modality == "x-ray" else image)
        asked = base.drawn(chosen, hospital, WORDING, rng)
        rows = [_row(k, case, question) for k, (case, question) in enumerate(asked)]
        if modality == "ct" and rows:
            rows[0]["modality"] = rows[0].pop("modality_type")
        if rows:
            yield f"QA_information/Open-access/{name}.json", json.dumps(rows, indent=4).encode()


def _path(case: base.Case) -> str:
    return f"Images/{_SETS[case.scene.modality]}/{case.image_id:04d}.png"


def _row(k: int, case: base.Case, question: SceneQuestion) -> dict[str, Any]:
    name = _SETS[case.scene.modality]
    options = [base.written(option) for option in question.options or ("yes", "no")]
    answer = base.written(question.answer)
    place = options.index(answer)
    if k % 2:
        options[place] += "."
    answers = (answer, answer.lower(), f"{answer}.", answer.upper())
    return {
        "dataset": name,
        "question_id": f"{name}_{k:04d}",
        "question_type": _TYPE.get(question.content_family, "Other Biological Attributes"),
        "question": question.question,
        "gt_answer": "Not recorded" if k % _PERIOD == _NO_MATCH else answers[k % len(answers)],
        "image_path": _path(case),
        **{f"option_{letter}": option for letter, option in zip("ABCD", options, strict=False)},
        "modality_type": _MODALITY[case.scene.modality],
    }
