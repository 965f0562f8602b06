"""The four images that VQA-RAD and VQA-Med 2019 share, because both data sets take their images from MedPix.

Every phantom hospital in one of these formats has four additional phantoms, the twins. They are the same in all of
them, byte for byte, and have the names of the four images that the real data sets share. The report on leakage counts
them.
"""

from dataclasses import replace

from PIL import Image

from dualread.training.writers.base import Case, Hospital, cases, picture

TWINS = (35155, 39301, 43433, 47964)
_MEDPIX = Hospital(name="medpix", seed=0, images={"test": len(TWINS)})


def cases_of(hospital: Hospital, first: int) -> list[Case]:
    """Return the cases of the hospital, numbered from `first`, followed by the twins."""
    originals = [replace(case, image_id=first + case.image_id) for case in cases(hospital)]
    return [*originals, *(replace(case, image_id=TWINS[case.image_id]) for case in cases(_MEDPIX))]


def picture_of(case: Case, hospital: Hospital) -> Image.Image:
    """Draw a case. The picture of a twin does not depend on the hospital."""
    return picture(case, _MEDPIX if case.image_id in TWINS else hospital)
