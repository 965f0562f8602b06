"""What the loaders of data sets say about files and rows that they refuse: messages.txt has one message per case."""

import json
from pathlib import Path

import polars as pl

from dualread import plugins
from dualread.data.datasets.base import load
from tests import golden
from tests.data.datasets.official import (
    IMAGES_2019,
    OF_2019,
    PMC_COLUMNS,
    RAD,
    RAD_IMAGES,
    record,
    write,
    write_rows,
    write_tables,
)

# By loader: rows that it refuses behind a good one, as changes to it.
ROWS = {
    "slake": [
        *({"answer": None}, {"answer": 3}, {"qid": "7"}, {"answer_type": "HALF"}, {"content_type": "Weather"}),
        *({"img_name": " "}, {"q_lang": None}),
    ],
    "vqa_rad": [
        *({"qid": None}, {"qid": "x1"}, {"qid": True}, {"answer": None}, {"answer": True}, {"question": 5}),
        *({"image_organ": None}, {"answer_type": "HALF"}, {"phrase_type": "test"}),
        *({"question_type": "WEATHER, PRES"}, {"image_name": "../synpic1.jpg"}, {"image_name": "/etc/passwd"}),
        *({"image_name": ".."}, {"image_name": ""}, {"image_name": "..\\synpic1.jpg"}),
    ],
    "omnimedvqa": [
        *({"question": None}, {"gt_answer": 3}, {"option_B": 3}, {"modality_type": []}, {"question_id": 7}),
        *({"image_path": "../../x.png"}, {"image_path": "/Images/x.png"}, {"image_path": ""}),
    ],
    "rexvqa": [
        *({"question": None}, {"correct_answer": 1}, {"task_name": 1}, {"options": "A. w"}, {"ImagePath": None}),
        *({"options": ["A. w", None]}, {"ImagePath": []}, {"ImagePath": ["../../secret.png"]}),
        *({"ImagePath": ["/etc/x.png"]}, {"ImagePath": ["..//etc/x.png"]}, {"ImagePath": ["../"]}),
        {"ImagePath": ["../deid_png/../../x"]},
    ],
    "pmc_vqa": [{"Figure_path": path} for path in ("../../etc/passwd", "/etc/passwd", "", "a/../../b.jpg")],
    "table": [
        *({"question": None}, {"question": 3}, {"reference_answers": None}, {"reference_answers": ["a", {}]}),
        *({"reference_answers": []}, {"reference_answers": float("nan")}, {"image": None}, {"image": "../a.png"}),
        *({"image": "/a.png"}, {"image": {"path": "a/../../b"}}, {"image": {"bytes": None}}, {"image": 1}),
        *({"answer_type": "free text"}, {"id": 1.5}, {"id": True}, {"donor_id": ""}, {"options": "a"}),
        *({"options": ["a", " "]}, {"options": list("abcdefghijk")}, {"modality": 1}, {"answer": "x"}),
        *({"qestion": "Is it?"}, {"split": "test"}, {"B": "x", "C": "y"}, {"A": "x", "B": None, "C": "y"}),
        *({"A": "x", "B": "y", "options": ["CT", "MRI"]}, {"options": "['CT', 'CT scan']"}),
        {"reference_answers": '["CT"]'},
        # Gold answers beside options: none of them, two, another letter, numbers from 0 or 1.
        *({"options": ["liver", "lung"], "reference_answers": gold} for gold in ("spleen", "E", "7", "", "1")),
        {"options": ["liver", "Liver.", "lung"], "reference_answers": "the liver"},
        {"options": ["?", "lung"], "reference_answers": "? "},
    ],
}
LINES = (
    *("synpic1|organ|what?", "just text", "|organ|what?|heart", "../synpic1|organ|what?|heart"),
    *("/etc/synpic1|organ|what?|heart", "synpic1|weather|what?|heart"),
)
# Questions and answers of a test set of 2021.
PAIRS = {
    "no answer": ("synpic1|q\nsynpic2|q\n", "synpic1|a\n"),
    "two answers": ("synpic1|q\n", "synpic1|a\nsynpic1|b\n"),
    "two questions": ("synpic1|q\nsynpic1|r\n", "synpic1|a\n"),
    "an empty file of answers": ("synpic1|a or b|a\n", ""),
    "an answer without a bar": ("synpic1|q\n", "synpic1\n"),
    "a question without a bar": ("synpic1\n", "synpic1|a\n"),
    "another folder": ("../a|q\n", "../a|a\n"),
}
SAID = (["Is it?", None], ["Is it?", "Yes", "Why?", "So"])  # by a human and a model, in turns
# Files by their path in the folder of a loader and split; nothing is there where there are none.
FILES = {
    "slake: no file": ("slake", {}),
    "slake: no JSON": ("slake", {"test.json": "[{"}),
    "slake: no list": ("slake", {"test.json": "{}"}),
    "slake: a text": ("slake", {"test.json": '["text"]'}),
    "vqa_rad: no file": ("vqa_rad", {}),
    "vqa_rad: no images": ("vqa_rad", {RAD: "[{"}),
    "vqa_rad: no JSON": ("vqa_rad", {RAD: "[{", f"{RAD_IMAGES}/a": ""}),
    "vqa_rad: a text": ("vqa_rad", {RAD: '["text"]', f"{RAD_IMAGES}/a": ""}),
    "pmc_vqa: no file": ("pmc_vqa", {}),
    "pmc_vqa: other columns": ("pmc_vqa", {"test_clean.csv": "index,Figure_path,Caption,Question,Answer,split\n"}),
    "pmc_vqa: no text": ("pmc_vqa", {"test_clean.csv": b"Figure_path\xff"}),
    "pmc_vqa: fields": ("pmc_vqa", {"test_clean.csv": ",".join(PMC_COLUMNS) + "\na,b\na,b,c,d,e,f,g,h,i\n"}),
    "omnimedvqa: no file": ("omnimedvqa", {}),
    "omnimedvqa: no list": ("omnimedvqa", {"QA_information/Open-access/a.json": "{}"}),
    "omnimedvqa: a text": ("omnimedvqa", {"QA_information/Open-access/b.json": '["text"]'}),
    "rexvqa: no file": ("rexvqa", {}),
    "rexvqa: no object": ("rexvqa", {"metadata/test_vqa_data.json": "[]"}),
    "path_vqa: no file": ("path_vqa", {}),
    "path_vqa: no table": ("path_vqa", {"data/test-00000-of-00001.parquet": "version https://git-lfs.github.com\n"}),
    "table: no file": ("table", {}),
    "table: no JSON": ("table", {"test.jsonl": '{"question"\n'}),
    "table: no row": ("table", {"test.jsonl": "\n"}),
    "table: two files": ("table", {"test.jsonl": "\n", "test.parquet": "PAR1"}),
    "table: no parquet": ("table", {"test.parquet": "PAR1"}),
    **{
        f"table: turns {json.dumps(turns)}": (
            "table",
            {"test.jsonl": json.dumps({"image": "a", "conversations": turns})},
        )
        for turns in (
            *("Is it?", [3, 4], [{"from": "human", "value": "Is it?"}]),
            *(
                [{"from": of, "value": text} for of, text in zip(("human", "gpt") * 2, said, strict=False)]
                for said in SAID
            ),
        )
    },
    "table: no split": (
        "table",
        {"rows.csv": "question,reference_answers,image,split\n?,a,a.png,\n?,a,a.png,held out\n"},
    ),
    "table: groups of some rows": (
        "table",
        {"rows.csv": "question,reference_answers,image,split,group\n?,a,a.png,test,a\n?,a,b.png,test,\n"},
    ),
    "table: an image in two groups": (
        "table",
        {"rows.csv": "question,reference_answers,image,split,group\n?,a,a.png,test,a\n?,a,a.png,test,b\n"},
    ),
    "vqa_med_2019: no file": ("vqa_med_2019", {}),
    "vqa_med_2019: no images": ("vqa_med_2019", {OF_2019: "a|organ|what?|b\n"}),
    "vqa_med_2019: no text": ("vqa_med_2019", {OF_2019: b"\xff", f"{IMAGES_2019}/a": ""}),
    **{
        f"vqa_med_2019: {line}": ("vqa_med_2019", {OF_2019: f"a|organ|what?|b\n{line}\n", f"{IMAGES_2019}/a": ""})
        for line in LINES
    },
    **{
        f"vqa_med_2021: {name}": (
            "vqa_med_2021",
            {
                "VQA-500-Images/a.jpg": "",
                "Task1-VQA-2021-TestSet-Questions.txt": questions,
                "Task1-VQA-2021-TestSet-ReferenceAnswers.txt": answers,
            },
        )
        for name, (questions, answers) in PAIRS.items()
    },
    "vqa_med_2021: no images": (
        "vqa_med_2021",
        {f"Task1-VQA-2021-TestSet-{name}.txt": "" for name in ("Questions", "ReferenceAnswers")},
    ),
}
SETTINGS = {
    "slake": ("test", {"language": "fr"}),
    "vqa_rad": ("train", {}),
    "vqa_rad, splits": ("test", {"official_splits": []}),
    "table": ("test", {"files": {"test": "../*"}}),
}
ROW = (b"one", "a", "b")
HUB = {
    "no question, answer or image": ([ROW, (b"one", None, "b"), (b"one", "a", None)], [ROW, (None, "a", "b")]),
    "two revisions": ([ROW],),
    "a table that is missing": ([ROW], [ROW], [ROW]),
}
OTHERS = {
    "no text": {"image": {"bytes": b"one"}, "question": "a", "answer": b"b"},
    "no bytes": {"image": {"path": "one.png"}, "question": "a", "answer": "b"},
    "no answer": {"image": {"bytes": b"one"}, "question": "a"},
}


