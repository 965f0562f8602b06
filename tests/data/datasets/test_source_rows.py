"""What `table` makes of people's own rows: source_rows.txt has their fields, or the refusal, per case."""

import base64
from itertools import count
from pathlib import Path

import polars as pl

from dualread.data.datasets import table
from dualread.data.datasets.base import load
from dualread.data.datasets.source_rows import SPLITS
from tests import golden
from tests.data.datasets.official import record, rows_or_refusal, write, write_rows

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")
ORGANS = ["liver", "lung", "heart", "kidney"]
EVERY = {
    **{"id": 7, "answer_type": "closed", "options": ["a", "b", "c", "d"], "modality": " MRI", "location": "Brain"},
    **{"content_family": "Organ ", "image_id": "scan 3", "donor_id": 8, "reference_answers": "b"},
}
NULLS = ("id", "answer_type", "options", "modality", "location", "content_family", "image_id", "donor_id")


def rows(*changes):
    return [record("table", **({"reference_answers": "a"} | of)) for of in changes]


def asked(*golds):
    """Rows with the options and the gold answer of each."""
    numbers = count()
    return rows(*({"question": f"{next(numbers)}?", "options": of, "reference_answers": gold} for of, gold in golds))


def of_organs(*golds):
    return asked(*((ORGANS, gold) for gold in golds))


def said(*values, question="A lesion?", options=()):
    return rows(*({"question": question, "options": list(options), "reference_answers": value} for value in values))


def turns(*texts, names=("human", "gpt"), keys=("from", "value"), column="conversations"):
    of_turns = [dict(zip(keys, turn, strict=True)) for turn in zip(names * 2, texts, strict=False)]
    return [{"id": "7", "image": "a.png", column: of_turns}]


def of_patients(*patients):
    """A table for all splits, of a training and a test row with these patients."""
    rows = (f"{k},q?,yes,{k}.png,{p},{s}" for k, p, s in zip((0, 1), patients, ("train", "test"), strict=True))
    return {"rows.csv": "\n".join(["id,question,reference_answers,image,patient,split", *rows])}


# Columns, rows, and settings: one column, two or three images, roles, a gap, names of one image, shares.
PRIOR = {"image_roles": ["prior", "current"]}
SEVERAL = (
    ("image_1,image_2,image_3", ["q?,yes,test,a.png,b.png,c.png", "r?,no,test,a.png,b.png,"], {}),
    ("image_1", ["q?,yes,test,a.png"], {}),
    ("image_1,image_2", ["q?,yes,test,a.png,b.png"], PRIOR),
    ("image_1,image_2", ["q?,yes,test,a.png,b.png", "r?,yes,test,a.png,"], PRIOR),
    ("image_1,image_2,image_3", ["q?,yes,test,a.png,,c.png"], {}),
    ("image_1,image_2", ["q?,yes,test,,"], {}),
    ("image_1,image_2,image_id", ["q?,yes,test,a.png,b.png,x"], {}),
    ("image_1,image_2,group", ["q?,yes,test,a.png,b.png,kim", "r?,yes,train,b.png,c.png,lee"], {}),
    ("old,new", ["q?,yes,test,a.png,b.png"], {"columns": {"image_1": "old", "image_2": "new"}}),
    # a and b, b and c: all of them are in one split
    (
        "image_1,image_2",
        [f"{q}?,yes,,{a}.png,{b}.png" for q, (a, b) in enumerate(("ab", "bc", "de", "fg", "hi", "jk"))],
        {"shares": {"train": 0.4, "test": 0.6}, "columns": {"id": "split"}},
    ),
)


def of_splits(train, test):
    def write_both(folder):
        for name, group in (("train", train), ("test", test)):
            row = record("table", id=name, image=f"{name}.png", group=group)
            write_rows(folder, "table", row, name=f"{name}.jsonl")

    return write_both


