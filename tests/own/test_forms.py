"""What the cells of somebody else's table mean; each case is right by hand, or refused by name."""

import numpy as np
import pandas as pd
import pytest

import dualread
from dualread.data.foreign_tables.values import whole
from dualread.errors import ConfigError, DataError
from dualread.own.grades import form_of


def accuracy(answers, references, **options):
    table = {"confidence": [0.5] * len(answers), "answer": answers, "reference_answer": references}
    return estimate(dualread.evaluate(table, replicates=0, **options), "accuracy")


def estimate(found, metric):
    return found.metrics.filter(subset="all", metric=metric)["estimate"][0]


def test_a_list_in_a_cell_is_what_the_list_is():
    references = [["liver", "hepatic"], ["kidney"], ["left lung", "left pulmonary field"]]
    answers = ["hepatic", "kidney", "right lung"]
    for form in (references, [str(one) for one in references], ["liver#hepatic", "kidney", "left lung"]):
        assert accuracy(answers, form) == pytest.approx(2 / 3)


@pytest.mark.parametrize("separator", ["|", " / "])
def test_other_separators_are_asked_for_where_the_grade_depends_on_them(separator):
    references = [f"liver{separator}hepatic", "kidney"]
    with pytest.raises(DataError, match=r"such as '.*' in row 1\. If these are alternatives, 1 more answers are right"):
        accuracy(["liver", "kidney"], references)
    assert accuracy(["liver", "kidney"], references, alternatives=separator) == 1
    assert accuracy(["liver", "kidney"], references, alternatives="#") == 0.5
    assert accuracy([references[0], "kidney"], references) == 1  # the whole text is the answer
    assert accuracy(["spleen", "kidney"], references) == 0.5  # wrong in any case


def test_a_whole_number_that_a_table_stored_as_a_float_is_that_number():
    assert [whole(text) for text in ("2.0", "-3.0", "2.50", "2.00", "2", "x2.0", None)] == [
        *("2", "-3", "2.50", "2.00", "2", "x2.0", None)
    ]
    expected = 0.5  # 2 and 1 are right; the missing answer and 3 are wrong
    for answers in ([2, 1, float("nan"), 3], pd.array([2, 1, None, 3], dtype="Int64"), ["2.0", "1.0", "", "3.0"]):
        assert accuracy(list(answers), [2, 1, 1, 2]) == expected
        assert accuracy(list(answers), ["2", "1#0", "1", "2"]) == expected
    assert accuracy(["2", "1.0"], [2.0, "1"]) == 1
    found = dualread.evaluate({"confidence": [0.5], "answer": ["2.0"], "reference_answer": ["2"]}, replicates=0)
    assert found.notes == [
        "predictions: column 'answer' holds whole numbers as floats, such as 2.0, in 1 rows; read as 2"
    ]


PAIRS = {"donor_confidence": [0.5], "donor_correct": [0]}


def with_pair(sample_ids, image_ids, sample_id, donor):
    answers = {"sample_id": sample_ids, "image_id": image_ids, "confidence": [0.9, 0.1], "correct": [1, 0]}
    pairs = {"sample_id": [sample_id], "donor_image_id": [donor], **PAIRS}
    return estimate(dualread.evaluate(answers, pairs, replicates=0), "natural_ccg_auc")


def test_ids():
    assert with_pair(["7.0", "8.0"], [1.0, 2.0], 7, "2") == 1  # 3.0 is 3 where all ids are whole
    assert with_pair(["7", "007"], ["1", "01"], "7", "01") == 1  # which stay different
    with pytest.raises(DataError, match=r"'sample_id' is '7' where the answers have '007'\. These count as two"):
        with_pair(["007", "008"], ["a", "b"], "7", "b")
    with pytest.raises(DataError, match=r"'donor_image_id' is '2' where the answers have '002'"):
        with_pair(["7", "8"], ["001", "002"], "7", "2")
    for lost in (["1.23E+17", "1.24E+17"], [1.2e17, 1.3e17]):  # a spreadsheet or a float cut the digits
        with pytest.raises(DataError, match=r"'sample_id' is wrong in 2 of 2 rows: .* all their digits"):
            with_pair(lost, ["a", "b"], "x", "b")


def test_forms_of_answers():
    words = {"True": "truth", "no.": "yes", "A": "letter", "(b)": "letter", "C.": "letter", "3": "number", "a": "text"}
    assert {text: form_of(text) for text in (*words, "liver", "A. liver")} == {
        **words,
        "liver": "text",
        "A. liver": "text",
    }


