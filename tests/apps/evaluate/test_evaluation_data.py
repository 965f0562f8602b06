"""The rows of a user's tables by data set and method, and what was graded."""

import polars as pl
import pytest

import dualread
from dualread.apps.evaluate.evaluation_data import NO_PAIRS, evaluation_data
from dualread.apps.evaluate.graded import wrong_pairs
from dualread.apps.evaluate.report import grading_lines
from dualread.data.tables.checks import checked
from dualread.data.tables.contract import ANSWERS as OF_ANSWERS
from dualread.data.tables.contract import PAIRS as OF_PAIRS
from dualread.data.tables.contract import TableOptions
from dualread.data.tables.files import read_file
from dualread.errors import DataError
from tests.apps.evaluate.tables import ANSWERS, PAIRS, columns, without, write

GRADED = """\
confidence,answer,reference_answer
0.9,The Livers,liver
0.8,,liver
0.7,left,right
0.6,CT,MRI#ct
"""
HASH = TableOptions(alternatives="#")


def data_of(folder, answers=ANSWERS, pairs=None, **options):
    """The contents of tables that name at most one data set."""
    (found,) = parts(folder, answers, pairs, **options)
    return found


def parts(folder, answers=ANSWERS, pairs=None, options=None, **more):
    options = options or TableOptions(cluster=more.get("cluster"))
    of_pairs = (
        None if pairs is None else checked(read_file(write(folder, "pairs.csv", pairs)), options.reading(OF_PAIRS))
    )
    return evaluation_data(
        checked(read_file(write(folder, "mine.csv", answers)), options.reading(OF_ANSWERS)), of_pairs, **more
    )


def only(found):
    (evaluated,) = found.methods.values()
    return evaluated


def test_answers_and_pairs_are_joined(tmp_path):
    found = data_of(tmp_path, ANSWERS, PAIRS)
    assert (list(found.methods), found.cluster, found.subsets, found.withheld) == (["mine"], "image_id", ("all",), {})
    answers, pairs = only(found).answers, only(found).pairs
    assert answers["question_key"].to_list() == ["is there a lesion"] * 2 + ["which organ"] * 2
    assert answers.select("sample_id", "cluster_id", "correct", "confidence").rows()[1] == ("q2", "ct-02", False, 0.8)
    expected = {"source_cluster_id": "ct-01", "donor_cluster_id": "ct-02", "correct_real": True, "correct_donor": False}
    expected |= {"canonical_answer_real": "yes", "canonical_answer_donor": "yes"}
    expected |= {"confidence_real": 0.9, "confidence_donor": 0.5, "sample_id": "q1"}
    assert pairs.select(expected.keys()).row(0, named=True) == expected


def test_answers_are_graded_as_in_the_paper_and_a_column_correct_counts(tmp_path):
    # article and plural do not matter; an empty answer is wrong; left is not right; here `#` separates accepted answers
    graded = only(data_of(tmp_path, GRADED, options=HASH)).answers.sort("confidence")
    assert graded["correct"].to_list() == [True, False, False, True]
    lines = '{"confidence": 0.9, "answer": "x-ray", "reference_answer": ["CT", "X-ray"]}\n'
    (found,) = dualread.evaluate(write(tmp_path, "mine.jsonl", lines), replicates=0).parts
    assert only(found).answers["correct"].to_list() == [True]
    both = "confidence,correct,answer,reference_answer\n0.9,0,liver,liver\n"
    assert only(data_of(tmp_path, both)).answers["correct"].to_list() == [False]
    pairs = "sample_id,donor_image_id,donor_answer,donor_reference_answer,donor_confidence\nq1,ct-02,Yes.,no,0.5\n"
    pairs += "q2,ct-01,Yes.,yes,0.5\n"
    assert only(data_of(tmp_path, ANSWERS, pairs)).pairs["correct_donor"].to_list() == [False, True]


def test_empty_answers_count_as_wrong_and_are_shown(tmp_path):
    answers = pl.DataFrame({"confidence": [0.9, 0.8, 0.7], "answer": [None, "liver", " "], "reference_answer": "liver"})
    answers = answers.with_columns(sample_id=pl.Series(["q1", "q2", "q3"]), image_id=pl.Series(["a", "b", "c"]))
    pairs = answers.select("sample_id", donor_image_id=pl.lit("d"), donor_reference_answer=pl.lit("lung"))
    pairs = pairs.with_columns(donor_answer=answers["answer"], donor_confidence=answers["confidence"])
    answers.write_csv(tmp_path / "mine.csv")
    pairs.write_parquet(tmp_path / "pairs.parquet")
    (found,) = dualread.evaluate(tmp_path / "mine.csv", tmp_path / "pairs.parquet", replicates=0).parts
    assert only(found).answers.sort("sample_id")["correct"].to_list() == [False, True, False]
    shown = list(grading_lines(found.graded))
    assert shown[0] == "answers: 1 of 3 right, 66.7% empty"
    assert "pairs: 0 of 3 right, 66.7% empty" in shown


