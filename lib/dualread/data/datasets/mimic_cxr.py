"""MIMIC-CXR (Johnson et al. 2019): reports on chest X-rays; the texts of MIMIC-CXR and the images of MIMIC-CXR-JPG.

The files are mimic-cxr-2.0.0-split.csv.gz (dicom_id, study_id, subject_id, split), mimic-cxr-2.0.0-metadata.csv.gz
(ViewPosition of each dicom_id), files/p10/p10000032/s50414267/<dicom_id>.jpg, and the report of that study,
files/p10/p10000032/s50414267.txt. So both archives are unpacked into one folder.

A report is free text. A section begins at a line that starts with one of the usual headings in capitals and a colon.
Other words in capitals with a colon ("LUNGS:") belong to the section in which they stand.
"""

import re
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dualread.data.datasets._reports import report_row, reportable, shown
from dualread.data.datasets.base import Allowed, Loaded, Picture, check_records, lines_of, word_of
from dualread.data.datasets.settings import ViewedReportSettings
from dualread.data.tables.files import read_records
from dualread.errors import DataError, refuse

_SPLITS = {"train": "train", "validation": "validate", "test": "test"}
_SPLIT_FILE, _METADATA = "mimic-cxr-2.0.0-split.csv.gz", "mimic-cxr-2.0.0-metadata.csv.gz"
HUB_FILES = {"train": ("files/*", "*.csv.gz"), "validation": ("files/*", "*.csv.gz"), "test": ("files/*", "*.csv.gz")}
MOST_SHOWN = 20  # images of a study
DOWNLOAD_GB = 558  # the images of all splits
TERMS = (
    "PhysioNet credentialed health data license: physionet.org/content/mimic-cxr (reports: mimic-cxr-reports.zip) and"
    " physionet.org/content/mimic-cxr-jpg (images, tables). Johnson et al. 2019 (doi:10.1038/s41597-019-0322-0). Terms"
    " forbid sending the reports to services of others."
)

_NUMBER = Allowed(lambda value: isinstance(value, str) and value.isdecimal(), "digits")
_FIELDS = {
    "dicom_id": Allowed(lambda value: isinstance(value, str) and re.fullmatch(r"[\w-]+", value) is not None, "an id"),
    "study_id": _NUMBER,
    "subject_id": _NUMBER,
    "split": word_of(*_SPLITS.values()),
}
_S = r"(?:S|\(S\))?"
_OTHERS = (
    *("FINAL REPORT", "WET READ", "ADDENDUM", "EXAM(?:INATION)?", "STUDY", "PROCEDURE", "TECHNIQUE", "HISTORY"),
    *(f"INDICATION{_S}", "CLINICAL (?:HISTORY|INDICATION|INFORMATION)", "REASON FOR EXAM(?:INATION)?"),
    *(f"COMPARISON{_S}", f"CONCLUSION{_S}", f"RECOMMENDATION{_S}", f"NOTIFICATION{_S}"),
)
_HEADING = re.compile(
    r"^[ \t]*(?:(?P<findings>FINDINGS(?:(?: AND |/)IMPRESSION)?)"
    rf"|(?P<impression>IMPRESSION(?:(?: AND |/)RECOMMENDATION{_S})?)|{'|'.join(_OTHERS)})[ \t]*:",
    re.MULTILINE,
)


class Settings(ViewedReportSettings):
    """What is asked, which sections are the reference, and which views are shown."""


def load_rows(folder: Path, split: str, settings: Settings) -> Loaded:
    """Return a row per study of `split` that has a reference report, in the order of the table of splits."""
    file = folder / _SPLIT_FILE
    records = [record for record in _table(file, list(_FIELDS)) if record["split"] == _SPLITS[split]]
    metadata = _table(folder / _METADATA, ["dicom_id", "ViewPosition"])
    views = {record["dicom_id"]: record["ViewPosition"] for record in metadata}
    studies: dict[tuple[str, str], list[str]] = {}
    for record in records:
        studies.setdefault((record["subject_id"], record["study_id"]), []).append(record["dicom_id"])
    places = {study: f"files/p{study[0][:2]}/p{study[0]}/s{study[1]}" for study in studies}
    texts = {study: folder / f"{place}.txt" for study, place in places.items()}
    refuse(f"{text}: no such file. Expected the report of a study." for text in texts.values() if not text.is_file())
    rows = []
    for k, ((patient, study), dicom_ids) in enumerate(studies.items()):
        place = folder.absolute() / places[patient, study]
        images = [(views.get(name), Picture(place / f"{name}.jpg", name)) for name in dicom_ids]
        report = sections_of("\n".join(lines_of(texts[patient, study]).values()))
        rows.append(report_row(settings, f"s{study}", k, report, shown(images, settings.views), patient))
    kept, audit = reportable(rows, settings.sections)
    return Loaded(file=file, rows=kept, audit=audit)


def sections_of(report: str) -> dict[str, list[str]]:
    """Return the texts of findings and impression of a report, in their order."""
    headings = list(_HEADING.finditer(report))
    sections: dict[str, list[str]] = {"findings": [], "impression": []}
    for heading, following in zip_longest(headings, headings[1:]):
        if heading.lastgroup:
            sections[heading.lastgroup].append(report[heading.end() : following.start() if following else None])
    return sections


def _table(file: Path, columns: list[str]) -> list[Mapping[str, Any]]:
    """Return the rows of a table, with the `columns` alone."""
    if not file.is_file():
        raise DataError(f"{file}: no such file. Expected {_SPLIT_FILE} and {_METADATA} beside files/.")
    numbered = list(read_records(file).rows)
    fields = {name: field for name, field in _FIELDS.items() if name in columns}
    check_records(((file, number, record) for number, record in numbered), fields)
    return [{name: record.get(name) for name in columns} for _, record in numbered]
