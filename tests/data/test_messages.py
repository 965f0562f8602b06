"""What the readers of data say about what they refuse: messages.txt has one message per case."""

import json
from pathlib import Path

import numpy as np
from pydicom.encaps import encapsulate

from dualread.data.datasets.base import read_json
from dualread.data.donors import pair
from dualread.data.given_images import read
from dualread.data.images import open_image
from dualread.data.questions.audit import refuse_broken
from dualread.data.questions.build import check_digest, image_identities
from dualread.data.questions.pictures import ImageFile
from dualread.data.questions.roles import assign_roles
from dualread.data.tables.files import read_file, read_records
from tests import golden
from tests.data.dicoms import dicom, item
from tests.data.questions.test_build import FILE, MANIFEST, _images, _loaded
from tests.data.questions.test_build import _row as _row_of
from tests.data.questions.test_select import _row as _drawn
from tests.data.questions.test_select import _select
from tests.data.test_donors import OLD_NEW, _manifest, _row, _two

# Files that somebody else wrote: {case: (name, content)}.
TABLES = {
    # `"\"` is a cell by itself, or the start of one that ends at the next quote
    "a backslash that may escape a quote": ("a.csv", 'a,b\n"\\",x\n2,",y\\"\n'),
    "quotes that can be read in two ways": ("a.csv", 'a,b\n",1\nx,2\n",3\n'),
    "a quote that does not end": ("a.csv", 'a,b\n"x,1\ny,2\n'),
    "text behind a quote": ("a.csv", 'a,b\n"x"y,1\n'),
    "commas or semicolons": ("a.csv", "a,b;c\n1,2;3\n"),
    "too few and too many cells": ("a.csv", "a,b\n1\n2,3\n1,2,3\n"),
    "too few cells in twelve rows": ("a.csv", "a,b\n" + "1\n" * 12),
    "a column without a name": ("a.csv", "a,,c\n1,2,3\n"),
    "a NUL": ("a.csv", "a,b\n1,\0\n"),
    "neither UTF-8 nor Windows-1252": ("a.csv", b"a,b\n1,\x81\xff\n"),
    "half a character of UTF-16": ("a.csv", b"\xff\xfea"),
    "a spreadsheet": ("a.csv", b"PK\3\4rest"),
    "a damaged .gz": ("a.csv", b"\x1f\x8bno"),
    "JSON in JSON in JSON": ("a.json", "[" * 100_000),
    "JSON in JSON in JSON, in a line": ("a.jsonl", '{"a": ' * 100_000),
    "an object that is no table": ("a.json", '{"version": 2, "samples": []}'),
    "columns of two lengths": ("a.json", '{"a": [1, 2], "b": [1]}'),
    "columns of other rows": ("a.json", '{"a": {"0": 1}, "b": {"1": 1}}'),
    "a list of numbers": ("a.json", "[1]"),
    "a key twice": ("a.json", '[{"a": 1, "a": 2}]'),
    "nothing": ("a.json", ""),
    "6,000 columns": ("a.json", json.dumps([{str(k): 1 for k in range(6000)}])),
    "lines of numbers": ("a.jsonl", "1\n2\n"),
    "a comma is missing in a list": ("a.json", '[{"a": 1} {"a": 2}]'),
    "a value is missing in a list": ("a.json", '[{"a": 1}, {"a": }]'),
    "a list that does not end": ("a.json", '[{"a": 1}'),
    "text behind a list": ("a.json", '[{"a": 1}]]'),
    "half a character of JSON": ("a.json", '[{"a": "\\ud800"}]'),
}
LINES = '{"a": 1}\n[1]\n{"a": 1\nnull\n{"a": 1, "a": 2}\n'
ROLES = {
    "roles: a share of no image": {"fit": 0.9, "stop": 0.1},
}
JSON_FILES = {
    "a file of rows: a list": '[{"a": 1}]',
    "a file of rows: a key twice": '{"1": {"a": 1, "b": 2, "a": 3}}',
    "a file of rows: not UTF-8": b'{"a": "\xff"}',
}
IMAGES = {
    "an image: nothing": b"",
    "an image: a web page": b"<html>not found</html>",
    "an image: the beginning of a .png": b"\x89PNG\r\n\x1a\n",
}
DRAWN = np.array([[321, 1445], [2248, 3211]])
WINDOW = {"WindowCenter": 1, "WindowWidth": 2}
DICOM = {
    "DICOM: no picture": dicom(DRAWN, Rows=None),
    "DICOM: three frames": dicom(np.stack([DRAWN] * 3)),
    "DICOM: too large": dicom(DRAWN, Rows=65_535, Columns=65_535),
    "DICOM: bits at the upper end": dicom(DRAWN, HighBit=15),
    "DICOM: a presentation LUT": dicom(DRAWN, PresentationLUTSequence=item(LUTDescriptor=[1, 0, 8])),
    "DICOM: colors that are not read": dicom(DRAWN, photometric="HSV"),
    "DICOM: a slope of 0": dicom(DRAWN, RescaleSlope=0, RescaleIntercept=7),
    "DICOM: an intercept without end": dicom(DRAWN, RescaleSlope=1, RescaleIntercept="1e400"),
    "DICOM: a window without width": dicom(DRAWN, WindowCenter=1, WindowWidth=0),
    "DICOM: a window of another function": dicom(DRAWN, **WINDOW, VOILUTFunction="CUBIC"),
    "DICOM: few of 16 bits": dicom(DRAWN, bits=16),
    "DICOM: HTJ2K": dicom(DRAWN, syntax="1.2.840.10008.1.2.4.201", PixelData=encapsulate([b"x"])),
    "DICOM: JPEG that is none": dicom(DRAWN, syntax="1.2.840.10008.1.2.4.50", PixelData=encapsulate([b"x"])),
    "DICOM: fewer pixels than it says": dicom(DRAWN, Rows=4000),
}
IMAGES_OF_ROWS = _images(i1="p1") | {b"embedded": ImageFile(file="f", pixel_sha256="p2", thumbnail=b"")}
GONE = _row_of(1, name="gone")
FOUR = ("liver", "lung", "heart", "kidney")
# Rows of a data set that are refused together.
BROKEN = (
    *(_row_of(0, question=" "), GONE, _row_of(2, reference_answers=()), _row_of(1, source_row=9)),
    _row_of(3, question="<image> What is it?"),
    _row_of(4, options=FOUR, reference_answers=("A",)),
    _row_of(5, options=FOUR, reference_answers=("",)),
    _row_of(6, options=FOUR[:1], reference_answers=("liver",)),
    _row_of(7, options=tuple(map(str, range(11))), reference_answers=("3",)),
    _row_of(8, options=("liver", "<|im_end|>"), reference_answers=("liver",)),
)
# Closed q4 and q5 have pictures of their own; of the open ones q0 too, q1 to q3 share one.
FEW = [_drawn(0), *(_drawn(i, "open", "a") for i in (1, 2, 3)), _drawn(4, "closed"), _drawn(5, "closed")]
RULES = {
    "a draw: too few": {"questions": 7},
    "a draw: too few pictures": {"questions": {"open": 4, "closed": 3}, "max_per_image": 1},
    "a draw: too few of a type": {"questions": {"open": 1, "closed": 3}},
}
CASES = {
    "rows: broken": lambda: refuse_broken(
        _loaded(*BROKEN), {GONE.images[0].source: "/official/imgs/gone.jpg: no such image file."}
    ),
    # Images that a table holds are not printed.
    "rows: one name for two pictures": lambda: image_identities(
        _loaded(_row_of(0), *(_row_of(k, image=b"embedded") for k in (1, 2))), IMAGES_OF_ROWS
    ),
    **{name: lambda rule=rule: _select(FEW, rule) for name, rule in RULES.items()},
    **{name: lambda roles=roles: assign_roles(["a", "b", "c"], roles, 0) for name, roles in ROLES.items()},
    "a table of questions: another digest": lambda: check_digest(
        MANIFEST, "0" * 64, file=FILE, dataset="vqa_rad", split="test"
    ),
    # Every row names itself, which breaks two conditions: it has the same image and the same gold answer.
    "donors: twelve violations": lambda: pair(
        _manifest(*(_row(i, donor_sample_id=f"d/test/{i}") for i in range(6))), []
    ),
    "donors: a role of no image": lambda: pair(
        _manifest(*(_two(i, "a", "bc"[i], reference_answers=[f"{i}"], **OLD_NEW) for i in (0, 1))), [], "later"
    ),
}