@pytest.mark.parametrize(
    ("answers", "pairs", "reason"),
    [
        (without(ANSWERS, "answer"), PAIRS, "no column 'answer' in {}/mine.csv"),
        (ANSWERS, without(PAIRS, "donor_answer"), "no column 'donor_answer' in {}/pairs.csv"),
    ],
)
def test_without_answers_strict_metrics_are_withheld(tmp_path, answers, pairs, reason):
    assert data_of(tmp_path, answers, pairs).withheld == {"strict_": reason.format(tmp_path)}


def test_another_column_is_the_cluster(tmp_path):
    answers = "patient,sample_id,image_id,confidence,correct\np1,a,i1,0.5,1\np1,b,i2,0.5,1\n"
    found = data_of(tmp_path, answers, cluster="patient")
    assert (found.cluster, set(only(found).answers["cluster_id"])) == ("patient", {"p1"})
    pairs = "sample_id,donor_patient,donor_correct,donor_confidence\na,p1,0,0.4\n"  # another image of the patient
    paired = only(data_of(tmp_path, answers, pairs, cluster="patient")).pairs
    assert paired["donor_cluster_id"].to_list() == ["donor of p1"]


def test_a_table_may_have_several_methods(tmp_path):
    answers = "method,sample_id,image_id,confidence,correct\nours,a,i1,0.9,1\nbase,a,i1,0.6,1\nours,b,i2,0.5,0\n"
    pairs = "method,sample_id,donor_image_id,donor_correct,donor_confidence\nours,a,i2,0,0.1\n"
    found = data_of(tmp_path, answers, pairs)
    assert list(found.methods) == ["base", "ours"]
    assert found.methods["ours"].answers["confidence"].to_list() == [0.9, 0.5]
    assert found.methods["ours"].pairs["confidence_donor"].to_list() == [0.1]
    assert found.methods["base"].pairs == NO_PAIRS


@pytest.mark.parametrize("names", [(), ("sample_id",), ("sample_id", "image_id")])
def test_the_order_of_rows_changes_nothing(tmp_path, names):
    text = without(ANSWERS, *names)
    turned = pl.read_csv(text.encode(), infer_schema=False).reverse().write_csv()
    one, other = (only(data_of(tmp_path, of)).answers.drop("row", strict=False) for of in (text, turned))
    assert one.equals(other)


TWO_SETS = """\
dataset,sample_id,image_id,confidence,correct
rad,q1,synpic1,0.9,1
rad,q2,synpic1,0.2,0
med,q1,synpic1,0.7,1
"""
TWO_SETS_PAIRS = """\
dataset,sample_id,donor_image_id,donor_correct,donor_confidence
rad,q1,synpic2,0,0.4
"""


def test_equal_names_in_two_data_sets_or_splits_are_different_images_and_questions(tmp_path):
    med, rad = parts(tmp_path, TWO_SETS, TWO_SETS_PAIRS)
    assert (med.dataset, rad.dataset) == ("med", "rad")
    assert [only(one).answers.height for one in (med, rad)] == [1, 2]
    assert (only(med).pairs, only(rad).pairs["donor_cluster_id"].to_list()) == (NO_PAIRS, ["synpic2"])
    text = TWO_SETS.replace("dataset,", "dataset,split,").replace("rad,q1", "rad,test,q1")
    text = text.replace("rad,q2", "rad,dev,q1").replace("med,q1", "med,test,q1")
    assert [one.dataset for one in parts(tmp_path, text)] == ["med/test", "rad/dev", "rad/test"]
    same = text.replace(",dev,", ",test,").replace("test,q1,synpic1,0.2", "test,q2,synpic1,0.2")
    assert [one.dataset for one in parts(tmp_path, same)] == ["med", "rad"]


SCORES = "sample_id,image_id,correct,score\nq1,ct-01,1,-0.1\nq2,ct-02,0,-2e3\nq3,ct-01,1,-7\nq4,ct-03,0,-9\n"
OF_SCORES = "sample_id,donor_image_id,donor_correct,donor_score\nq1,ct-02,0,-0.1\nq2,ct-01,1,-8\nq3,ct-03,0,-3\n"