def test_answers_that_may_just_be_wrong_are_graded():
    assert accuracy(["A", "liver", "2", "true"], ["B", "liver", "two", "it is true"]) == 0.25
    assert accuracy(["A", "liver", "kidney"], ["spleen", "liver", "kidney"]) == pytest.approx(2 / 3)
    assert accuracy(["two", "3", "4"], ["2", "3", "4"]) == pytest.approx(2 / 3)


def test_all_right_or_all_wrong_is_a_warning():
    table = {"confidence": [0.5] * 20, "answer": ["liver"] * 20, "reference_answer": ["the left liver"] * 20}
    (said,) = dualread.evaluate(table, replicates=0).warnings
    assert "all 20 answers of predictions are wrong (they are graded by their reference answers)" in said
    (said,) = dualread.evaluate({"confidence": [0.5] * 20, "correct": [1] * 20}, replicates=0).warnings
    assert "are right ('correct' says so)" in said
    assert not dualread.evaluate({"confidence": [0.5] * 19, "correct": [1] * 19}, replicates=0).warnings


def test_some_letters_among_texts_are_a_warning():
    answers, references = ["A"] * 3 + ["liver"] * 7, ["liver"] * 10
    table = {"confidence": [0.5] * 10, "answer": answers, "reference_answer": references}
    (said,) = dualread.evaluate(table, replicates=0).warnings
    assert "in 3 of 10 rows, one of column 'answer' and column 'reference_answer' is the letter of an option" in said


def test_a_judge_may_accept_other_words():
    table = {"confidence": [0.5, 0.4], "answer": ["hepatic", "no"], "reference_answer": ["liver", "no"]}
    assert not dualread.evaluate({**table, "correct": [1, 1]}, replicates=0).warnings
    (said,) = dualread.evaluate({**table, "correct": [1, 0]}, replicates=0).warnings
    assert "in 1 of 2 rows, 'correct' is not what grading 'answer' by 'reference_answer' gives: 2" in said
    opposite = {**table, "answer": ["hepatic", "yes"], "correct": [1, 1]}
    assert len(dualread.evaluate(opposite, replicates=0).warnings) == 1


@pytest.mark.parametrize("missing", [float("nan"), None, "", "NaN"])
def test_answers_that_nobody_scored_are_left_out_and_counted(missing):
    found = dualread.evaluate({"confidence": [0.9, 0.8, 0.7], "correct": [1, missing, 0]}, replicates=0)
    assert found.left_out == {"predictions: column 'correct' is empty or NaN, so not scored": 1}
    assert "predictions: left out: 1 of 3 rows (column 'correct' is empty or NaN, so not scored)" in found.notes
    assert (estimate(found, "accuracy"), estimate(found, "auroc")) == (0.5, 1)
    with pytest.raises(DataError, match=r"'correct' (has no value|is wrong) in 2 of 2 rows"):
        dualread.evaluate({"confidence": [0.9, 0.8], "correct": [missing, missing]}, replicates=0)


def test_percentages_are_read_where_all_have_the_sign():
    found = dualread.evaluate({"confidence": ["85%", "5.5 %"], "correct": [1, 0]}, replicates=0)
    assert [cells.methods["predictions"].answers["confidence"].sort().to_list() for cells in found.parts] == [
        [0.055, 0.85]
    ]
    assert "predictions: column 'confidence' holds percentages; they are divided by 100" in found.notes
    with pytest.raises(DataError, match=r"row 1: '85%'; expected a finite number with a decimal point"):
        dualread.evaluate({"confidence": ["85%", "0.05"], "correct": [1, 0]}, replicates=0)


def test_an_uncertainty_has_the_other_sign():
    table = {"entropy": ["0.5", "1.5", "-0.1", "1e-3"], "correct": [1, 0, 1, 1]}
    found = dualread.evaluate(table, replicates=0, columns={"confidence": "-entropy"})
    assert estimate(found, "auroc") == 1  # the wrong answer has the largest entropy
    assert "predictions: column 'entropy' is read with the other sign (confidence)" in found.notes
    assert not found.unused
    with pytest.raises(ConfigError, match=r"no column '-entropie'.*Did you mean 'entropy'"):
        dualread.evaluate(table, replicates=0, columns={"confidence": "-entropie"})


