"""Tables whose columns have names of their own, and those with the options of multiple-choice questions."""

import re

import polars as pl
import pytest

import dualread
from dualread.apps import main as program
from tests.apps.evaluate.tables import write

MINE = "qid,scan,p,label\n1,a,0.9,1\n2,a,0.2,0\n3,b,0.6,1\n4,b,0.7,0\n"
PAIRS = "qid,donor_scan,donor_score,donor_label\n1,b,0.5,0\n3,a,0.8,0\n"
NAMES = {"confidence": "p", "correct": "label", "image_id": "scan", "sample_id": "qid"}


def estimates(found):
    return found.metrics.drop("method", "reason").sort("metric", "subset")


def test_a_table_with_names_of_its_own_is_read(tmp_path):
    mine = write(tmp_path, "mine.csv", MINE)
    plain = pl.read_csv(mine).rename({own: name for name, own in NAMES.items()})
    found = dualread.evaluate(mine, columns=NAMES, replicates=50)
    assert estimates(found).equals(estimates(dualread.evaluate(plain, replicates=50)))
    assert found.unused == []


def test_the_names_hold_for_pairs_too(tmp_path):
    mine, pairs = write(tmp_path, "mine.csv", MINE), write(tmp_path, "pairs.csv", PAIRS)
    of_donors = {"donor_image_id": "donor_scan", "donor_confidence": "donor_score", "donor_correct": "donor_label"}
    found = dualread.evaluate(mine, pairs, columns={**NAMES, **of_donors}, replicates=0)
    value = found.metrics.filter(metric="natural_ccg_auc", subset="all")["estimate"].item()
    assert value == 0.5  # of the two pairs, .9 > .5 and .6 < .8
    named = write(tmp_path, "named.csv", PAIRS.replace("qid", "sample_id"))  # a table that has the usual name already
    again = dualread.evaluate(mine, named, columns={**NAMES, **of_donors}, replicates=0)
    assert estimates(again).equals(estimates(found))


def test_names_may_be_exchanged():
    table = {"confidence": [0.9, 0.2], "prediction": ["yes", "no"], "answer": ["Yes", "yes"]}
    found = dualread.evaluate(table, columns={"answer": "prediction", "reference_answer": "answer"}, replicates=0)
    assert found.parts[0].methods["predictions"].answers["correct"].to_list() == [False, True]
    assert found.notes == []


def test_a_column_that_another_one_replaces_is_named():
    table = {"confidence": [9.0, 2.0], "score": [0.9, 0.2], "correct": [1, 0]}
    found = dualread.evaluate(table, columns={"confidence": "score"}, replicates=0)
    assert found.unused == ["predictions: 1 column not used: confidence"]
    assert sorted(found.parts[0].methods["predictions"].answers["confidence"]) == [0.2, 0.9]


def test_a_column_may_have_two_uses_and_be_a_cluster():
    table = {"confidence": [0.9, 0.2, 0.4], "correct": [1, 0, 1], "scan": ["a", "b", "b"]}
    found = dualread.evaluate(table, columns={"image_id": "scan", "question": "scan"}, cluster="scan", replicates=0)
    assert found.metrics.filter(metric="auroc", subset="all")["n_clusters"].item() == 2
    assert found.unused == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["score"], "--columns score: expected NAME=YOURS, such as confidence=p_true."),
        (["confidence="], "--columns confidence=: expected NAME=YOURS"),
        (["confidence=a", "confidence=b"], "--columns: confidence=a and confidence=b; expected one column per name."),
    ],
)
def test_words_of_another_form_are_refused(tmp_path, words, message, monkeypatch, capsys):
    write(tmp_path, "mine.csv", MINE)
    monkeypatch.chdir(tmp_path)
    assert program.main(["evaluate", "mine.csv", "--columns", *words]) == 1
    assert message in capsys.readouterr().err


def test_the_program_takes_names(tmp_path, monkeypatch, capsys):
    write(tmp_path, "mine.csv", MINE)
    monkeypatch.chdir(tmp_path)
    words = [f"{name}={own}" for name, own in NAMES.items()]
    assert program.main(["evaluate", "mine.csv", "--columns", *words, "--replicates", "0", "--all"]) == 0
    assert re.search(r"\naccuracy +0\.5000", capsys.readouterr().out)


OPTIONS = {"A": ["liver", "left", "five"], "B": ["kidney", "right", "six"], "C": ["spleen", "both", "a#b"]}


def accuracy(answers, references, columns=("A", "B", "C"), **more):
    table = {**OPTIONS, "confidence": [0.9, 0.8, 0.7], "answer": answers, "reference_answer": references, **more}
    found = dualread.evaluate(table, replicates=0, options=columns)
    assert not found.unused
    return found.metrics.filter(subset="all", metric="accuracy")["estimate"][0]


@pytest.mark.parametrize(
    ("answers", "references"),
    [
        (["A", "(B)", "C."], ["liver", "right", "five"]),
        (["A. liver", "right", "C"], ["A", "B", "A"]),
        (["liver", "right", None], ["liver", "right", "six"]),
        (["liver", "right", "a"], ["A", "B", "C"]),  # the option "a#b" is one text
        (["A", "B", "nonsense"], ["A", "B", "C"]),
    ],
)
def test_two_of_three_are_right(answers, references):
    assert accuracy(answers, references) == pytest.approx(2 / 3)


def test_options_may_be_lists_of_any_length():
    lists = [["liver", "kidney"], ["left", "right"], ["five", "six", "seven"]]
    table = {"confidence": [0.9, 0.8, 0.7], "answer": ["A", "right", "C"], "reference_answer": ["A", "B", "B"]}
    found = dualread.evaluate({**table, "choices": lists}, replicates=0, options="choices")
    assert found.metrics.filter(subset="all", metric="accuracy")["estimate"][0] == pytest.approx(2 / 3)


def test_options_of_pairs_are_read_where_the_pairs_have_them():
    answers = {"sample_id": ["a"], "image_id": ["i"], "confidence": [0.9], "answer": ["A"], "reference_answer": ["A"]}
    pairs = {"sample_id": ["a"], "donor_image_id": ["j"], "donor_confidence": [0.4]}
    pairs |= {"donor_answer": ["A"], "donor_reference_answer": ["B"]}
    choices = {"A": ["liver"], "B": ["lung"]}
    found = dualread.evaluate({**answers, **choices}, {**pairs, **choices}, options=["A", "B"], replicates=0)
    assert found.parts[0].methods["predictions"].pairs["canonical_answer_donor"].to_list() == ["liver"]
