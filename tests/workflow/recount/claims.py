"""Claims of reports on drawn images: where they are, and what the reference reports say of them (docs/reports.md).

An image has the attributes that its reference report states; a claim is supported if these include all that it states.
"""

import re
from collections.abc import Iterator, Sequence

_TAG = re.compile(r"</?(?:vision|reasoning|answer|analysis|confidence|vision_confidence|reasoning_confidence)>")
_OPEN, _CLOSE = "<answer>", "</answer>"
_GO_ON = ("approx", "ca", "cf", "dr", "e.g", "fig", "i.e", "incl", "max", "min", "mr", "mrs", "prof", "vs")
_MARK = re.compile(r"[-*•–]|\(?\d{1,2}[.)]")

_VALUES = {
    "PLANE": "axial|coronal|sagittal",
    "MODALITY": "ct|mri|x-ray",
    "REGION": "chest|abdomen|head|pelvis",
    "COUNT": "no lesion|one lesion|two lesions|three lesions",
    "POSITION": "(?:upper|lower) (?:left|right)",
    "SIZE": "small|large",
    "SHAPE": "round|oval|irregular",
    "COLOR": "white|black",
}
_WORDINGS = """
PLANE MODALITY image
MODALITY in PLANE plane
the REGION is shown
image of the REGION
there is evidence of COUNT
COUNT in this image
COUNT in the POSITION quadrant
the POSITION quadrant is abnormal
location in the POSITION quadrant
the size is SIZE
SIZE in size
the shape is SHAPE and the color is COLOR
COLOR and SHAPE
SIZE, SHAPE and COLOR
"""


def claims(completion: str) -> list[str]:
    """Return the sentences of the answer block, or of all the text where there is no valid block."""
    return [sentence for line in _report(completion).split("\n") for sentence in _sentences(line)]


def label(claim: str, references: Sequence[str]) -> bool | None:
    """Return whether a reference states all that the claim states; None if it is no sentence of a drawn report."""
    stated = _stated(claim)
    if stated is None:
        return None
    known = [[_stated(sentence) or {} for sentence in claims(reference)] for reference in references]
    return any(stated.items() <= {k: v for of in found for k, v in of.items()}.items() for found in known)


def _report(completion: str) -> str:
    if completion.count(_OPEN) == completion.count(_CLOSE) == 1:
        before, _, behind = completion.partition(_OPEN)
        inside, ends, after = behind.partition(_CLOSE)
        if ends and not inside.strip():
            return ""
        in_confidence = before.count("<confidence>") == after.count("</confidence>") == 1
        if ends and not _TAG.search(inside) and not in_confidence:
            return inside
    return completion


def _sentences(line: str) -> Iterator[str]:
    words: list[str] = []
    every = line.split()
    for k, word in enumerate(every):
        if not words and _MARK.fullmatch(word) and k + 1 < len(every):
            continue  # the mark of a list
        words.append(word)
        bare = word.rstrip("\"'”’)]")
        if bare.endswith((".", "!", "?")) and not _goes_on(bare, every[k + 1 : k + 2]):
            yield from _claim(words)
            words = []
    yield from _claim(words)


def _goes_on(word: str, following: Sequence[str]) -> bool:
    body = word[:-1].lower().lstrip('(["“')
    is_initial = len(body) == 1 and body.isalpha()
    is_number = body == "no" and following[:1] != [] and following[0][0].isdigit()
    return word.endswith(".") and (body in _GO_ON or is_initial or is_number)


def _claim(words: Sequence[str]) -> Iterator[str]:
    text = " ".join(words)
    if any(character.isalnum() for character in text):
        yield text


def _stated(sentence: str) -> dict[str, str] | None:
    """Return the attributes that a sentence of a drawn report states."""
    text = " ".join(sentence.lower().split()).removesuffix(".").rstrip()
    for wording in _WORDINGS.strip().split("\n"):
        pattern = re.sub("[A-Z]+", lambda name: f"(?P<{name[0]}>{_VALUES[name[0]]})", wording)
        if found := re.fullmatch(pattern, text):
            return found.groupdict()
    return None
