"""What loaders make of report data sets: reports.txt has, per case, the rows with all their fields, or the refusal."""

import gzip
from pathlib import Path

import pytest

from dualread.data.datasets import mimic_cxr
from tests import golden
from tests.data.datasets.official import rows_or_refusal, write

SPLIT, METADATA = "mimic-cxr-2.0.0-split.csv.gz", "mimic-cxr-2.0.0-metadata.csv.gz"
# As MIMIC-CXR writes reports, with made-up findings.
BOTH = """                                 FINAL REPORT
 EXAMINATION:  CHEST (PA AND LAT)

 INDICATION:  ___F with cough  // IMPRESSION of pneumonia?

 COMPARISON:  ___

 FINDINGS:

 Heart size is
 normal. No  effusion since ___.
 LUNGS: clear.

 IMPRESSION:

 No acute process.

 RECOMMENDATION(S):  none
"""
ALONE = " WET READ: ___ ___ 9:00 AM\n  Clear.\n FINAL REPORT\n CHEST, AP\n\n IMPRESSION:  AP chest:  Clear lungs.\n"
TWICE = " FINDINGS AND IMPRESSION: One.\n\n FINDINGS: \n \n IMPRESSION: \n \n FINDINGS: Two.\n"
NEITHER = "                 FINAL REPORT\n Clear lungs, as before.\n"


def mimic(texts, *, splits=(), metadata=None, **files):
    """The files of studies of the patients 10000032, 10000033 ..., each with a PA and a lateral image."""
    rows, positions = [], []
    for k, text in enumerate(texts):
        patient, study = 10000032 + k // 2, 50414267 + k
        files[f"files/p10/p{patient}/s{study}.txt"] = text
        for view in ("LATERAL", "PA"):
            rows.append(f"d{k}{view[0]}-0,{study},{patient},test")
            positions.append(f"d{k}{view[0]}-0,{patient},{study},CHEST (PA AND LAT),{view},2544")
    head = "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows"
    tables = {
        SPLIT: "\n".join(["dicom_id,study_id,subject_id,split", *rows, *splits]),
        METADATA: "\n".join([head, *positions]) if metadata is None else metadata,
    }
    return {**{name: gzip.compress(text.encode()) for name, text in tables.items()}, **files}


def openi(*abstracts, images=("CXR1_1_IM-0001-3001", "CXR1_1_IM-0001-4001"), **files):
    """The files of reports 1, 2, ..., each with the same images."""
    shown = "".join(f'<parentImage id="{name}"><figureId>F1</figureId></parentImage>' for name in images)
    for k, abstract in enumerate(abstracts, 1):
        texts = "".join(f'<AbstractText Label="{label}">{text}</AbstractText>' for label, text in abstract)
        article = f"<MedlineCitation><Article><Abstract>{texts}</Abstract></Article></MedlineCitation>"
        files[f"ecgen-radiology/{k}.xml"] = f'<eCitation><uId id="CXR{k}"/>{article}{shown}</eCitation>'
    return files