def test_scores_are_replaced_by_their_ranks(tmp_path):
    found = data_of(tmp_path, SCORES, OF_SCORES)
    # in ascending order: -2000, -9, -8, -7, -3, -.1 (twice), of six values
    assert only(found).answers["confidence"].to_list() == pytest.approx([6 / 7, 1 / 7, 4 / 7, 2 / 7])
    assert only(found).pairs["confidence_donor"].to_list() == pytest.approx([6 / 7, 3 / 7, 5 / 7])
    assert found.ranked == {"mine"}
    assert data_of(tmp_path, ANSWERS, PAIRS).ranked == frozenset()
    found = data_of(tmp_path, "score,correct\n0.9,1\n0.2,0\n")  # from 0 to 1
    assert (found.ranked, sorted(only(found).answers["confidence"])) == ({"mine"}, pytest.approx([1 / 3, 2 / 3]))


def test_one_method_may_have_probabilities_and_another_scores_but_none_has_both(tmp_path):
    text = "method,sample_id,confidence,score,correct\na,q1,0.5,,1\na,q2,0.7,,1\nb,q1,,12,1\nb,q2,,-0.5,0\n"
    found = data_of(tmp_path, text)
    assert found.ranked == {"b"}
    assert found.methods["a"].answers["confidence"].to_list() == [0.5, 0.7]
    assert found.methods["b"].answers["confidence"].to_list() == pytest.approx([2 / 3, 1 / 3])
    first = text.replace("a,q1,0.5,", "a,q1,,5"), text.replace("a,q1,0.5,", "a,q1,,")
    for answers, pairs in ((first[0], None), (first[1], None), (ANSWERS, OF_SCORES), (SCORES, PAIRS)):
        with pytest.raises(DataError, match=r"has probabilities in|row 1: empty"):
            data_of(tmp_path, answers, pairs)


def test_clusters_without_a_name_are_refused_and_shared_images_are_said(tmp_path):
    header, *rows = ANSWERS.splitlines()
    header += ",patient_id"
    patients = [f"{row},{'abcd'[k]}" for k, row in enumerate(rows)]
    found = data_of(tmp_path, "\n".join([header, *patients]), cluster="patient_id")
    assert found.unit == "patient"
    assert [line.split(": ")[2] for line in found.warnings] == ["images with several values of patient_id"]
    for word in ("", "nan", "NA"):
        with pytest.raises(DataError, match="patient_id"):
            data_of(tmp_path, "\n".join([header, *patients[:-1], f"{rows[-1]},{word}"]), cluster="patient_id")


SPELLED = ["ct-01", "CT-01", "./ct-01", "ct-01.png", "images/ct-01.PNG", "images%2fct-01", "ct\uff0d01", "ct -01"]


@pytest.mark.parametrize("donor", [*SPELLED, "a\\ct-01"])
def test_the_own_image_is_no_donor_however_it_is_spelled(tmp_path, donor):
    with pytest.raises(DataError, match="row 1: the donor's image"):
        data_of(tmp_path, ANSWERS, PAIRS.replace("q1,ct-02", f"q1,{donor}"))


def test_ids_of_pairs_are_spelled_as_those_of_the_answers(tmp_path):
    assert only(data_of(tmp_path, ANSWERS, PAIRS.replace("q1,ct-02", "q1,ct-20"))).pairs.height == 3
    for wrong in (PAIRS.replace("q1,ct-02", "q1,ct-02.jpg"), PAIRS.replace("q1,", "Q1,")):
        with pytest.raises(DataError, match="These count as two"):
            data_of(tmp_path, ANSWERS, wrong)


def test_what_was_graded_is_shown_with_the_most_common_pairs(tmp_path):
    wrong = [("no", "yes")] * 3 + [("lung", "left lung")] * 2 + [(f"a{k}", f"b{k}") for k in range(12)] + [("", "x")]
    rows = [*wrong, ("The Livers", "liver")]
    text = "confidence,answer,reference_answer\n" + "".join(f"0.5,{one},{other}\n" for one, other in rows)
    assert list(grading_lines(data_of(tmp_path).graded)) == ["answers: 2 of 4 right, 0.0% empty"]
    nothing = data_of(tmp_path, columns(ANSWERS, "confidence", "correct"))
    assert list(grading_lines(nothing.graded)) == ["answers: 2 of 4 right"]
    data = data_of(tmp_path, text)
    pairs = wrong_pairs(data.graded)
    assert pairs.rows()[:3] == [("no", "yes", 3, False), ("lung", "left lung", 2, True), ("", "x", 1, False)]
    assert len(pairs) == 10
    first, *lines = grading_lines(data.graded)
    assert first == "answers: 1 of 19 right, 5.3% empty"
    assert len(lines) == 1 + 5  # ten pairs in two columns
    assert "'no' / 'yes'" in lines[1]
    assert max(map(len, lines)) <= 100
    assert "2 of 18 wrong answers" in data.warnings[0]
    assert data.graded.filter(answer="The Livers").select("equal", "correct", "contained").row(0) == (True, True, False)


