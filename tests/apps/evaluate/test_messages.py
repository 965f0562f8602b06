"""What `dualread.evaluate` refuses, and in which words: messages.txt has one message per case."""

from pathlib import Path

import polars as pl
import pytest

import dualread
from tests import golden
from tests.apps.evaluate.tables import ANSWERS, PAIRS, without, write

TWO_METHODS = "method,sample_id,image_id,confidence,correct\na,q1,i1,0.9,1\nb,q1,i1,0.6,1\n"
TWO_SETS = (
    "dataset,sample_id,image_id,confidence,correct\nrad,q1,synpic1,0.9,1\nrad,q2,synpic1,0.2,0\nmed,q1,synpic1,0.7,1\n"
)
OF_TWO_SETS = "dataset,sample_id,donor_image_id,donor_correct,donor_confidence\nrad,q1,synpic2,0,0.4\n"
WITH_GOLDS = """\
sample_id,image_id,question,answer,reference_answer,correct,confidence
q1,ct-01,Is there a lesion?,yes,Yes,1,0.9
q2,ct-02,Is there a lesion?,no,no,1,0.8
q3,ct-03,Is there a lesion?,no,yes,0,0.6
"""
GRADED_PAIRS = "sample_id,donor_image_id,donor_confidence,donor_answer,donor_correct\n"
CLAIMS = """\
report,claim,start,end,cluster_id,correct,confidence
r1,0,0,10,p1,1,0.9
r1,1,10,20,p1,,0.8
r2,0,0,7,p2,0,0.6
"""
OPTIONS = {"A": ["liver", "left", "five"], "B": ["kidney", "right", "six"], "C": ["spleen", "both", "a#b"]}
MANY_WRONG = "confidence,correct\n" + "\n".join(["85%,1"] * 7 + ["0.5,0"])
_OF_CHOICES = {"confidence": [0.5], "correct": [1], "y": [0.5], "reference_answer": ["yes"]}

