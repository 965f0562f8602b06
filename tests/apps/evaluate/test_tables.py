"""Tables with columns of other names, with a column per method, with options, and with one é in other characters."""

import re
import unicodedata

import polars as pl
import pytest

import dualread
from dualread.apps import main as program
from dualread.errors import ConfigError, DataError
from tests.apps.evaluate.tables import write

MINE = "qid,scan,p,label\n1,a,0.9,1\n2,a,0.2,0\n3,b,0.6,1\n4,b,0.7,0\n"
PAIRS = "qid,donor_scan,donor_score,donor_label\n1,b,0.5,0\n3,a,0.8,0\n"
NAMES = {"confidence": "p", "correct": "label", "image_id": "scan", "sample_id": "qid"}
OF_DONORS = {"donor_image_id": "donor_scan", "donor_confidence": "donor_score", "donor_correct": "donor_label"}
WIDE = {
    **{"sample_id": list("wxyz"), "correct": [1, 0, 1, 0], "confidence_a": [0.9, 0.1, 0.8, 0.3]},
    **{"confidence_b": [1, 0, 0, 1]},
}


def estimates(found):
    return found.metrics.drop("method", "reason").sort("metric", "subset")


def value(found, metric):
    return found.metrics.filter(subset="all", metric=metric)["estimate"][0]


def test_names_of_ones_own_hold_for_answers_and_pairs(tmp_path):
    mine, pairs = write(tmp_path, "mine.csv", MINE), write(tmp_path, "pairs.csv", PAIRS)
    plain = pl.read_csv(mine).rename({own: name for name, own in NAMES.items()})
    found = dualread.evaluate(mine, columns=NAMES, replicates=50)
    assert estimates(found).equals(estimates(dualread.evaluate(plain, replicates=50)))
    assert found.unused == []
    found = dualread.evaluate(mine, pairs, columns={**NAMES, **OF_DONORS}, replicates=0)
    assert value(found, "natural_ccg_auc") == 0.5  # of the two pairs, .9 > .5 and .6 < .8
    named = write(tmp_path, "named.csv", PAIRS.replace("qid", "sample_id"))  # a table that has the usual name already
    again = dualread.evaluate(mine, named, columns={**NAMES, **OF_DONORS}, replicates=0)
    assert estimates(again).equals(estimates(found))


def test_names_may_be_exchanged_replaced_and_used_twice():
    table = {"confidence": [0.9, 0.2], "prediction": ["yes", "no"], "answer": ["Yes", "yes"]}
    found = dualread.evaluate(table, columns={"answer": "prediction", "reference_answer": "answer"}, replicates=0)
    assert found.parts[0].methods["predictions"].answers["correct"].to_list() == [False, True]
    table = {"confidence": [9.0, 2.0], "score": [0.9, 0.2], "correct": [1, 0]}
    found = dualread.evaluate(table, columns={"confidence": "score"}, replicates=0)
    assert found.unused == ["predictions: 1 column not used: confidence"]
    assert sorted(found.parts[0].methods["predictions"].answers["confidence"]) == [0.2, 0.9]
    table = {"confidence": [0.9, 0.2, 0.4], "correct": [1, 0, 1], "scan": ["a", "b", "b"]}
    found = dualread.evaluate(table, columns={"image_id": "scan", "question": "scan"}, cluster="scan", replicates=0)
    assert found.metrics.filter(metric="auroc", subset="all")["n_clusters"].item() == 2
    assert found.unused == []


@pytest.mark.parametrize("words", [["score"], ["confidence="], ["confidence=a", "confidence=b"], None])
def test_the_program_takes_names_and_refuses_other_words(tmp_path, words, monkeypatch, capsys):
    write(tmp_path, "mine.csv", MINE)
    monkeypatch.chdir(tmp_path)
    given = words or [f"{name}={own}" for name, own in NAMES.items()]
    assert program.main(["evaluate", "mine.csv", "--columns", *given, "--replicates", "0", "--all"]) == bool(words)
    said = capsys.readouterr()
    assert "--columns" in said.err if words else re.search(r"\naccuracy +\.5000", said.out)


OPTIONS = {"A": ["liver", "left", "five"], "B": ["kidney", "right", "six"], "C": ["spleen", "both", "a#b"]}
LISTS = {"choices": [["liver", "kidney"], ["left", "right"], ["five", "six", "seven"]]}


@pytest.mark.parametrize(
    ("answers", "references", "options"),
    [
        (["A", "(B)", "C."], ["liver", "right", "five"], OPTIONS),
        (["A. liver", "right", "C"], ["A", "B", "A"], OPTIONS),
        (["liver", "right", None], ["liver", "right", "six"], OPTIONS),
        (["liver", "right", "a"], ["A", "B", "C"], OPTIONS),  # the option "a#b" is one text
        (["A", "B", "nonsense"], ["A", "B", "C"], OPTIONS),
        (["A", "right", "C"], ["A", "B", "B"], LISTS),
    ],
)
def test_of_answers_with_options_two_of_three_are_right(answers, references, options):
    table = {**options, "confidence": [0.9, 0.8, 0.7], "answer": answers, "reference_answer": references}
    found = dualread.evaluate(table, replicates=0, options="choices" if options is LISTS else list("ABC"))
    assert not found.unused
    assert value(found, "accuracy") == pytest.approx(2 / 3)