NORMAL = [("COMPARISON", "XXXX."), ("FINDINGS", "Heart size &lt; XXXX.\n Clear."), ("IMPRESSION", "Normal.")]
ALL = {"shares": {"test": 1.0}}
VIEW = "../deid_png/GRDN1/GRDN2/studies/1.2/series/1.3/instances/1.4.png"
STUDY = {"Findings": "Clear  lungs.", "Impression": "Normal.", "Indication": "LEAK", "Comparison": "None"}
STUDY |= {"ImagePath": [VIEW.replace("1.4", "1.5"), VIEW], "ImageViewPosition": ["LL", "POSTERO_ANTERIOR"]}
REX = "metadata/test_metadata_view_position.json"
# fmt: off
CASES = {
    "mimic_cxr: reports": (mimic([BOTH, ALONE, TWICE, NEITHER]), {}),
    "mimic_cxr: findings alone": (mimic([BOTH, ALONE, TWICE]), {"sections": ["findings"]}),
    "mimic_cxr: impression first": (mimic([BOTH]), {"sections": ["impression", "findings"], "question": "Report."}),
    "mimic_cxr: the frontal image": (mimic([BOTH], metadata="dicom_id,ViewPosition\nd0P-0,AP\n"), {"views": "frontal"}),
    "mimic_cxr: no frontal image": (mimic([BOTH], metadata="dicom_id,ViewPosition\nd0P-0,\n"), {"views": "frontal"}),
    "mimic_cxr: an unknown view": (mimic([BOTH], metadata="dicom_id,ViewPosition\nd0P-0,AP\n"), {}),
    "mimic_cxr: a missing report": (mimic([BOTH], splits=["d9-0,50000009,10000009,test"]), {}),
    "mimic_cxr: odd ids": (mimic([BOTH], splits=["../d,50414267,10000032,test", "d,s1,,dev"]), {}),
    "mimic_cxr: no table": ({}, {}),
    "mimic_cxr: no UTF-8": (mimic([b"FINDINGS: \xff"]), {}),
    "openi: reports": (openi(NORMAL, [("FINDINGS", ""), ("IMPRESSION", " ")], [*NORMAL, ("FINDINGS", "Again.")]), ALL),
    "openi: the first image": (openi(NORMAL), {**ALL, "views": "first", "sections": ["impression"]}),
    "openi: no images": (openi(NORMAL, images=()), ALL),
    "openi: no reports": ({}, ALL),
    "openi: no XML": ({"ecgen-radiology/1.xml": "<eCitation>"}, ALL),
    "openi: entities": ({"ecgen-radiology/1.xml": '<!DOCTYPE a [<!ENTITY b "c">]><eCitation/>'}, ALL),
    "openi: ids": (openi(NORMAL, **{
        "ecgen-radiology/2.xml": '<eCitation><uId id="CXR1"/></eCitation>', "ecgen-radiology/10.xml": "<eCitation/>",
    }), ALL),
    "openi: an image outside": (openi(NORMAL, images=["../a"]), ALL),
    "rexgradient: studies": ({REX: {
        "p1_a2_s1.2": STUDY,
        "no findings": STUDY | {"Findings": "None"},
        "nothing": STUDY | {"Findings": None, "Impression": " "},
        "no images": STUDY | {"ImagePath": [], "ImageViewPosition": []},
        "unknown views": STUDY | {"ImageViewPosition": None},
    }}, {}),
    "rexgradient: the frontal image": ({REX: {"a": STUDY}}, {"views": "frontal"}),
    "rexgradient: no file": ({}, {}),
    "rexgradient: odd values": ({REX: {
        "a": STUDY | {"Findings": 3}, "b": STUDY | {"ImagePath": ["../../x.png"]},
        "c": STUDY | {"ImageViewPosition": "PA"},
    }}, {}),
}
# fmt: on


def test_rows_and_refusals(tmp_path):
    found = {}
    for k, (name, (files, settings)) in enumerate(CASES.items()):
        folder = tmp_path / str(k)
        folder.mkdir()
        write(folder, files)
        found[name] = rows_or_refusal(name.partition(":")[0], folder, "test", settings)
    golden.check(Path(__file__).with_name("reports.txt"), found)


@pytest.mark.parametrize(
    ("text", "findings", "impression"),
    [
        ("FINDINGS:\nA.\nIMPRESSION:\nB.", ["A."], ["B."]),
        ("findings: a", [], []),  # headings are in capitals
        ("FINDINGS: A.\n LUNGS: B.\n COMPARISON: C.", ["A. LUNGS: B."], []),
        ("IMPRESSION AND RECOMMENDATION: A.\nNOTIFICATION: B", [], ["A."]),
        ("The FINDINGS: A.", [], []),  # a heading begins its line
    ],
)
def test_sections_by_hand(text, findings, impression):
    sections = mimic_cxr.sections_of(text)
    assert {name: [" ".join(t.split()) for t in texts] for name, texts in sections.items()} == {
        "findings": findings,
        "impression": impression,
    }


def test_the_splits_of_openi_do_not_overlap_and_keep_their_reports(tmp_path):
    write(tmp_path, openi(*[NORMAL] * 20))
    ids = {}
    for split in ("train", "validation", "test"):
        text = rows_or_refusal("openi", tmp_path, split, {})
        ids[split] = {line.split("'")[1] for line in text.splitlines() if line.startswith("'CXR")}
    assert [len(ids[split]) for split in ids] == [14, 2, 4]
    assert len(set.union(*ids.values())) == 20