# Tables of answers, and of pairs beside the usual answers, as .csv: {case: (answers, pairs)}.
TABLES = {
    "no confidence": (without(ANSWERS, "confidence"), None),
    "a confidence with nearly its name": (ANSWERS.replace("confidence", "confidnce"), None),
    "nothing says what is correct": (without(ANSWERS, "correct"), None),
    "gold answers without answers": ("confidence,reference_answer\n0.5,x\n", None),
    "an empty gold answer": ("confidence,answer,reference_answer\n0.5,x,\n", None),
    "a gold answer of punctuation": ("confidence,answer,reference_answer\n0.5,x,?\n", None),
    "a question twice": (ANSWERS.replace("q3", "q1"), None),
    "a missing image": (ANSWERS.replace("q3,ct-01", "q3,"), None),
    "another type of answers": ("confidence,correct,answer_type\n0.5,1,mixed\n", None),
    "a missing method": ("confidence,correct,method\n0.5,1,\n", None),
    "probabilities and percentages": ("sample_id,confidence,correct\na,0.5,1\nb,61,1\nc,0.7,1\nd,80,1\n", None),
    "pairs of answers without names": (without(ANSWERS, "sample_id"), PAIRS),
    "pairs of answers without images": (without(ANSWERS, "image_id"), PAIRS),
    **{
        f"pairs without {name}": (ANSWERS, without(PAIRS, name))
        for name in ("sample_id", "donor_image_id", "donor_confidence", "donor_correct")
    },
    "an image of two patients": (
        ANSWERS.replace("\n", ",p1\n")
        .replace("confidence,p1", "confidence,cluster_id")
        .replace("0.3,p1", "0.3,p2")
        .replace("ct-03", "ct-01"),
        PAIRS,
    ),
    "an image of a patient without a name": (
        ANSWERS.replace("\n", ",p1\n").replace("confidence,p1", "confidence,cluster_id").replace("0.3,p1", "0.3,NA"),
        None,
    ),
    "a pair twice": (ANSWERS, PAIRS.replace("q3", "q1")),
    "a pair of no answer": (ANSWERS, PAIRS.replace("q2", "q9")),
    "pairs of another method": (ANSWERS, PAIRS.replace("sample_id", "method,sample_id").replace("\nq", "\nother,q")),
    "a donor that is the image itself": (ANSWERS, PAIRS.replace("q1,ct-02", "q1,ct-01")),
    "an empty gold answer of a donor": (
        ANSWERS,
        "sample_id,donor_image_id,donor_answer,donor_reference_answer,donor_confidence\nq1,ct-02,yes,,0.5\n",
    ),
    "a donor's confidence in words": (ANSWERS, PAIRS.replace(",0.5\n", ",high\n")),
    "pairs without rows": (ANSWERS, "sample_id\n"),
    "pairs without the methods of the answers": (TWO_METHODS, PAIRS),
    "pairs without the data sets of the answers": (TWO_SETS, without(OF_TWO_SETS, "dataset")),
    "pairs of another data set": (TWO_SETS, OF_TWO_SETS.replace("rad", "red")),
    "a donor with one gold answer in common": (
        WITH_GOLDS,
        "sample_id,donor_image_id,donor_confidence,donor_reference_answer,donor_correct\n"
        "q2,x,0.5,yes,0\nq1,x,0.5,The yes,0\n",
    ),
    "a donor whose own question has the same gold answer": (
        WITH_GOLDS,
        GRADED_PAIRS + "q1,ct-02,0.5,no,1\nq2,ct-03,0.5,no,0\nq3,ct-01,0.5,no,0\n",
    ),
    "one answer is right on both images": (ANSWERS, GRADED_PAIRS + "q1,ct-09,0.5,The Yes,1\n"),
    "a claim twice": (CLAIMS.replace("r1,1", "r1,0"), None),
    "a claim without a name": (CLAIMS.replace("r1,1", "r1,"), None),
    "a claim that may have no name": (CLAIMS.replace("r1,1", "r1,None"), None),
    "claims of no report": (without(CLAIMS, "report"), None),
    "claims that overlap": (CLAIMS.replace("10,20", "9,20"), None),
    "claims whose end nobody says": (without(CLAIMS, "end"), None),
    "claims in a column of another case": (CLAIMS.replace("report,claim", "report,Claim"), None),
    "a claim of no characters": (CLAIMS.replace("10,20", "10,10"), None),
    "a claim before its report": (CLAIMS.replace("0,10", "-1,10"), None),
    "a report of two patients": (CLAIMS.replace("20,p1,,", "20,p2,1,"), None),
    "pairs in percent": (
        ANSWERS,
        PAIRS.replace(",0.5\n", ",50\n").replace(",0.2\n", ",20\n").replace(",0.7\n", ",70\n"),
    ),
}
# Files that are no table: {case: (name, text)}.
FILES = {
    "an empty file": ("mine.csv", ""),
    "a file of blank lines": ("mine.csv", "\n \n"),
    "names of columns alone": ("mine.csv", "a,b\n"),
    "empty cells alone": ("mine.csv", "a,b\n,\n"),
    "a row with more cells": ("mine.csv", "a,b\n1,2,3\n"),
    "a column twice": ("mine.csv", "a,b,a\n1,2,3\n"),
    "a column twice but for a space": ("mine.csv", "a, a\n1,2\n"),
    "half of a character": ("mine.jsonl", '{"a": 1}\n{"a": "\\ud800"}\n'),
    "a torn line of JSON": ("mine.jsonl", '{"a": 1}\n{"a": 1\n'),
    "empty objects": ("mine.jsonl", "{}\n{}\n"),
    "a pretty .jsonl": ("mine.jsonl", '{\n "a": 1\n}'),
    "a file of Excel": ("mine.xlsx", "a"),
    "no suffix": ("mine", "a"),
}
# Values of confidences: {case: text of the .csv}.
CONFIDENCES = {
    **{
        f"the confidence {value!r}": f'correct,confidence\n1,0.5\n0,"{value}"\n1,1\n'
        for value in ("", "NaN", "inf", "-inf", "0,5", "high", "1.0000001", "85", "-0.1")
    },
    **{
        f"the confidence {value!r} beside points": f"confidence;correct\n{value};1\n"
        for value in ("1,234", "0,9;1\n0.8", "0,9,1")
    },
    "some percentages": MANY_WRONG,
}
# Calls with tables in memory: {case: (table, options)}.
SCORES = {"p": [0.5], "label": [1]}
_CHOOSING = {"report": list("abc"), "correct": [1] * 3, "confidence": [0.5] * 3}
_OF_CLAIMS = {**_CHOOSING, "claim": [0] * 3, "confidence": [0.4] * 3, "patient": list("xxy")}
CALLS = {
    "calibration answers that are no claims": (_OF_CLAIMS, {"target_risk": 0.1, "calibration": _CHOOSING}),
    "more reports than can be": (
        _OF_CLAIMS,
        {"target_risk": 0.1, "cluster": "patient", "max_reports": 1}
        | {"calibration": {**_OF_CLAIMS, "patient": list("xyz"), "report": list("def")}},
    ),
    "a number of reports of answers": (
        {"correct": [1], "confidence": [0.5]},
        {"target_risk": 0.1, "max_reports": 2, "calibration": _CHOOSING},
    ),
    "no table": (5, {}),
    "rows that are no mappings": ([[1, 2]], {}),
    "columns of two lengths": ({"confidence": [0.5, 0.6], "correct": [1]}, {}),
    "a column of no table": (SCORES, {"columns": {"confidence": "scor"}}),
    "a name that is not read": (SCORES, {"columns": {"confidences": "p"}}),
    "a name that is nearly read": ({"confidence": [0.5], "correct": [1], "image-id": ["a"]}, {}),
    "a cluster that is no column": ({"confidence": [0.5], "correct": [1]}, {"cluster": "patient"}),
    "a method that is no method": ({"confidence": [0.5], "correct": [1], "method": ["a"]}, {"methods": ["b"]}),
    "no column of methods": ({"confidence": [0.5], "correct": [1]}, {"methods": ["b"]}),
    "two numbers of resamples": (
        {"confidence": [0.5, 0.4], "correct": [1, 0], "replicates": [10, 20]},
        {"replicates": None},
    ),
    "resamples below 0": ({"confidence": [0.5], "correct": [1]}, {"replicates": -1}),
    "an option that is no column": (
        {"confidence": [0.5], "answer": ["A"], "reference_answer": ["A"]},
        {"options": ["D"]},
    ),
    **{
        f"options {answers} {golds}": (
            {**OPTIONS, "confidence": [0.9, 0.8, 0.7], "answer": answers, "reference_answer": golds},
            {"options": ["A", "B", "C"]},
        )
        for answers, golds in (
            (["A", "B", "C"], [1, 2, 1]),
            (["A", "B", "C"], ["A", "B", "heart"]),
            (["A", "B", "C"], ["A", "right", "A"]),
        )
    },
    **{
        f"the gold answer {gold!r}": (
            {"confidence": [0.5, 0.4], "answer": ["a", "b"], "reference_answer": ["a", gold]},
            {},
        )
        for gold in ("NA", "nan", "None", "['a', 'b']", '["a"]', "c('a', 'b')", None)
    },
    "gold answers that are all missing": (
        {"confidence": [0.5], "answer": ["a"], "reference_answer": ["NA"]},
        {"missing": "NA"},
    ),
    "answers that are floats": ({"confidence": [0.5], "answer": [2.0], "reference_answer": ["2"]}, {}),
    "ids that are floats": ({"confidence": [0.5], "correct": [1], "image_id": [2.0]}, {}),
    "ids that were cut": ({"confidence": [0.5], "correct": [1], "image_id": ["1.23E+17"]}, {}),
    "questions that are lists": ({"confidence": [0.5], "correct": [1], "question": [["a"]]}, {}),
    "questions that are bytes": (pl.DataFrame({"confidence": [0.5], "correct": [1], "question": [b"\xff"]}), {}),
    "another kind of verdict": ({"confidence": [0.5], "correct": [2]}, {}),
    "no verdict at all": ({"confidence": [0.5], "correct": [None]}, {}),
    "probabilities and scores of one method": ({"confidence": [0.5, None], "score": [None, 3], "correct": [1, 0]}, {}),
    "neither probability nor score": ({"confidence": [0.5, None], "score": [None, None], "correct": [1, 0]}, {}),
    "a score that is no number": ({"score": ["high"], "correct": [1]}, {}),
    "groups by a column that is not there": ({"confidence": [0.5], "correct": [1], "sex": ["f"]}, {"by": "sxe"}),
    "groups by an empty column": ({"confidence": [0.5], "correct": [1], "sex": [" "]}, {"by": "sex"}),
    "groups by lists": ({"confidence": [0.5], "correct": [1], "sex": [["f", "m"]]}, {"by": "sex"}),
    "groups by numbers": (
        {"confidence": [0.5] * 101, "correct": [1] * 101, "age": [k / 4 for k in range(101)]},
        {"by": "age"},
    ),
    **{
        f"choices {wrong}": (
            {**_OF_CHOICES, **table},
            {"choices": {"yes": "y"}, "calibration": {**_OF_CHOICES, "confidence": [0.4]}, **options},
        )
        for wrong, table, options in (
            ("without calibration", {}, {"calibration": None}),
            ("that are not those of the references", {"reference_answer": ["maybe"]}, {}),
            ("of which the right one has no probability", {"y": [None]}, {}),
            ("without their column", {}, {"choices": {"yes": "p"}}),
            ("that may be missed always", {}, {"miss": 1.0}),
        )
    },
    "choices without references": (
        {"confidence": [0.5], "correct": [1], "y": [0.5]},
        {"choices": {"yes": "y"}, "calibration": _OF_CHOICES},
    ),
    "another decimal sign": (SCORES, {"decimal": ";"}),
    "alternatives that nothing separates": (SCORES, {"alternatives": ""}),
    "a delta without a target risk": (SCORES, {"delta": 1.0}),
    "a target risk without calibration": ({"confidence": [0.5], "correct": [1]}, {"target_risk": 0.1}),
    **{
        f"thresholds with {wrong}": (
            {"confidence": [0.5], "correct": [1]},
            {"calibration": {"confidence": [0.4], "correct": [1]}, "target_risk": 0.1, **wrong},
        )
        for wrong in (
            *({"target_risk": value} for value in (10, 0.0)),
            *({"delta": value} for value in (1.0, 0.0)),
            {"share_delta": 0},
            {"max_per_image": -1},
            {"target_risk": ()},
        )
    },
    "thresholds chosen on the same answers": (
        {"confidence": [0.5], "correct": [1]},
        {"calibration": {"confidence": [0.5], "correct": [1]}, "target_risk": 0.1},
    ),
    "a score of a table": (SCORES, {"score": "label"}),
    "a scale of a table": (SCORES, {"stated_scale": 10}),
}
COMPARED = {
    "a method that is compared with an unknown one": ("a", "bb"),
    "a method that is compared with itself": ("a",),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_refusal_says_where_what_and_what_to_do(folder):
    found = {}
    for case, (answers, pairs) in TABLES.items():
        paths = [write(folder, "mine.csv", answers), *([] if pairs is None else [write(folder, "pairs.csv", pairs)])]
        found[case] = golden.message_of(lambda paths=paths: dualread.evaluate(*paths, replicates=0), folder)
    for case, (name, text) in FILES.items():
        path = write(folder, name, text)
        found[case] = golden.message_of(lambda path=path: dualread.evaluate(path, replicates=0), folder)
    (folder / "folder.csv").mkdir()
    pl.DataFrame({"a": [1]}).write_parquet(folder / "other.csv")
    for case, name in (("no file", "none.csv"), ("a folder", "folder.csv"), ("a parquet called .csv", "other.csv")):
        found[case] = golden.message_of(lambda name=name: dualread.evaluate(folder / name, replicates=0), folder)
    for case, text in CONFIDENCES.items():
        path = write(folder, "mine.csv", text)
        found[case] = golden.message_of(lambda path=path: dualread.evaluate(path, replicates=0), folder)
    for case, (table, options) in CALLS.items():
        named = {"replicates": 0} | options
        found[case] = golden.message_of(lambda table=table, named=named: dualread.evaluate(table, **named))
    path = write(folder, "mine.csv", TWO_METHODS)
    one = write(folder, "one.csv", "\n".join(TWO_METHODS.splitlines()[:2]))
    for case, compare in COMPARED.items():
        table = one if len(compare) == 1 else path
        found[case] = golden.message_of(
            lambda table=table, compare=compare: dualread.evaluate(table, compare=compare), folder
        )
    nameless = pl.read_csv(path).drop("sample_id")
    found["methods without names of questions"] = golden.message_of(lambda: dualread.evaluate(nameless, compare=["a"]))
    golden.check(Path(__file__).with_name("messages.txt"), found)