@pytest.mark.parametrize(("correct", "n"), [(1, 19), (0, 20), (1, 20)])
def test_many_answers_that_are_all_alike_are_asked_about(tmp_path, correct, n):
    text = "confidence,correct\n" + f"0.5,{correct}\n" * n
    assert len(data_of(tmp_path, text).warnings) == (n >= 20)


WITH_GOLDS = """\
sample_id,image_id,question,answer,reference_answer,correct,confidence
q1,ct-01,Is there a lesion?,yes,Yes,1,0.9
q2,ct-02,Is there a lesion?,no,no,1,0.8
q3,ct-03,Is there a lesion?,no,yes,0,0.6
"""


def pairs_of(*rows, columns="donor_answer,donor_correct"):
    return "\n".join([f"sample_id,donor_image_id,donor_confidence,{columns}", *rows, ""])


def test_what_is_not_known_of_a_donor_is_not_refused(tmp_path):
    pairs = pairs_of("q1,ct-02,0.5,no,1", "q2,elsewhere,0.5,no,0")  # no answer tells the gold answer on that image
    assert len(only(data_of(tmp_path, WITH_GOLDS, pairs)).pairs) == 2
    two_golds = WITH_GOLDS + "q4,ct-02,Is there a lesion?,no,yes,0,0.4\n"  # ct-02 has two, so that neither is believed
    assert len(only(data_of(tmp_path, two_golds, pairs)).pairs) == 2


def test_labels_that_contradict_the_answers_are_said(tmp_path):
    # A judge may accept other words.
    wrong = WITH_GOLDS.replace("yes,Yes,1", "yes,Yes,0").replace("no,yes,0", "no,yes,1")
    (said,) = data_of(tmp_path, wrong).warnings
    assert "in 1 rows" in said
    assert only(data_of(tmp_path, wrong)).answers["correct"].to_list() == [False, True, True]  # the column counts
    assert data_of(tmp_path, WITH_GOLDS).warnings == ()
    without_golds = WITH_GOLDS.replace("yes,Yes,1", "yes,,0").replace("no,no,1", "no,?,0")  # nothing to compare with
    assert data_of(tmp_path, without_golds).warnings == ()


PATIENTS = """\
sample_id,image_id,cluster_id,correct,confidence
q1,ct-01,kim,1,0.9
q2,ct-02,kim,0,0.8
q3,ct-03,lee,1,0.7
"""
DONORS = """\
sample_id,donor_image_id,donor_correct,donor_confidence
q1,ct-03,0,0.4
q3,ct-02,0,0.6
q2,ct-09,1,0.5
"""


@pytest.mark.parametrize(("column", "options"), [("cluster_id", {}), ("patient", {"cluster": "patient"})])
def test_patients_are_resampled_and_those_of_donors_are_known_by_their_images(tmp_path, column, options):
    found = data_of(tmp_path, PATIENTS.replace("cluster_id", column), DONORS, **options)
    assert (found.cluster, found.unit) == (column, {"cluster_id": "cluster"}.get(column, column))
    assert only(found).answers["cluster_id"].to_list() == ["kim", "kim", "lee"]
    sides = only(found).pairs.select("sample_id", "source_cluster_id", "donor_cluster_id").rows()
    # Nothing is known of ct-09, which is a cluster by itself.
    assert sides == [("q1", "kim", "lee"), ("q2", "kim", "ct-09"), ("q3", "lee", "kim")]


def test_clusters_that_are_the_images_are_images(tmp_path):
    same = PATIENTS.replace("kim", "ct-01", 1).replace("kim", "ct-02").replace("lee", "ct-03")
    assert (data_of(tmp_path, same).cluster, data_of(tmp_path, same).unit) == ("image_id", "image")


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (PATIENTS.replace("ct-02", "ct-01"), "the image 'ct-01' is in cluster_id 'kim' and 'lee'; expected one."),
        (PATIENTS.replace("q2,ct-02,kim", "q2,ct-02,"), "column 'cluster_id'"),
    ],
)
def test_an_image_has_one_cluster(tmp_path, answers, sentence):
    answers = answers.replace("q2,ct-01,kim", "q2,ct-01,lee")
    with pytest.raises(DataError) as caught:
        data_of(tmp_path, answers, DONORS)
    assert sentence in str(caught.value)
