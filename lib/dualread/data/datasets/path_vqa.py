"""PathVQA (He et al. 2020): questions on pathology images; the hub's tables data/<split>-*.parquet.

The authors' test split has 6,761 rows, of which 42 repeat another row exactly (image, question and answer, in the same
case). The hub's tables hold the other 6,719. Neither has ids; they are computed from the content (see
`dualread.data.datasets._hub_tables`). Some images are CMYK.

PathVQA records no content family. The paper counts its subset of 1,000 questions by family (10 modality, 51 position,
429 presence, 4 size, 506 other) but gives no rule. Here a question belongs to the first of these families of which it
contains a word, in any case; a question without such a word is "other":

    modality    x-ray, ct, mri, ultrasound, microscop...
    position    where, located, location
    size        size
    presence    present

By this rule, the 6,719 test questions are 48 modality, 439 position, 3,058 presence, 32 size and 3,142 other. A subset
drawn as the paper's has about 7, 68, 434, 4 and 487. The paper's rule for presence cannot be that a question opens with
"is", "are" or "does": 496 of 500 closed questions do.
"""

import re
from dataclasses import replace
from pathlib import Path

from dualread.data.datasets._hub_tables import read_rows
from dualread.data.datasets.base import AuditStep, Loaded, Row
from dualread.schema.base import NoSettings

HUB_FILES = {
    "train": ("data/train-*.parquet",),
    "validation": ("data/validation-*.parquet",),
    "test": ("data/test-*.parquet",),
}
DOWNLOAD_GB = 0.16  # of the test split
TERMS = (
    "MIT as declared by the authors, He et al. 2020 (arXiv:2003.10286); the images belong to the publishers of two "
    "textbooks and to the PEIR library. Official files: github.com/UCSD-AI4H/PathVQA; tables: the hub's "
    "flaviagiammarino/path-vqa."
)

_FAMILIES = {
    "modality": re.compile(r"\b(?:x-ray|ct|mri|ultrasound)\b|\bmicroscop"),
    "position": re.compile(r"\b(?:where|located|location)\b"),
    "size": re.compile(r"\bsize\b"),
    "presence": re.compile(r"\bpresent\b"),
}


def load_rows(folder: Path, split: str, settings: NoSettings) -> Loaded:
    """Return the rows of `split` in the order of the tables, without exact repetitions of an earlier row."""
    rows = [row for _, row in read_rows(folder, [split])]
    distinct: dict[str, Row] = {}
    for row in rows:
        question = row.question.lower()
        family = next((family for family, words in _FAMILIES.items() if words.search(question)), "other")
        distinct.setdefault(row.official_id, replace(row, content_family=family))
    repetitions = AuditStep(
        step="exact repetitions",
        kept=len(distinct),
        dropped=len(rows) - len(distinct),
        reason="dropped if image, question and answer are those of an earlier row, in the same case",
    )
    return Loaded(file=folder / "data" / f"{split}-*.parquet", rows=list(distinct.values()), audit=[repetitions])