def wrote(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_the_messages(tmp_path):
    found = {
        name: golden.message_of(lambda of=of: read_file(wrote(tmp_path, *of)), tmp_path) for name, of in TABLES.items()
    }
    lines = wrote(tmp_path, "a.jsonl", LINES)
    found["broken lines are listed together"] = golden.message_of(lambda: list(read_records(lines).rows), tmp_path)
    for name, content in JSON_FILES.items():
        file = wrote(tmp_path, "rows.json", content)
        found[name] = golden.message_of(lambda file=file: read_json(file, dict, "all"), tmp_path)
    for name, content in IMAGES.items():
        file = wrote(tmp_path, "page.png", content)
        found[name] = golden.message_of(lambda file=file: open_image(file), tmp_path)
    unmarked = wrote(tmp_path, "old.dcm", dicom(DRAWN)[132:])
    found["an image: DICOM without its mark"] = golden.message_of(lambda: read(unmarked), tmp_path)
    absent = tmp_path / "absent.dcm"
    found["an image: no DICOM file"] = golden.message_of(lambda: read(absent), tmp_path)
    found["an image: no file"] = golden.message_of(lambda: open_image(tmp_path / "absent.png"), tmp_path)
    found |= {name: golden.message_of(lambda of=of: read(of)) for name, of in DICOM.items()}
    found["DICOM: frame 4 of three"] = golden.message_of(
        lambda: read(Path(f"{wrote(tmp_path, 'x.dcm', DICOM['DICOM: three frames'])}#4")), tmp_path
    )
    found["DICOM: more than 8 bits"] = golden.message_of(lambda: read(DICOM["DICOM: few of 16 bits"], bits=8))
    found |= {name: golden.message_of(case, tmp_path) for name, case in CASES.items()}
    golden.check(Path(__file__).with_name("messages.txt"), found)
