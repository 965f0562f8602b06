"""Write a phantom hospital in ReXVQA's official format, with the quirks of the real files.

The files are metadata/test_vqa_data.json, an object of questions by id, and deid_png/<patient>/.../N.png. Every image
is an X-ray of the chest in one channel, whatever the style says. As in the real data set, options are written "A. text"
and the answer is a letter, `ImagePath` lists several views as paths from the folder of the table, and the report
(`Findings`, `Impression`) contains the answer. Planted defect: questions whose text already contains the options.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dualread.training.phantoms.questions import SceneQuestion, findings
from dualread.training.writers import base

WORDING: base.Wording = {
    ("plane", "open"): None,
    ("abnormality", "open"): "Which of these lesions does this radiograph show?",
    ("position", "open"): None,
    ("size", "open"): "How large is the lesion on this radiograph?",
    ("shape", "open"): None,
    ("color", "open"): None,
    ("quantity", "open"): "How many lesions does this radiograph show?",
}
SPLITS = ("test",)
MOST_QUESTIONS = len(WORDING)

_TASK = {
    "abnormality": "Differential Diagnosis",
    "position": "Location Analysis",
    **dict.fromkeys(("size", "shape"), "Geometric Reasoning"),
}
_INLINE = 3  # the text of every third question contains the options
_VIEWS = ("PA", "LATERAL")


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    chest_x_rays = replace(hospital.style, modalities={"x-ray": 1.0}, regions={"chest": 1.0})
    radiographs = replace(hospital, style=chest_x_rays)
    everyone = base.cases(radiographs)
    for case in everyone:
        yield from base.radiographs(case, radiographs, _paths(case))
    asked = base.drawn(everyone, hospital, WORDING, base.random(hospital, "rows"))
    rows = {f"{case.image_id:06d}_{k}": _row(k, case, question) for k, (case, question) in enumerate(asked)}
    yield "metadata/test_vqa_data.json", json.dumps(rows, indent=2).encode()


def _paths(case: base.Case) -> list[str]:
    """Return one path per view; every other case has two views."""
    study = f"deid_png/GRDN{case.image_id:06d}/studies/1.2.{case.image_id}"
    return [f"{study}/series/{view}/instances/1.png" for view in range(1 + case.image_id % len(_VIEWS))]


def _row(k: int, case: base.Case, question: SceneQuestion) -> dict[str, Any]:
    options = [f"{letter}. {base.written(option)}" for letter, option in zip("ABCD", question.options, strict=True)]
    text = "\n".join([question.question, *options]) if k % _INLINE == 0 else question.question
    paths = _paths(case)
    return {
        "study_id": f"GRDN{case.image_id:06d}",
        "task_name": _TASK.get(question.content_family, "Presence Assessment"),
        "question": text,
        "options": options,
        "correct_answer": "ABCD"[question.options.index(question.answer)],
        "correct_answer_explanation": f"The image shows {findings(case.scene)}.",
        "ImagePath": [f"../{path}" for path in paths],
        "ImageViewPosition": list(_VIEWS[: len(paths)]),
        "ImageModality": ["DX"] * len(paths),
        "Indication": "",
        "Comparison": "",
        "Findings": f"{findings(case.scene)}.",
        "Impression": f"{question.question} {question.answer}.",
    }
