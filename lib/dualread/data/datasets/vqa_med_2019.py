"""VQA-Med 2019 (Ben Abacha et al. 2019), test set: 500 radiology images, one question each, with reference answers.

VQAMed2019_Test_Questions_w_Ref_Answers.txt has one line `image|category|question|answer` per question, and the images
are VQAMed2019_Test_Images/<image>.jpg. Lines may end in CRLF, an answer may contain `|`, and blank lines are skipped.
Four images are also in VQA-RAD, byte for byte; their rows are dropped, which leaves 496. A row is closed if and only if
its answer is yes or no (64 rows).

In an answer, `#` separates alternatives and `(...)` marks optional text. Text in brackets that names a side (left,
right, both, bilateral) is kept, because it changes the answer. The reference answers are the answer verbatim and every
variant that this notation allows. Modality and location are not recorded, because some questions ask for them.
"""

import hashlib
import itertools
import re
from pathlib import Path

from dualread.data.datasets._vqa_med import fields_of, place_of
from dualread.data.datasets.base import AuditStep, Loaded, Picture, Row, answer_type
from dualread.errors import refuse
from dualread.schema.base import NoSettings

HUB_FILES = {"test": ("*VQAMed2019_Test_Questions_w_Ref_Answers.txt", "*VQAMed2019_Test_Images*")}
SIZES = {"test": {"open": 432, "closed": 64, "images": 496}}
DOWNLOAD_GB = 0.03
TERMS = (
    "CC BY 4.0, Ben Abacha et al. 2019 (ceur-ws.org/Vol-2380/paper_272.pdf). Official files: VQAMed2019Test.zip of "
    "zenodo.org/records/10499039, or github.com/abachaa/VQA-Med-2019; unpack the images' own archive too."
)

_CATEGORIES = ("abnormality", "modality", "organ", "plane")
# sha256 of the images that are also in VQA-RAD, with their names there.
_IN_VQA_RAD = {
    "72568c462eda507dccefd6919927a5f411c3271be6db7f5aae62cab91a96aa43": "synpic35155",
    "52d1c47a6469080eef668faad51cbfc59f49883e093037e5b98532244ed82344": "synpic39301",
    "b559a75df7b86153eb6d3b119aeb6162e0c34c9b8f84f9dd6fccb677778ce97f": "synpic43433",
    "e9e764ff19196e9c54f4649d1ad938f1a0565f859d6458524c577e66c09b6ad5": "synpic47964",
}
_OPTIONAL = re.compile(r"\(([^()]*)\)")
_LATERALITY = re.compile(r"\b(?:left|right|bilateral|both)\b", re.IGNORECASE)
_MAX_OPTIONAL_PARTS = 4  # 2 ** 4 variants; with more parts, only two: all parts kept and all dropped


def load_rows(folder: Path, split: str, settings: NoSettings) -> Loaded:
    """Return the test questions in the order of the file, without those on images that are also in VQA-RAD."""
    file, images = (place_of(folder, pattern.strip("*")) for pattern in HUB_FILES[split])
    fields = fields_of(file, "image|category|question|answer")
    refuse(
        f"{file}: line {i + 1}: the category is {category!r}, expected {', '.join(_CATEGORIES)}. Correct the line."
        for i, (_, category, *_) in fields.items()
        if category.strip().lower() not in _CATEGORIES
    )
    rows = [_row(images.absolute(), i, *parts) for i, parts in fields.items()]
    files = [images / f"{row.image_name}.jpg" for row in rows]  # a missing one is reported when all images are read
    digests = [hashlib.sha256(image.read_bytes()).hexdigest() if image.is_file() else None for image in files]
    kept = [row for row, digest in zip(rows, digests, strict=True) if digest not in _IN_VQA_RAD]
    audit = AuditStep(
        step="images of VQA-RAD",
        kept=len(kept),
        dropped=len(rows) - len(kept),
        reason=f"dropped if the image is also in VQA-RAD, byte for byte: {', '.join(_IN_VQA_RAD.values())}",
    )
    return Loaded(file=file, rows=kept, audit=[audit])


def _row(images: Path, source_row: int, image: str, category: str, question: str, answer: str) -> Row:
    # The verbatim answer, followed by each alternative with and without its optional text.
    texts = [" ".join(text.split()) for part in answer.split("#") for text in _with_and_without_optional(part)]
    return Row(
        official_id=image.strip(),  # one question per image
        question=question,
        reference_answers=tuple(dict.fromkeys([answer, *filter(None, texts)])),
        answer_type=answer_type(answer),
        content_family=category.strip().lower(),
        images=(Picture(images / f"{image.strip()}.jpg", image.strip()),),
        source_row=source_row,
    )


def _with_and_without_optional(text: str) -> list[str]:
    """Return `text` with each `(...)` kept (without the brackets) or left out, in every combination."""
    parts = _OPTIONAL.split(text)  # plain, optional, plain, optional, ..., plain
    choices = [(part,) if _LATERALITY.search(part) else (part, "") for part in parts[1::2]]
    if len(choices) > _MAX_OPTIONAL_PARTS:
        selections = [tuple(choice[0] for choice in choices), tuple(choice[-1] for choice in choices)]
    else:
        selections = list(itertools.product(*choices))
    plain = parts[0::2]
    return ["".join(itertools.chain(*itertools.zip_longest(plain, chosen, fillvalue=""))) for chosen in selections]
