"""Write a phantom hospital as a table of reports (the loader `table`), in which each image with lesions has a twin.

The twin is the same picture, noise included, without the lesions. The files are test.jsonl and images/N.png. The row of
an image names that of its twin as its donor, so that the study's donors are the twins: what a report says of lesions is
then wrong on the donor's image, and all else that it says is as right as before. Images without lesions have no twin.
"""

import json
from collections.abc import Iterator
from dataclasses import replace

from dualread.training.phantoms import reports
from dualread.training.phantoms.scene import Scene
from dualread.training.writers import base

SPLITS = ("test",)
MOST_QUESTIONS = 1


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    rows = []
    for case in base.cases(hospital):
        seed = (hospital.name, hospital.seed, case.image_id)
        shown: dict[str, tuple[Scene, Scene]] = {f"{case.image_id}": (case.scene, case.scene)}
        if case.scene.lesion_count:  # a lesion without contrast takes as many random numbers, so the noise stays
            shown[f"{case.image_id}_removed"] = (
                replace(case.scene, lesion_count=0),
                replace(case.scene, contrast=0.0),
            )
        for name, (reported, drawn) in shown.items():
            yield f"images/{name}.png", base.png(base.picture(replace(case, scene=drawn), hospital))
            report = " ".join(reports.sentences(reported, *seed))
            row = {"id": name, "question": reports.INSTRUCTION, "reference_answers": [report]}
            twin = {"donor_id": f"{name}_removed"} if reported.lesion_count else {}
            rows.append({**row, "image": f"images/{name}.png", **twin})
    yield "test.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode()
