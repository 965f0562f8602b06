"""MedPix, the collection that VQA-RAD and VQA-Med 2019 both take their images from, so that some are in both.

Every hospital in one of these formats has the same four twins beside its own images, byte for byte, under the names of
the four that the real data sets share. The report on leakage counts them.
"""

from dataclasses import replace

from PIL import Image

from dualread.data.writers.base import Case, Hospital, cases, picture

TWINS = (35155, 39301, 43433, 47964)
_MEDPIX = Hospital(name="medpix", seed=0, images={"test": len(TWINS)})


def cases_of(hospital: Hospital, first: int) -> list[Case]:
    """Return the hospital's own cases, their numbers from `first` on, and the twins."""
    own = [replace(case, image_id=first + case.image_id) for case in cases(hospital)]
    return [*own, *(replace(case, image_id=TWINS[case.image_id]) for case in cases(_MEDPIX))]


def picture_of(case: Case, hospital: Hospital) -> Image.Image:
    """Draw a case; a twin's picture does not depend on the hospital."""
    return picture(case, _MEDPIX if case.image_id in TWINS else hospital)