def message(loader: str, folder: Path, split: str = "test", settings=None) -> str:
    module = plugins.load("datasets", loader)
    return golden.message_of(lambda: load(module, folder, split, settings or {}), folder)


def test_the_messages(tmp_path):
    folders = (tmp_path / str(k) for k in range(1000))
    found = {}
    for loader, rows in ROWS.items():
        for changes in rows:
            (folder := next(folders)).mkdir()
            write_rows(folder, loader, record(loader), record(loader, **changes))
            found[f"{loader}: {json.dumps(changes)}"] = message(loader, folder)
    for name, (loader, files) in FILES.items():
        (folder := next(folders)).mkdir()
        write(folder, files)
        found[name] = message(loader, folder)
    for name, (split, settings) in SETTINGS.items():
        (folder := next(folders)).mkdir()
        loader = name.partition(",")[0]
        write_rows(folder, loader, record(loader))
        found[f"{name}: {json.dumps(settings)} {split}"] = message(loader, folder, split, settings)
    for name, shards in HUB.items():
        (folder := next(folders)).mkdir()
        write_tables(folder, "test", *shards)
        first, *others = sorted((folder / "data").iterdir())
        if name == "two revisions":
            (folder / "data/test-00000-of-00001-0123456789abcdef.parquet").write_bytes(first.read_bytes())
        if name == "a table that is missing":
            others[0].unlink()
        found[f"path_vqa: {name}"] = message("path_vqa", folder)
    for name, row in OTHERS.items():
        (folder := next(folders) / "data").mkdir(parents=True)
        pl.DataFrame([row]).write_parquet(folder / "test-00000-of-00001.parquet")
        found[f"path_vqa: {name}"] = message("path_vqa", folder.parent)
    golden.check(Path(__file__).with_name("messages.txt"), found)
