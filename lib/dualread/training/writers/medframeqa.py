"""Write a phantom hospital in MedFrameQA's official format: several frames of one body, in which a lesion may change.

The files are data/test-00000-of-00001.parquet with question_id, question, options (a list of texts), correct_answer (a
letter), image_1 to image_5 ({bytes, path}, null where there are fewer frames), what describes them, and video_id. Every
third video has three frames, the others two; its last frame shows what it comes to. Two questions about one video have
the same frames. Planted defects: a letter that no option has, and an option that repeats another.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl
from PIL import Image

from dualread.training.phantoms.questions import SceneQuestion
from dualread.training.phantoms.scene import Scene
from dualread.training.writers import base

WORDING: base.Wording = {
    ("organ", "open"): "Which organ do these frames show?",
    ("position", "open"): "Where is the lesion in these frames?",
    ("size", "open"): "How large is the lesion in the last frame?",
}
CHANGE = "How does the lesion change over these frames?"
SPLITS = ("test",)
MOST_QUESTIONS = 1 + len(WORDING)

_CHANGES = ("It grows", "It shrinks", "It stays the same", "There is no lesion")
_PERIOD, _NO_LETTER, _REPEATED = 12, 5, 9  # of every twelve rows, these have a defect
_MOST_FRAMES = 5
_IMAGE = pl.Struct({"bytes": pl.Binary, "path": pl.String})
_TEXTS = ("question_id", "system", "organ", "keyword", "modality", "video_id", "question")


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    rng, rows = base.random(hospital, "rows"), []
    for case in base.cases(hospital):
        frames = [{"bytes": base.png(picture), "path": None} for picture in pictures(case, hospital)]
        for question in base.pick(asked(case), hospital.questions_per_image, rng):
            rows.append(_row(len(rows), case, question, frames))
    images = dict.fromkeys((f"image_{k + 1}" for k in range(_MOST_FRAMES)), _IMAGE)
    texts = dict.fromkeys((*_TEXTS, "correct_answer", "reasoning_chain"), pl.String)
    lists = dict.fromkeys(("options", "image_url"), pl.List(pl.String))
    features = {name: {"_type": "Image"} for name in images}
    yield "data/test-00000-of-00001.parquet", base.parquet(rows, {**texts, **lists, **images}, features)


def scenes(case: base.Case) -> list[Scene]:
    """Return what each frame shows; the last one is the scene of the case."""
    first = case.scene if case.image_id % 2 else base.resized(case.scene)
    return [first, case.scene, case.scene] if case.image_id % 3 == 0 else [first, case.scene]


def pictures(case: base.Case, hospital: base.Hospital) -> list[Image.Image]:
    """Draw the frames: one body in one place, and more noise in each frame than in the one before."""
    noisy = (replace(scene, noise=scene.noise * (1 + k / 4)) for k, scene in enumerate(scenes(case)))
    return [base.picture(replace(case, scene=scene), hospital) for scene in noisy]


def asked(case: base.Case) -> list[SceneQuestion]:
    """Return the questions about the frames."""
    first, *_, last = scenes(case)
    answer = base.change(first, last, _CHANGES)
    change = SceneQuestion(
        content_family="change", answer_type="open", question=CHANGE, answer=answer, options=_CHANGES
    )
    return [change, *base.questions(case, WORDING)]


def _row(k: int, case: base.Case, question: SceneQuestion, frames: list[dict[str, Any]]) -> dict[str, Any]:
    options = [base.written(option) for option in question.options]
    label = question.options.index(question.answer)
    wrong = [place for place in range(len(options)) if place != label]
    if k % _PERIOD == _REPEATED:
        options[wrong[1]] = options[wrong[0]].lower()
    images = {f"image_{i + 1}": frames[i] if i < len(frames) else None for i in range(_MOST_FRAMES)}
    about = {"system": question.content_family, "organ": case.scene.region, "keyword": "lesion"}
    return {
        **{"question_id": f"{k:05d}", **about, "modality": case.scene.modality, "video_id": f"v{case.image_id:05d}"},
        **{"question": question.question, "options": options, "image_url": [], **images},
        "correct_answer": "G" if k % _PERIOD == _NO_LETTER else "ABCD"[label],
        "reasoning_chain": f"The answer is {question.answer}.",
    }
