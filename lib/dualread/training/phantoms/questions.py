"""Questions about a phantom and their true answers, open and closed, in all ten content families of SLAKE.

The same 16 questions are asked about every image, so that a question has donors with other answers. Two annotators
write some questions differently (case, spaces, punctuation); normalization makes them equal again.
"""

from dataclasses import dataclass

from dualread.seeding import derive_seed
from dualread.training.phantoms.scene import COLORS, MODALITIES, PLANES, POSITIONS, SHAPES, SIZES, Scene

_ORGAN_OF = {"chest": "lung", "abdomen": "liver", "head": "brain", "pelvis": "bladder"}
_FUNCTION_OF = {"chest": "breathing", "abdomen": "digestion", "head": "thinking", "pelvis": "storing urine"}
_KINDS = ("nodule", "mass", "cyst")
_NONE = "none"  # the answer to a question about a lesion if there is none
_YES_NO = ("yes", "no")
N_QUESTIONS = 16  # about every scene


@dataclass(frozen=True, kw_only=True)
class SceneQuestion:
    """One question about one scene, as its annotator writes it, with the true answer in lower case.

    The content family is one of the ten of SLAKE, in lower case; "knowledge" is SLAKE's KG. The answer type is "open"
    or "closed". `evidence` says in a few words what in the image decides the answer. Wrong answers are those for other
    scenes. For multiple choice, `options` are the answer and three wrong ones, in an order that does not reveal the
    answer; there are none where fewer than three are wrong.
    """

    content_family: str
    answer_type: str
    question: str
    answer: str
    evidence: str = ""
    wrong_answers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def ask(scene: Scene) -> list[SceneQuestion]:
    """Return the 16 questions about `scene`, always in the same order; a pure function of the scene."""
    return [*_about_image(scene), *_about_lesions(scene)]


def findings(scene: Scene) -> str:
    """Describe all that the image shows, in a few words without a comma: "axial ct chest 1 white large round ..."."""
    shown = f"{scene.plane} {scene.modality} {scene.region}"
    if scene.lesion_count == 0:
        return f"{shown} clear"
    lesion = f"{scene.lesion_color} {scene.lesion_size} {scene.lesion_shape} {scene.lesion_position}"
    return f"{shown} {scene.lesion_count} {lesion}"


def _about_image(scene: Scene) -> list[SceneQuestion]:
    modality, plane, region = scene.modality, scene.plane, scene.region
    organ, organs = _ORGAN_OF[region], tuple(_ORGAN_OF.values())
    function, functions = _FUNCTION_OF[region], tuple(_FUNCTION_OF.values())
    modalities, planes = (*MODALITIES, "ultrasound"), (*PLANES, "oblique")
    which_organ = ("Which organ is the main organ in this image?", "Which organ is the main organ  in this image ?")
    which_function = (
        "What is the function of the main organ in this image?",
        "what is the function of the main organ in this image?",
    )
    is_ct = ("Is this a CT scan?", "is this a ct scan?")
    asked = [
        ("modality", "open", ("What modality is used to take this image?",), modality, modalities, modality),
        ("modality", "closed", is_ct, _said(modality == "ct"), _YES_NO, modality),
        ("plane", "open", ("What is the scanning plane of this image?",), plane, planes, plane),
        ("organ", "open", which_organ, organ, organs, region),
        ("organ", "closed", ("Does the picture contain liver?",), _said(organ == "liver"), _YES_NO, region),
        ("knowledge", "open", which_function, function, functions, region),
    ]
    return [_question(scene, *parts) for parts in asked]


def _about_lesions(scene: Scene) -> list[SceneQuestion]:
    seen, count = scene.lesion_count > 0, str(scene.lesion_count)
    size, shape, color, position = (
        value if seen else _NONE
        for value in (scene.lesion_size, scene.lesion_shape, scene.lesion_color, scene.lesion_position)
    )
    is_left = _said(position.endswith("left"))
    kinds, sizes, shapes = (*_KINDS, _NONE), (*SIZES, "medium", _NONE), (*SHAPES, _NONE)
    positions, colors, black_or_white = (*POSITIONS, _NONE), (*COLORS, "gray", _NONE), (*COLORS, _NONE)
    where = ("Where is the lesion in this image?", "Where is the lesion in this image")
    what_color = ("What color is the lesion?", "What color  is the lesion ?")
    how_many = ("How many lesions are in this image?", "how many lesions are in this image?")
    asked = [
        ("abnormality", "closed", ("Does the picture look abnormal?",), _said(seen), _YES_NO, "seen"),
        ("abnormality", "open", ("What kind of lesion is in this image?",), _kind(scene), kinds, f"{color} {size}"),
        ("position", "open", where, position, positions, position),
        ("position", "closed", ("Is the lesion on the left side?",), is_left, _YES_NO, position),
        ("size", "open", ("What is the size of the lesion?",), size, sizes, size),
        ("size", "closed", ("Is the lesion large?",), _said(size == "large"), _YES_NO, size),
        ("shape", "open", ("What is the shape of the lesion?",), shape, shapes, shape),
        ("color", "open", what_color, color, colors, color),
        ("color", "closed", ("Is the lesion white or black?",), color, black_or_white, color),
        ("quantity", "open", how_many, count, ("0", "1", "2", "3"), f"count {count}"),
    ]
    return [
        _question(scene, family, kind, written, answer, answers, f"lesion {evidence}" if seen else "clear")
        for family, kind, written, answer, answers, evidence in asked
    ]


def _question(
    scene: Scene,
    family: str,
    answer_type: str,
    written: tuple[str, ...],
    answer: str,
    answers: tuple[str, ...],
    evidence: str,
) -> SceneQuestion:
    wrong = tuple(other for other in answers if other != answer)
    return SceneQuestion(
        content_family=family,
        answer_type=answer_type,
        question=written[scene.wording % len(written)],
        answer=answer,
        evidence=evidence,
        wrong_answers=wrong,
        options=_options(scene, written[0], answer, wrong) if answer_type == "open" else (),
    )


def _options(scene: Scene, question: str, answer: str, wrong: tuple[str, ...]) -> tuple[str, ...]:
    """Return the answer and three wrong answers, sorted by a digest, so that the order does not reveal the answer."""
    if len(wrong) < 3:
        return ()
    shown = findings(scene)
    place = {value: derive_seed("options", shown, question, value) for value in (answer, *wrong)}
    return tuple(sorted((answer, *sorted(wrong, key=place.__getitem__)[:3]), key=place.__getitem__))


def _kind(scene: Scene) -> str:
    if scene.lesion_count == 0:
        return _NONE
    if scene.lesion_color == "black":
        return "cyst"
    return "mass" if scene.lesion_size == "large" else "nodule"


def _said(true: bool) -> str:
    return "yes" if true else "no"
