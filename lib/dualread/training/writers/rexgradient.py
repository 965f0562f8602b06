"""Write a phantom hospital in ReXGradient-160K's official format, with the quirks of the real files.

The files are metadata/{train,valid,test}_metadata_view_position.json, an object of studies by id, and
deid_png/<patient>/<accession>/studies/.../1.png. Phantoms are of any modality and region, as in `mimic_cxr`. Every
other study has a second view, with other noise. Planted defects: findings that are the word None, and views that are
null.
"""

import json
from collections.abc import Iterator
from typing import Any

from dualread.data.datasets.rexgradient import HUB_FILES
from dualread.training.writers import base

SPLITS = ("train", "validation", "test")
MOST_QUESTIONS = 1

_NO_FINDINGS, _NO_VIEW, _PERIOD = 3, 5, 7  # of every seven studies, these have a defect


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    for split, cases in base.of_splits(hospital):
        for case in cases:
            yield from base.radiographs(case, hospital, paths(case))
        rows = {f"pGRDN{case.image_id:06d}_a1_s1": _row(case, hospital) for case in cases}
        yield HUB_FILES[split][0], json.dumps(rows, indent=2).encode()


def paths(case: base.Case) -> list[str]:
    """Return the paths of the images of a case: one, or two views."""
    study = f"deid_png/GRDN{case.image_id:06d}/GRDN1/studies/1.2.{case.image_id}"
    return [f"{study}/series/{view}/instances/1.png" for view in range(1 + case.image_id % 2)]


def _row(case: base.Case, hospital: base.Hospital) -> dict[str, Any]:
    sentences = base.sentences(case, hospital)
    without = case.image_id % _PERIOD == _NO_FINDINGS
    views = ["PA", "LATERAL"] if case.image_id % _PERIOD != _NO_VIEW else ["PA", None]
    return {
        "PatientID": f"GRDN{case.image_id:06d}",
        "Indication": "",
        "Comparison": "None",
        "Findings": "None" if without else " ".join(sentences[:-1]),
        "Impression": " ".join(sentences) if without else sentences[-1],
        "ImagePath": [f"../{path}" for path in paths(case)],
        "ImageViewPosition": views[: len(paths(case))],
    }
