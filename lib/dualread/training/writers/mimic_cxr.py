"""Write a phantom hospital in MIMIC-CXR's official format, with the quirks of the real files.

The files are mimic-cxr-2.0.0-split.csv.gz and mimic-cxr-2.0.0-metadata.csv.gz, files/p10/p1.../s5.../<dicom id>.jpg,
and the report of each study, files/p10/p1.../s5....txt. Unlike the real images, phantoms are of any modality and
region, because what a report says of these is what tiny models learn first. Each is a patient with one study and one
frontal image. Planted defects: reports without findings, whose impression says it all, and reports with two sections
FINDINGS.
"""

import gzip
from collections.abc import Iterable, Iterator, Sequence

from dualread.training.writers import base

SPLITS = ("train", "validation", "test")
MOST_QUESTIONS = 1
IMAGE_NAME = "d{}"

_SPLIT = {"train": "train", "validation": "validate", "test": "test"}
_NO_FINDINGS, _TWO_FINDINGS, _PERIOD = 3, 5, 7  # of every seven images, these have a defect


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    splits, views = [], []
    for case in base.cases(hospital):
        patient, study, dicom_id = 10000000 + case.image_id, 50000000 + case.image_id, IMAGE_NAME.format(case.image_id)
        place = f"files/p10/p{patient}/s{study}"
        yield f"{place}/{dicom_id}.jpg", base.jpeg(base.picture(case, hospital))
        yield f"{place}.txt", _report(case.image_id, base.sentences(case, hospital)).encode()
        splits.append((dicom_id, study, patient, _SPLIT[case.split]))
        views.append((dicom_id, patient, study, "PA" if case.image_id % 2 else "AP"))
    yield "mimic-cxr-2.0.0-split.csv.gz", _table(("dicom_id", "study_id", "subject_id", "split"), splits)
    yield "mimic-cxr-2.0.0-metadata.csv.gz", _table(("dicom_id", "subject_id", "study_id", "ViewPosition"), views)


def _report(image_id: int, sentences: Sequence[str]) -> str:
    """Return the text of a report, with the line breaks and empty lines of the real ones."""
    *findings, impression = sentences
    sections = [("FINDINGS", findings), ("IMPRESSION", [impression])]
    if image_id % _PERIOD == _NO_FINDINGS:
        sections = [("IMPRESSION", list(sentences))]
    elif image_id % _PERIOD == _TWO_FINDINGS:
        sections = [("FINDINGS", findings[:1]), ("FINDINGS", findings[1:]), ("IMPRESSION", [impression])]
    texts = [f" {name}: \n \n " + "\n ".join(lines) for name, lines in sections]
    head = " " * 33 + "FINAL REPORT\n EXAMINATION:  ___\n \n INDICATION:  ___ year old phantom  // lesions?"
    return "\n \n ".join([head, *(text.lstrip() for text in texts)]) + "\n"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str | int]]) -> bytes:
    return gzip.compress(base.csv_table(columns, rows), mtime=0)
