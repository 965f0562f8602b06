"""Write a phantom hospital as a table of follow-ups (the loader `table`): a body before, and at later visits.

The files are test.jsonl, with a prior and a current image per row, and images/N_prior.png, N_same.png, N_changed.png.
At one visit the lesion is as it was, at another it is larger or smaller. A question is asked about both, after the same
prior image. So where its answers differ, each has a donor that exchanges the current image alone (`pairing: {role:
current}`). A body without a lesion comes once, and its questions have no such donor.
"""

from collections.abc import Iterator
from dataclasses import replace

from dualread.training.writers import base

WORDING: base.Wording = {
    ("organ", "open"): "Which organ do these images show?",
    ("size", "open"): None,  # as actors of one image are asked; that of the current image counts
}
CHANGE = "How has the lesion changed since the prior image?"
SPLITS = ("test",)
MOST_QUESTIONS = 1 + len(WORDING)

_CHANGES = ("It has grown", "It has shrunk", "It is the same", "There is no lesion")


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    rng, rows = base.random(hospital, "rows"), []
    for case in base.cases(hospital):
        changed = base.resized(case.scene)
        visits = {"prior": case.scene, "same": case.scene} | ({"changed": changed} if changed.lesion_count else {})
        names = {visit: f"images/{case.image_id}_{visit}.png" for visit in visits}
        for visit, scene in visits.items():  # one body in one place; more noise later, and as much at both visits
            noisy = scene if visit == "prior" else replace(scene, noise=scene.noise * 1.25)
            yield names[visit], base.png(base.picture(replace(case, scene=noisy), hospital))
        numbers = base.pick(range(MOST_QUESTIONS), hospital.questions_per_image, rng)
        for visit in [*visits][1:]:
            later = base.questions(replace(case, scene=visits[visit]), WORDING)
            asked = [(CHANGE, base.change(case.scene, visits[visit], _CHANGES))]
            asked += [(question.question, question.answer) for question in later]
            for k in numbers:
                about = {"group": f"body {case.image_id}", "modality": case.scene.modality}
                shown = {"image_1": names["prior"], "image_2": names[visit]}
                row = {"question": asked[k][0], "reference_answers": asked[k][1], "answer_type": "open"}
                rows.append({"id": f"{case.image_id}_{visit}_{k}", **row, **shown, **about})
    yield "test.jsonl", base.json_lines(rows)