def test_columns_of_vqa():
    table = {"question_id": [1, 2, 3, 4], "confidence": [0.9, 0.8, 0.3, 0.2], "correct": [1, 1, 0, 1]}
    found = dualread.evaluate({**table, "question_type": ["what"] * 4}, replicates=0)
    assert estimate(found, "auroc") == pytest.approx(2 / 3)  # .9 > .3, .8 > .3, .2 < .3
    assert found.unused == ["predictions: 2 columns not used: question_id, question_type"]
    typed = {**table, "answer_type": ["yes/no", "number", "other", "OPEN"]}
    found = dualread.evaluate(typed, replicates=0)
    counts = dict(found.metrics.filter(metric="accuracy").select("subset", "n").rows())
    assert counts == {"all": 4, "open": 3, "closed": 1}
    with pytest.raises(DataError, match=r"column 'imageid' would be ignored"):
        dualread.evaluate({**table, "imageid": [1, 2, 3, 4]}, replicates=0)


def test_a_few_answers_of_another_form_may_just_be_wrong():
    answers, references = ["yes"] * 9 + ["no", "yes"], ["yes"] * 9 + ["2", "1"]  # "how many?"
    assert accuracy(answers, references) == pytest.approx(9 / 11)
    assert accuracy(["no"] * 3 + ["liver"] * 20, ["2", "3", "4"] + ["liver"] * 20) == pytest.approx(20 / 23)
    with pytest.raises(DataError, match=r"in 3 of 23 rows, .* is yes or no and .* is a number: 'no' against '1'"):
        accuracy(["no"] * 3 + ["liver"] * 20, ["1", "0", "1"] + ["liver"] * 20)


def test_decimal_commas():
    found = dualread.evaluate({"confidence": ["0,85", "1", ",055", "1,000"], "correct": [1, 0, 1, 1]}, replicates=0)
    assert found.parts[0].methods["predictions"].answers["confidence"].sort().to_list() == [0.055, 0.85, 1, 1]
    assert "predictions: column 'confidence' has decimal commas, such as 0,5; read as 0.5" in found.notes
    found = dualread.evaluate({"confidence": ["85,5%", "5 %"], "correct": [1, 0]}, replicates=0)
    assert found.parts[0].methods["predictions"].answers["confidence"].sort().to_list() == [0.05, 0.855]
    for doubtful in (["1,234", "5,678"], ["0,5", "0.7"], ["1,2,3", "0,5"]):
        with pytest.raises(DataError, match="expected a finite number with a decimal point"):
            dualread.evaluate({"confidence": doubtful, "correct": [1, 0]}, replicates=0)


def test_names_in_two_ways():
    table = {"sample_id": ["1", "2", "3"], "image_id": ["CT-1", "ct-1", "x 1"], "confidence": [0.9, 0.1, 0.5]}
    table["correct"] = [1, 0, 1]
    (said,) = dualread.evaluate(table, replicates=0).warnings
    assert (
        "names that differ only in zeros, case or spaces count as different (column 'image_id': 'CT-1', 'ct-1')" in said
    )
    other = {"sample_id": ["01", "2.0", "7"], "image_id": ["ct-1", "CT-1", "x1"], "confidence": [0.9, 0.1, 0.4]}
    other["correct"] = [1, 0, 1]
    options = {"calibration": other, "target_risk": [0.2], "replicates": 0}
    doubts = [said for said in dualread.evaluate(table, **options).warnings if "are in calibration too" in said]
    assert len(doubts) == 1
    assert doubts[0].startswith(
        "warning: 2 of 3 questions of predictions are in calibration too (equal sample_id, image_id, where 007 and 7"
    )
    with pytest.raises(DataError, match=r"'donor_image_id' is 'X1' where the answers have 'x 1'\. These count as two"):
        with_pair(["1", "2"], ["ct", "x 1"], "1", "X1")


def test_float32_numbers_that_became_longer_are_those_that_were_meant():
    longer = [float(value) for value in np.float32([0.9, 0.1, 1])]  # 0.8999999761581421, as Python and files keep it
    for column in (longer, list(map(repr, longer)), np.array(longer)):
        found = dualread.evaluate({"confidence": column, "correct": [0, 1, 1]}, replicates=0)
        assert found.parts[0].methods["predictions"].answers["confidence"].sort().to_list() == [0.1, 0.9, 1]
        assert estimate(found, "hce90") == pytest.approx(1 / 3)
        assert "holds float32 numbers with more digits than they had" in found.notes[0]
    shares = [k / 64 for k in range(65)]
    found = dualread.evaluate({"confidence": shares, "correct": [1, 0] * 32 + [1]}, replicates=0)
    assert found.parts[0].methods["predictions"].answers["confidence"].sort().to_list() == shares
    assert not found.notes


def test_record_arrays_are_tables():
    table = np.array([(0.9, True), (0.2, False)], dtype=[("confidence", "f4"), ("correct", "?")])
    assert estimate(dualread.evaluate(table, replicates=0), "brier") == pytest.approx((0.01 + 0.04) / 2)
