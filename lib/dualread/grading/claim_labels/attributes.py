"""Exact labels for reports on drawn images: a sentence is supported if the reference report says of the image the same.

Reports on drawn images are written in the sentences below (`training.phantoms.reports`). Each of them states one or
more attributes: "Two lesions in the upper left quadrant." states how many lesions there are and where. A reference
states every attribute that its image has, so what it does not state is not the case: a sentence about the size of a
lesion is not supported where the reference says that there is no lesion.

A claim is True if one of the references states all that the claim states, and False otherwise. It is None if it is none
of these sentences, because then it states nothing that is known. Case, white space, and the full stop do not count.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dualread.grading.claim_labels.base import Claim
from dualread.schema.base import NoSettings

VALUES: Mapping[str, tuple[str, ...]] = {
    "plane": ("axial", "coronal", "sagittal"),
    "modality": ("ct", "mri", "x-ray"),
    "region": ("chest", "abdomen", "head", "pelvis"),
    "count": ("no lesion", "one lesion", "two lesions", "three lesions"),
    "position": ("upper left", "upper right", "lower left", "lower right"),
    "size": ("small", "large"),
    "shape": ("round", "oval", "irregular"),
    "color": ("white", "black"),
}
# The attributes that a sentence states, and the ways to word it.
SENTENCES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("plane", "modality"): ("{plane} {modality} image.", "{modality} in {plane} plane."),
    ("region",): ("the {region} is shown.", "image of the {region}."),
    ("count",): ("there is evidence of {count}.", "{count} in this image."),
    ("count", "position"): ("{count} in the {position} quadrant.",),
    ("position",): ("the {position} quadrant is abnormal.", "location in the {position} quadrant."),
    ("size",): ("the size is {size}.", "{size} in size."),
    ("shape", "color"): ("the shape is {shape} and the color is {color}.", "{color} and {shape}."),
    ("size", "shape", "color"): ("{size}, {shape} and {color}.",),
}


# Each wording, with the values of an attribute in place of its name.
_PATTERNS = [
    re.compile(
        re.sub(r"\\\{(\w+)\\\}", lambda name: f"(?P<{name[1]}>{'|'.join(VALUES[name[1]])})", re.escape(wording[:-1]))
    )
    for wordings in SENTENCES.values()
    for wording in wordings
]


def statements(sentence: str) -> dict[str, str] | None:
    """Return what a sentence states, as values by attribute; None if it is none of `SENTENCES`."""
    text = " ".join(sentence.lower().split()).removesuffix(".").rstrip()
    return next((match.groupdict() for pattern in _PATTERNS if (match := pattern.fullmatch(text))), None)


def supported(claims: Sequence[Claim], settings: NoSettings, source: Any) -> list[bool | None]:
    """Return the label of each claim; there are no settings, and no source is read."""
    del settings, source
    return [is_supported(claim.text, claim.references) for claim in claims]


def is_supported(sentence: str, references: Sequence[str]) -> bool | None:
    """Return whether one of the `references` states all that `sentence` states; None if that is nothing known."""
    if (stated := statements(sentence)) is None:
        return None
    by_reference = (
        {name: value for s in sentences_of(reference) for name, value in (statements(s) or {}).items()}
        for reference in references
    )
    return any(stated.items() <= all_stated.items() for all_stated in by_reference)


def sentences_of(report: str) -> list[str]:
    """Return the sentences of a report on a drawn image: each ends with a full stop, or with the report."""
    return [sentence for sentence in re.split(r"(?<=\.)\s+", report.strip()) if sentence]