def test_options_of_pairs_are_read_where_the_pairs_have_them():
    answers = {"sample_id": ["a"], "image_id": ["i"], "confidence": [0.9], "answer": ["A"], "reference_answer": ["A"]}
    pairs = {"sample_id": ["a"], "donor_image_id": ["j"], "donor_confidence": [0.4]}
    pairs |= {"donor_answer": ["A"], "donor_reference_answer": ["B"]}
    choices = {"A": ["liver"], "B": ["lung"]}
    found = dualread.evaluate({**answers, **choices}, {**pairs, **choices}, options=["A", "B"], replicates=0)
    assert found.parts[0].methods["predictions"].pairs["canonical_answer_donor"].to_list() == ["liver"]


def test_a_wide_table_is_the_long_one_in_every_form(tmp_path):
    confidence = [*WIDE["confidence_a"], *WIDE["confidence_b"]]
    long = {"method": ["a"] * 4 + ["b"] * 4, "sample_id": list("wxyz") * 2, "correct": [1, 0, 1, 0] * 2}
    expected = dualread.evaluate({**long, "confidence": confidence}, replicates=0).metrics.drop("reason")
    pl.DataFrame(WIDE).write_csv(tmp_path / "wide.csv")
    for given in (WIDE, tmp_path / "wide.csv"):
        found = dualread.evaluate(given, replicates=0)
        assert found.metrics.drop("reason").equals(expected)
        assert "confidence_a, confidence_b" in found.notes[0]


def test_which_columns_of_a_wide_table_count():
    found = dualread.evaluate({**WIDE, "confidence_b": [None] * 4}, replicates=0)
    assert set(found.metrics["method"]) == {"a"}
    assert "left out: confidence_b" in found.notes[1]
    found = dualread.evaluate({**WIDE, "confidence": [0.5] * 4}, replicates=0)
    assert (len(set(found.metrics["method"])), "confidence_a" in found.unused[0]) == (1, True)
    for wrong in ([None] * 4, [0.9, None, 0.8, 0.3]):
        with pytest.raises(DataError, match=r"confidence_a are empty|row 2: empty"):
            dualread.evaluate({"correct": [1, 0, 1, 0], "confidence_a": wrong}, replicates=0)
    found = dualread.evaluate({**WIDE, "score_c": [-3.0, -5.0, 0.0, 7.0]}, replicates=0)
    assert set(found.metrics["method"]) == {"a", "b", "c"}
    assert found.parts[0].ranked == {"c"}
    assert found.parts[0].methods["c"].answers["confidence"].to_list() == pytest.approx([2 / 5, 1 / 5, 3 / 5, 4 / 5])
    again = dualread.evaluate({**WIDE, "entropy": [3.0, 5.0, 0.0, -7.0]}, columns={"score_c": "-entropy"}, replicates=0)
    assert again.metrics.drop("reason").equals(found.metrics.drop("reason"))


def table(images, ids, n=40):
    return {
        **{"sample_id": [f"{ids}{k}" for k in range(n)], "image_id": [f"{images}{k // 2}" for k in range(n)]},
        **{"method": ["é"] * n, "confidence": [(k % 7 + 1) / 8 for k in range(n)]},
        "correct": [k % 3 > 0 for k in range(n)],
    }


def decomposed(columns):
    return {
        name: [unicodedata.normalize("NFD", cell) if isinstance(cell, str) else cell for cell in column]
        for name, column in columns.items()
    }


def test_an_e_with_an_accent_is_one_method_and_one_question():
    mine, other = table("é", "é"), decomposed(table("é", "é"))
    both = {name: [*mine[name][:20], *other[name][20:]] for name in mine}
    found = dualread.evaluate(both, replicates=0)
    assert found.metrics["method"].unique().to_list() == ["é"]
    assert found.metrics.equals(dualread.evaluate(mine, replicates=0).metrics)
    other["confidence"] = other["confidence"][::-1]
    found = dualread.evaluate(mine, calibration=other, target_risk=0.5, replicates=0)
    assert [said for said in found.warnings if "40 of 40 questions" in said]


@pytest.mark.parametrize(("images", "n"), [("é", 1), ("other", 0)])
def test_other_questions_about_the_calibration_images_are_noticed(images, n):
    found = dualread.evaluate(table("é", "q"), calibration=table(images, "another", 38), target_risk=0.5, replicates=0)
    assert sum("19 of 20 images" in said for said in found.warnings) == n


def test_few_resamples_are_refused():
    for replicates in (1, 38):
        with pytest.raises(ConfigError):
            dualread.evaluate(table("i", "q"), replicates=replicates)
        with pytest.raises(DataError):
            dualread.evaluate(table("i", "q") | {"replicates": [replicates] * 40})
    assert dualread.evaluate(table("i", "q"), replicates=39).replicates == 39
