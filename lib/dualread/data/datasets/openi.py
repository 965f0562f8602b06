"""Indiana University chest X-rays of Open-i (Demner-Fushman et al. 2016): ecgen-radiology/N.xml and NLMCXR_png/*.png.

An XML file is one report: <uId id="CXR1"/>, MedlineCitation/Article/Abstract/AbstractText with the labels COMPARISON,
INDICATION, FINDINGS and IMPRESSION, and one <parentImage id="CXR1_1_IM-0001-3001"> per image, which is the name of its
file. Which view an image is, and who the patient is, is not written there. There are no official splits: reports are
drawn into splits by the digest of their id.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from xml.etree import ElementTree

from pydantic import Field

from dualread.data.datasets._reports import report_row, reportable
from dualread.data.datasets.base import AuditStep, Loaded, Picture, Row
from dualread.data.datasets.settings import ReportSettings
from dualread.data.datasets.source_rows import drawn_splits
from dualread.errors import DataError, refuse
from dualread.schema.base import Split

HUB_FILES = {"train": ("*",), "validation": ("*",), "test": ("*",)}
MOST_SHOWN = 5
DOWNLOAD_GB = 1.4
TERMS = (
    "The license stands in each XML file (licenseURL). Official files: openi.nlm.nih.gov/faq, NLMCXR_reports.tgz"
    " (unpacks to ecgen-radiology/) and NLMCXR_png.tgz (unpack it into NLMCXR_png/). Demner-Fushman et al. 2016"
    " (doi:10.1093/jamia/ocv080)."
)

_REPORTS = "ecgen-radiology"


class Settings(ReportSettings):
    """What is asked, which sections are the reference, which images are shown, and how reports are split."""

    views: Literal["all", "first"] = "all"
    """Whether all images of a report are shown, or the first alone."""
    shares: Annotated[Mapping[Split, Annotated[float, Field(gt=0, le=1)]], Field(min_length=1)] = {
        "train": 0.7,
        "validation": 0.1,
        "test": 0.2,
    }
    """Share of the reports of each split. Reports are ordered by the digest of their id and cut at the shares."""


def load_rows(folder: Path, split: str, settings: Settings) -> Loaded:
    """Return a row per report of `split` that has an image and a reference, in the order of the files' numbers."""
    files = sorted((folder / _REPORTS).glob("*.xml"), key=lambda file: (len(file.stem), file.stem))
    if not files:
        raise DataError(f"{folder / _REPORTS}: no *.xml. Expected the reports of NLMCXR_reports.tgz.")
    reports: dict[str, tuple[Path, ElementTree.Element]] = {}
    problems = []
    for file in files:
        report = _parsed(file)
        identity = report.find("uId")
        name = "" if identity is None else identity.get("id", "")
        if not re.fullmatch(r"[\w-]+", name) or name in reports:
            expected = "an id of its own" if name in reports else 'an element such as <uId id="CXR1"/>'
            problems.append(f"{file}: the id of the report is {name!r}, expected {expected}. Restore the file.")
        reports[name] = file, report
    refuse(problems)
    split_of = drawn_splits(reports, settings.shares)
    rows = [
        _row(folder.absolute() / "NLMCXR_png", k, name, report, settings)
        for k, (name, (_, report)) in enumerate(reports.items())
        if split_of.get(name) == split
    ]
    kept, audit = reportable(rows, settings.sections)
    reason = f"of {len(reports)} reports, by the digest of their id"
    step = AuditStep(step=f"split {split}", kept=len(rows), dropped=len(reports) - len(rows), reason=reason)
    return Loaded(file=folder / _REPORTS, rows=kept, audit=[step, *audit])


def _parsed(file: Path) -> ElementTree.Element:
    content = file.read_bytes()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:  # entities can make a small file huge
        raise DataError(f"{file}: declares a document type, expected plain XML. Restore the official file.")
    try:
        return ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(f"{file}: not XML ({error}). Restore the official file.") from error


def _row(root: Path, k: int, name: str, report: ElementTree.Element, settings: Settings) -> Row:
    sections: dict[str, list[str]] = {}
    for text in report.iterfind("MedlineCitation/Article/Abstract/AbstractText"):
        sections.setdefault(text.get("Label", "").strip().lower(), []).append("".join(text.itertext()))
    names = list(dict.fromkeys(image.get("id", "") for image in report.iterfind("parentImage")))
    refuse(
        f"{name}: image {image!r}: expected the name of a file in the folder of images. Restore the report."
        for image in names
        if not re.fullmatch(r"[\w.-]+", image)
    )
    images = [Picture(root / f"{image}.png", image) for image in names]
    return report_row(settings, name, k, sections, images[:1] if settings.views == "first" else images)
