"""Reports on a phantom: three to six sentences that state all its attributes, in words that vary.

The sentences are those of `grading.claim_labels.attributes`, which so decides exactly what a report says.
"""

from dualread.grading.claim_labels.attributes import SENTENCES, VALUES
from dualread.seeding import generator
from dualread.training.phantoms.scene import Scene

INSTRUCTION = "Write a report of this image."
# Which attributes stand together in a sentence, of which no image states one twice.
_ABOUT_IMAGE = (("plane", "modality"), ("region",))
_WITHOUT_LESION = (("count",),)
_ABOUT_LESIONS = (
    (("count",), ("position",), ("size",), ("shape", "color")),
    (("count", "position"), ("size",), ("shape", "color")),
    (("count", "position"), ("size", "shape", "color")),
)
_SHARES = (0.7, 0.2, 0.1)  # most reports are long, so that tiny models write many sentences, each of few attributes


def attributes(scene: Scene) -> dict[str, str]:
    """Return the attributes that a scene has, with the values that reports give them."""
    image = {"plane": scene.plane, "modality": scene.modality, "region": scene.region}
    count = VALUES["count"][scene.lesion_count]
    if not scene.lesion_count:
        return {**image, "count": count}
    looks = {"size": scene.lesion_size, "shape": scene.lesion_shape, "color": scene.lesion_color}
    return {**image, "count": count, "position": scene.lesion_position, **looks}


def sentences(scene: Scene, *names: str | int) -> list[str]:
    """Return the sentences of the report on a scene; their wording is drawn from the seed that `names` give."""
    rng, values = generator("report", *names), attributes(scene)
    rest = _ABOUT_LESIONS[rng.choice(len(_SHARES), p=_SHARES)] if scene.lesion_count else _WITHOUT_LESION
    wordings = (SENTENCES[stated][rng.integers(len(SENTENCES[stated]))] for stated in (*_ABOUT_IMAGE, *rest))
    values["modality"] = {"ct": "CT", "mri": "MRI"}.get(scene.modality, scene.modality)
    written = (wording.format(**values) for wording in wordings)
    return [sentence[0].upper() + sentence[1:] for sentence in written]
