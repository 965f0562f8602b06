"""Write a phantom hospital as a table of reports (the loader `table`), in which each image with lesions has a twin.

The twin is the same picture, noise included, without the lesions. The files are test.jsonl and images/N.png. The row of
an image names that of its twin as its donor, so that the study's donors are the twins: what a report says of lesions is
then wrong on the donor's image, and all else that it says is as right as before. Images without lesions have no twin.
"""

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
        name, lesions = str(case.image_id), case.scene.lesion_count
        twin = f"{name}_removed"
        rows.append(_row(name, case.scene, hospital) | ({"donor_id": twin} if lesions else {}))
        yield rows[-1]["image"], base.png(base.picture(case, hospital))
        if lesions:  # those without contrast take as many random numbers, so that the noise is the same
            rows.append(_row(twin, replace(case.scene, lesion_count=0), hospital))
            invisible = replace(case, scene=replace(case.scene, contrast=0.0))
            yield rows[-1]["image"], base.png(base.picture(invisible, hospital))
    yield "test.jsonl", base.json_lines(rows)


def _row(name: str, scene: Scene, hospital: base.Hospital) -> dict[str, str]:
    report = " ".join(reports.sentences(scene, hospital.name, hospital.seed, name))
    return {"id": name, "question": reports.INSTRUCTION, "reference_answers": report, "image": f"images/{name}.png"}