def parquet(*, name="test.parquet", **columns):
    def write_table(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        n = len(next(iter(columns.values())))
        known = {"question": ["?"] * n, "reference_answers": [["a", "b"]] * n, "id": [str(k) for k in range(n)]}
        pl.DataFrame(known | columns).write_parquet(folder / name)

    return write_table


def options_in(*names):
    texts, golds = [("CT", "MRI", "X-ray"), ("yes", "no", None), (None, None, None)], ("B", "A", "CT")
    return rows(
        *(
            {"question": f"What {k}?", "reference_answers": golds[k]} | dict(zip(names, texts[k], strict=True))
            for k in range(3)
        )
    )


EXCEL = (
    "\ufeffBild;Frage;Antwort;Abteilung\r\n"
    "img\\1.png;Was ist gezeigt?;Röntgen#X-ray;A\r\n"
    '"img/2.png";"Liegt eine Läsion vor,\r\nund ""wo""?";ja;\r\n'
    ";;;\r\n"
)
OF_EXCEL = {
    "columns": {"image": "Bild", "question": "Frage", "reference_answers": "Antwort"},
    "alternatives": "#",
}
SPLIT_ROWS = [record("table", id=of, split=split) for of, split in (("a", "train"), ("b", "test"), ("c", "test"))]
OTHER_NAMES = [{"question": "liver", "answer": "Which organ?", "picture": "a.png", "note": "unused"}]
NAMES = {"question": "answer", "reference_answers": "question", "image": "picture"}
OF_PATIENTS = {"columns": {"group": "patient"}}
MIXED = of_organs(*(ORGANS[k % 4] if k % 3 else "A" for k in range(60)))
TEXTS = {
    "test.csv": "id,question,reference_answers,image,donor_id\n3.0,How many?,2.0,a.png,4.0\n4.0,Why?,tooth #3,b.png,\n"
}
# Rows of test.jsonl, files, or who writes them; the split test, or another; settings.
CASES = {
    "the required columns": (rows({}, {"reference_answers": ["CT", "CT scan"]}),),
    "every column": (rows(EVERY),),
    "nulls": (rows(dict.fromkeys(NULLS)),),
    "yes and no": (rows(*({"reference_answers": of} for of in ("Yes", ["no."], ["yes", "Yes!"], ["yes", "CT"]))),),
    "yes, and open": (rows({"reference_answers": "yes", "answer_type": "open"}),),
    "a split": ({"rows.jsonl": SPLIT_ROWS},),
    "a split without rows": ({"rows.jsonl": SPLIT_ROWS}, "validation"),
    **{
        f"a split {of!r}": ({"rows.jsonl": rows({"split": of})}, split)
        for of, split in (("val", "validation"), ("Valid", "validation"), ("DEV", "validation"), ("Train ", "train"))
    },
    "as Excel saves it": ({"test.csv": EXCEL}, "test", OF_EXCEL),
    "as an old Excel saves it": ({"test.csv": EXCEL.removeprefix("\ufeff").encode("cp1252")}, "test", OF_EXCEL),
    "texts as they are written": (TEXTS,),
    "alternatives": (TEXTS, "test", {"alternatives": "#"}),
    "other names": (OTHER_NAMES, "test", {"columns": NAMES}),
    "a name that is not there": (OTHER_NAMES, "test", {"columns": {**NAMES, "image": "pictur"}}),
    "a column that is not known": (OTHER_NAMES, "test", {"columns": {"images": "picture"}}),
    "a pattern": (parquet(name="data/t-0.parquet", image=["a"]), "test", {"files": {"test": "data/t-*.parquet"}}),
    "no pattern": (parquet(name="data/t-0.parquet", image=["a"]), "train", {"files": {"test": "data/t-*.parquet"}}),
    "paths in parquet": (parquet(image=["a.png"], options=[["a", "b"]]),),
    "bytes in parquet": (parquet(image=[b"x", b"y", b"x"]),),
    **{
        f"an image as {name}": (rows({"image": of}),)
        for name, of in {
            "a list": ["b.png"],
            "a list of structs": [{"bytes": None, "path": "b.png"}],
            "a path of Windows": "img\\b.png",
            "base64": base64.b64encode(PNG).decode(),
            "a data URI": f"data:image/png;base64,{base64.b64encode(PNG).decode()}",
            "a JPEG in base64": base64.b64encode(b"\xff\xd8\xff\xe0" + b"x" * 900).decode(),
        }.items()
    },
    "bytes or paths": (parquet(image=[{"bytes": b"x", "path": "/any/name"}, {"bytes": None, "path": "b.png"}]),),
    "a list of one struct": (parquet(pics=[[{"bytes": PNG, "path": None}]]), "test", {"columns": {"image": "pics"}}),
    "whole numbers": (rows(*({"reference_answers": of} for of in (2, 2.0, 2.5, [1, 2.0], "2.5", -3.0))),),
    "ids": (rows(*({"id": of} for of in (3.0, 4, "007", "7")), {"image_id": 12.0}),),
    "types": (rows(*({"answer_type": of} for of in ("CLOSED", "Open ", "yes/no", "number", "other", " "))),),
    **{
        f"image {str(of)[:40]}": (rows({"image": of}),)
        for of in (
            *(["a.png", "b.png"], ["a.png", None], [], "https://example.com/a.png", "data:image/png;base64,?"),
            *("?" * 5000, "/etc/a"),
        )
    },
    **{
        f"several images {k}": (
            {"rows.csv": "\n".join(("question,reference_answers,split," + names, *lines))},
            "test",
            of,
        )
        for k, (names, lines, of) in enumerate(SEVERAL)
    },
    **{
        f"options {of}": (rows({"options": of, "reference_answers": "CT"}),)
        for of in (
            *({"A": "CT", "B": "MRI"}, {"A": "CT", "B": "MRI", "C": None}, ["(A) CT", "(B) MRI"], [], None),
            ["CT", 2.0],
        )
    },
    "two options, and ten": (asked((["a", "b"], "b"), (list("klmnopqrst"), "t")),),
    "options with an option's letter": (asked((["A. CT", "C. difficile"], "A. CT")),),
    **{
        f"options in {', '.join(of)}": (options_in(*of),)
        for of in (("A", "B", "C"), ("option_a", "option_b", "option_c"), ("Choice A", "Choice B", "Choice C"))
    },
    **{f"a marker: {of}": (turns(of, "Yes"),) for of in ("<image>\nIs it?", "Is it?\n<image>", "<image> Is it?")},
    "a marker inside": (turns("What <image> is it?", "CT"),),
    "messages": (turns("Is it?", "No", names=("user", "assistant"), keys=("role", "content"), column="messages"),),
    # Gold answers that name an option: by its letter, its number, its text, or in several ways.
    **{
        f"letters {', '.join(of)}": (of_organs(*of) + said("CT"),)
        for of in (("A", "D"), ("a", "d"), ("(A)", "D."), ("A. liver", "D) kidney"), ("Option A", "D"))
    },
    "labels and letters": (asked(*((["A. liver", "B. lung", "C. heart"], of) for of in "BA")),),
    "labels and texts": (asked(*((["A. liver", "B. lung", "C. heart"], of) for of in ("heart", "liver"))),),
    **{f"numbers {of}": (of_organs(*of),) for of in (("0", "2"), (0, 3), (4, 1), (4.0, 1.0), ("1", "2"))},
    **{f"{of}": (of_organs("1", "2"), "test", {"gold": of}) for of in ("number from 0", "number from 1")},
    "numbers or texts": (asked((["1", "2", "3"], "2"), (ORGANS, "0")),),
    "numbers, not texts": (asked((["1", "2", "3"], "2"), (ORGANS, "0")), "test", {"gold": "number from 0"}),
    "numbers that are texts": (asked((["0", "1", "2"], "2"), (["0", "1", "2"], "0")),),
    "several ways": (MIXED,),
    "synonyms": (asked((["CT", "MRI"], ["CT", "computed tomography"])),),
    "several letters": (of_organs(["A", "B"], ["D"]),),
    "a letter and a text": (of_organs(["A", "the right lung"], ["D"]),),
    # True and false, where the question asks for them or not.
    **{
        f"{of}, {how}": (said(*of), "test", {"booleans": how} if how else {})
        for of in ((True, False), ("True", "False"), ("TRUE", ["false"]))
        for how in (None, "yes/no", "true/false")
    },
    "true or false": (said("True", question="True or false: is this the liver?"),),
    "true or false in options": (said(True, question="The liver is shown.", options=("true", "false")),),
    "yes or no in options": (said(True, options=("yes", "no")), "test", {"booleans": "yes/no"}),
    # Patients in two splits, and ids that may be one.
    **{
        f"patients {of}": (of_patients(*of), "test", OF_PATIENTS)
        for of in (
            *(
                ("p1", " p1 "),
                ("1", "1.0"),
                ("007", "7"),
                ("7", "007.0"),
                ("a", ""),
                ("", ""),
                ("a", "  "),
                ("a", "NaN"),
            ),
            *(("1e+20", "100000000000000000000"), ("0", "00A"), ("1", "10"), ("1.0", "1.5"), ("007", "008")),
            *(("p1", "P1"), ("1", "-1")),
        )
    },
    "one patient": ({"rows.jsonl": rows(*({"image": "a", "group": of, "split": "test"} for of in (7, "7", 7.0)))},),
    **{
        f"patients of two tables {of}, {split}": (of_splits(*of), split)
        for of, split in ((("p1", "p1"), "test"), (("p1", "p1"), "train"), (("p1", "p2"), "test"), ((7, "007"), "test"))
    },
}


def test_rows_of_people(tmp_path):
    found = {}
    for k, (name, (content, *of)) in enumerate(CASES.items()):
        (folder := tmp_path / str(k)).mkdir()
        split, settings = [*of, *("test", {})[len(of) :]]
        if callable(content):
            content(folder)
        elif isinstance(content, list):
            write_rows(folder, "table", *content)
        elif (lines := content.get("rows.jsonl")) is not None:
            write_rows(folder, "table", *lines, name="rows.jsonl")
        else:
            write(folder, content)
        found[name] = rows_or_refusal("table", folder, split, settings)
    golden.check(Path(__file__).with_name("source_rows.txt"), found)


def test_a_computed_id_depends_on_the_content_only(tmp_path):
    records = rows({}, {"question": "What?"}, {"reference_answers": "MRI"}, {"image": "b.png"}, {"options": ["a", "b"]})
    write_rows(tmp_path, "table", *records)
    ids = [row.official_id for row in load(table, tmp_path, "test", {}).rows]
    assert len(set(ids)) == 5
    write_rows(tmp_path, "table", *(row | {"modality": "ct"} for row in reversed(records)))
    assert [row.official_id for row in load(table, tmp_path, "test", {}).rows] == ids[::-1]
    write_rows(tmp_path, "table", record("table", reference_answers="a", image="./img//a.png"))
    assert load(table, tmp_path, "test", {}).rows[0].official_id == ids[0]  # the same path, spelled differently


def test_equal_bytes_are_one_object(tmp_path):
    parquet(image=[b"x", b"y", b"x"])(tmp_path)
    images = [row.images[0].source for row in load(table, tmp_path, "test", {}).rows]
    assert images[0] is images[2]


def test_shares_split_by_image_and_by_patient_in_any_order(tmp_path):
    # Ten images with two questions each, of five patients. Of images, three fifths would be cut through a patient.
    records = [record("table", id=str(k), image=f"{k // 2}.png", patient=f"p{k // 4}") for k in range(20)]
    shares = {"files": {"rows": "mine.jsonl"}, "shares": {"train": 0.6, "validation": 0.2, "test": 0.2}}

    def groups(settings, size, records=records):
        write_rows(tmp_path, "table", *records, name="mine.jsonl")
        ids = {split: [int(row.official_id) for row in load(table, tmp_path, split, settings).rows] for split in SPLITS}
        assert sorted(k for of in ids.values() for k in of) == list(range(20))
        assert {split: len(of) for split, of in ids.items()} == {"train": 12, "validation": 4, "test": 4}
        found = {split: {k // size for k in of} for split, of in ids.items()}
        assert sum(map(len, found.values())) == 20 / size
        return found

    images = groups(shares, 2, [{name: row[name] for name in row if name != "patient"} for row in records])
    assert {split: len(of) for split, of in images.items()} == {"train": 6, "validation": 2, "test": 2}
    patients = groups(shares | OF_PATIENTS, 4)
    assert {split: len(of) for split, of in patients.items()} == {"train": 3, "validation": 1, "test": 1}
    assert groups(shares | OF_PATIENTS, 4, records[::-1]) == patients
