"""VQA-Med 2021, task 1 (Ben Abacha et al. 2021): one question about abnormality per radiology image.

The training set is that of 2020, with 2020's validation set: 4,500 questions from the same files, which have to lie in
the same folder. New are 500 questions for validation and 500 for testing. 75 of the test questions have two or more
right answers, and none is answered by yes or no. See `_vqa_med` for the format.

A study that reports on a split of 2020 while actors or readers are fitted on the training set of 2021 is refused
where they share images. Neighbouring numbers of images are often one case, see `vqa_med_2020`.
"""

from pathlib import Path

from dualread.data.datasets import vqa_med_2020
from dualread.data.datasets._vqa_med import load_parts
from dualread.data.datasets.base import Loaded
from dualread.schema.base import NoSettings

HUB_FILES = {
    "train": ("*VQAnswering_2020_Train*", "*VQAnswering_2020_Val*"),
    "validation": (
        "*VQA-Med-2021-VQAnswering-Task1-New-ValidationSet.txt",
        "*ImageCLEF-2021-VQA-Med-New-Validation-Images*",
    ),
    "test": (
        "*Task1-VQA-2021-TestSet-Questions.txt",
        "*Task1-VQA-2021-TestSet-ReferenceAnswers.txt",
        "*VQA-500-Images*",
    ),
}
SIZES = {"test": {"open": 500, "closed": 0, "images": 500}}
TERMS = (
    "Ben Abacha et al. 2021 (CLEF 2021 Working Notes, ceur-ws.org/Vol-2936); no license is stated. Training set: that"
    " of 2020, aicrowd.com/challenges/imageclef-2020-vqa-med-vqa. Validation and test set: two archives in"
    " github.com/abachaa/VQA-Med-2021; unpack the images' own archive too."
)


def load_rows(folder: Path, split: str, settings: NoSettings) -> Loaded:
    """Return the questions of a split in the order of its files."""
    earlier = (vqa_med_2020.HUB_FILES["train"], vqa_med_2020.HUB_FILES["validation"])
    return load_parts(folder, *(earlier if split == "train" else [HUB_FILES[split]]))
