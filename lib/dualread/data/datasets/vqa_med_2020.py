"""VQA-Med 2020, task 1 (Ben Abacha et al. 2020): one question about abnormality per radiology image.

4,000, 500 and 500 questions. Each split is a folder of its own archive: see `HUB_FILES` for names, and `_vqa_med` for
the format. 32 of the 500 test questions are answered by yes or no (closed), the others by a diagnosis or a finding.

The images are from MedPix, `synpic<number>` is their number there, and neighbouring numbers are often one case. So
splits, and years, share patients without sharing images; docs/data-sets.md says how many.
"""

from pathlib import Path

from dualread.data.datasets._vqa_med import load_parts
from dualread.data.datasets.base import Loaded
from dualread.schema.base import NoSettings

HUB_FILES = {
    "train": ("*VQAnswering_2020_Train_QA_pairs.txt", "*VQAnswering_2020_Train_images*"),
    "validation": ("*VQAnswering_2020_Val_QA_Pairs.txt", "*VQAnswering_2020_Val_images*"),
    "test": (
        "*VQAMed2020-Task1-VQAnswering-Test-Questions.txt",
        "*VQAMed2020-Task1-VQAnswering-Test-ReferenceAnswers.txt",
        "*Task1-2020-VQAnswering-Test-Images*",
    ),
}
SIZES = {"test": {"open": 468, "closed": 32, "images": 500}}
TERMS = (
    "Ben Abacha et al. 2020 (ceur-ws.org/Vol-2696/paper_106.pdf); no license is stated. Training and validation set:"
    " register at aicrowd.com/challenges/imageclef-2020-vqa-med-vqa. Validation and test set: two archives in"
    " github.com/abachaa/VQA-Med-2020; unpack the images' own archive too."
)


def load_rows(folder: Path, split: str, settings: NoSettings) -> Loaded:
    """Return the questions of a split in the order of its file."""
    return load_parts(folder, HUB_FILES[split])
