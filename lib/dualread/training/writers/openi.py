"""Write a phantom hospital in the official format of Open-i's chest X-rays, with the quirks of the real files.

The files are ecgen-radiology/N.xml and NLMCXR_png/CXRN_1_IM-0001-<view>001.png. Phantoms are of any modality and
region, as in `mimic_cxr`. Every other report has two images. Planted defects: reports without images, reports whose
sections are empty, and XXXX where the comparison was.
"""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from dualread.training.writers import base

SPLITS = ("test",)  # the official files have none; the loader draws them
MOST_QUESTIONS = 1

_NO_IMAGE, _EMPTY, _PERIOD = 4, 7, 9  # of every nine reports, these have a defect


def official_files(hospital: base.Hospital) -> Iterator[tuple[str, bytes]]:
    """Yield (relative path, bytes) of every file; the bytes depend on `hospital` only."""
    for case in base.cases(hospital):
        images = [] if case.image_id % _PERIOD == _NO_IMAGE else image_names(case)
        yield from base.radiographs(case, hospital, [f"NLMCXR_png/{name}.png" for name in images])
        report = _report(case, base.sentences(case, hospital), images)
        yield f"ecgen-radiology/{case.image_id + 1}.xml", report.encode()


def image_names(case: base.Case) -> list[str]:
    """Return the names of the images of a case: one, or two views."""
    return [f"CXR{case.image_id + 1}_1_IM-0001-{3 + view}001" for view in range(1 + case.image_id % 2)]


def _report(case: base.Case, sentences: Sequence[str], images: Sequence[str]) -> str:
    *findings, impression = sentences
    texts = {"COMPARISON": "XXXX.", "INDICATION": "", "FINDINGS": " ".join(findings), "IMPRESSION": impression}
    if case.image_id % _PERIOD == _EMPTY:
        texts |= {"FINDINGS": "", "IMPRESSION": "  "}
    abstract = "".join(f"<AbstractText Label={quoteattr(name)}>{escape(texts[name])}</AbstractText>" for name in texts)
    shown = "".join(
        f"<parentImage id={quoteattr(name)}><figureId>F{k}</figureId></parentImage>" for k, name in enumerate(images)
    )
    citation = f"<MedlineCitation><Article><Abstract>{abstract}</Abstract></Article></MedlineCitation>"
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return f'{head}<eCitation><uId id="CXR{case.image_id + 1}"/>{citation}{shown}</eCitation>\n'
