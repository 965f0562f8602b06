import numpy as np
import polars as pl
import pytest

from dualread.errors import DataError
from dualread.own.cells import NO_PAIRS, cells_of
from dualread.own.inputs import read_given
from dualread.own.scale import Outside, is_mixed
from tests.own.tables import ANSWERS, PAIRS, columns, without, write

GRADED = """\
confidence,answer,reference_answer
0.9,The Livers,liver
0.8,,liver
0.7,left,right
0.6,CT,MRI#ct
"""


def cells(folder, answers=ANSWERS, pairs=None, **options):
    """The contents of tables that name at most one data set."""
    (found,) = parts(folder, answers, pairs, **options)
    return found


def parts(folder, answers=ANSWERS, pairs=None, **options):
    given = None if pairs is None else read_given(write(folder, "pairs.csv", pairs))
    return cells_of(read_given(write(folder, "mine.csv", answers)), pairs=given, **options)


def only(found):
    (evaluated,) = found.methods.values()
    return evaluated


def test_answers_and_pairs_are_joined(tmp_path):
    found = cells(tmp_path, ANSWERS, PAIRS)
    assert (list(found.methods), found.cluster, found.subsets, found.withheld) == (["mine"], "image_id", ("all",), {})
    answers, pairs = only(found).answers, only(found).pairs
    assert answers["question_key"].to_list() == ["is there a lesion"] * 2 + ["which organ"] * 2
    assert answers.select("sample_id", "image_id", "correct", "confidence").rows()[1] == ("q2", "ct-02", False, 0.8)
    expected = {"source_image_id": "ct-01", "donor_image_id": "ct-02", "correct_real": True, "correct_donor": False}
    expected |= {"canonical_answer_real": "yes", "canonical_answer_donor": "yes"}
    expected |= {"confidence_real": 0.9, "confidence_donor": 0.5, "sample_id": "q1"}
    assert pairs.select(expected.keys()).row(0, named=True) == expected


def test_confidence_and_correct_are_enough(tmp_path):
    found = cells(tmp_path, columns(ANSWERS, "confidence", "correct"))
    answers = only(found).answers
    assert sorted(answers.select("confidence", "correct").rows()) == [
        (0.3, False),
        (0.6, True),
        (0.8, False),
        (0.9, True),
    ]
    assert answers["image_id"].n_unique() == answers["question_key"].n_unique() == 4  # every row is a cluster by itself
    assert (found.cluster, only(found).pairs) == (None, NO_PAIRS)
    assert found.withheld == {"within_question_auroc": f"no column 'question' in {tmp_path}/mine.csv"}


def test_answers_are_graded_as_in_the_paper(tmp_path):
    # article and plural do not matter; an empty answer is wrong; left is not right; `#` separates accepted answers
    assert only(cells(tmp_path, GRADED)).answers.sort("confidence")["correct"].to_list() == [True, False, False, True]


EMPTY = "is empty in 2 of 3 rows, which count as wrong answers: 1, 3"


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet"])
def test_empty_answers_count_as_wrong_and_are_counted(tmp_path, kind):
    answers = pl.DataFrame({"confidence": [0.9, 0.8, 0.7], "answer": [None, "liver", " "], "reference_answer": "liver"})
    answers = answers.with_columns(sample_id=pl.Series(["q1", "q2", "q3"]), image_id=pl.Series(["a", "b", "c"]))
    pairs = answers.select("sample_id", donor_image_id=pl.lit("d"), donor_reference_answer=pl.lit("lung"))
    pairs = pairs.with_columns(donor_answer=answers["answer"], donor_confidence=answers["confidence"])
    paths = [tmp_path / f"{name}{kind}" for name in ("mine", "pairs")]
    for frame, path in zip((answers, pairs), paths, strict=True):
        {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}[kind](path)
    (found,) = cells_of(read_given(paths[0]), pairs=read_given(paths[1]))
    assert only(found).answers.sort("sample_id")["correct"].to_list() == [False, True, False]
    assert found.warnings == (
        f"warning: {paths[0]}: column 'answer' {EMPTY}",
        f"warning: {paths[1]}: column 'donor_answer' {EMPTY}",
    )


def test_an_empty_answer_is_not_graded_where_a_column_says_what_is_correct(tmp_path):
    assert cells(tmp_path, "confidence,answer,correct\n0.5,,1\n0.6,x,0\n").warnings == ()


def test_lists_of_references_and_a_column_that_says_correct(tmp_path):
    lines = '{"confidence": 0.9, "answer": "x-ray", "reference_answer": ["CT", "X-ray"]}\n'
    (found,) = cells_of(read_given(write(tmp_path, "mine.jsonl", lines)))
    assert only(found).answers["correct"].to_list() == [True]
    both = "confidence,correct,answer,reference_answer\n0.9,0,liver,liver\n"
    assert only(cells(tmp_path, both)).answers["correct"].to_list() == [False]


def test_donors_are_graded_too(tmp_path):
    pairs = "sample_id,donor_image_id,donor_answer,donor_reference_answer,donor_confidence\nq1,ct-02,Yes.,no,0.5\n"
    pairs += "q2,ct-01,Yes.,yes,0.5\n"
    assert only(cells(tmp_path, ANSWERS, pairs)).pairs["correct_donor"].to_list() == [False, True]


@pytest.mark.parametrize(
    ("answers", "pairs", "reason"),
    [
        (without(ANSWERS, "answer"), PAIRS, "no column 'answer' in {}/mine.csv"),
        (ANSWERS, without(PAIRS, "donor_answer"), "no column 'donor_answer' in {}/pairs.csv"),
    ],
)
def test_without_answers_strict_metrics_are_withheld(tmp_path, answers, pairs, reason):
    assert cells(tmp_path, answers, pairs).withheld == {"strict_": reason.format(tmp_path)}


def test_another_column_is_the_cluster(tmp_path):
    answers = "patient,sample_id,image_id,confidence,correct\np1,a,i1,0.5,1\np1,b,i2,0.5,1\n"
    found = cells(tmp_path, answers, cluster="patient")
    assert (found.cluster, set(only(found).answers["image_id"])) == ("patient", {"p1"})
    pairs = "sample_id,donor_patient,donor_correct,donor_confidence\na,p1,0,0.4\n"  # another image of the patient
    assert only(cells(tmp_path, answers, pairs, cluster="patient")).pairs["donor_image_id"].to_list() == ["p1"]


def test_a_table_may_have_several_methods(tmp_path):
    answers = "method,sample_id,image_id,confidence,correct\nours,a,i1,0.9,1\nbase,a,i1,0.6,1\nours,b,i2,0.5,0\n"
    pairs = "method,sample_id,donor_image_id,donor_correct,donor_confidence\nours,a,i2,0,0.1\n"
    found = cells(tmp_path, answers, pairs)
    assert list(found.methods) == ["base", "ours"]
    assert found.methods["ours"].answers["confidence"].to_list() == [0.9, 0.5]
    assert found.methods["ours"].pairs["confidence_donor"].to_list() == [0.1]
    assert found.methods["base"].pairs == NO_PAIRS


def test_answer_types_make_subsets(tmp_path):
    found = cells(tmp_path, "answer_type,confidence,correct\nOPEN,0.5,1\nclosed,0.5,1\n")
    assert found.subsets == ("all", "open", "closed")
    assert sorted(only(found).answers["answer_type"]) == ["closed", "open"]


@pytest.mark.parametrize("names", [(), ("sample_id",), ("sample_id", "image_id")])
def test_the_order_of_rows_changes_nothing(tmp_path, names):
    text = without(ANSWERS, *names)
    reversed_text = pl.read_csv(text.encode(), infer_schema=False).reverse().write_csv()
    assert (
        only(cells(tmp_path, text))
        .answers.drop("row", strict=False)
        .equals(only(cells(tmp_path, reversed_text)).answers.drop("row", strict=False))
    )


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


def test_equal_names_in_two_data_sets_are_different_images_and_questions(tmp_path):
    med, rad = parts(tmp_path, TWO_SETS, TWO_SETS_PAIRS)
    assert (med.dataset, rad.dataset) == ("med", "rad")
    assert [only(one).answers.height for one in (med, rad)] == [1, 2]
    assert (only(med).pairs, only(rad).pairs["donor_image_id"].to_list()) == (NO_PAIRS, ["synpic2"])


def test_splits_are_told_apart_too(tmp_path):
    text = (
        TWO_SETS.replace("dataset,", "dataset,split,").replace("rad,q1", "rad,test,q1").replace("rad,q2", "rad,dev,q1")
    )
    text = text.replace("med,q1", "med,test,q1")
    assert [one.dataset for one in parts(tmp_path, text)] == ["med/test", "rad/dev", "rad/test"]
    same = text.replace(",dev,", ",test,").replace("test,q1,synpic1,0.2", "test,q2,synpic1,0.2")
    assert [one.dataset for one in parts(tmp_path, same)] == ["med", "rad"]


def test_confidences_outside_0_to_1_are_replaced_by_their_ranks(tmp_path):
    raw = (
        ANSWERS.replace("0.9\n", "-0.1\n").replace("0.8\n", "-2e3\n").replace("0.6\n", "-7\n").replace("0.3\n", "-9\n")
    )
    pairs = PAIRS.replace(",0.5\n", ",-0.1\n").replace(",0.2\n", ",-8\n").replace(",0.7\n", ",-3\n")
    found = cells(tmp_path, raw, pairs)
    # in ascending order: -2000, -9, -8, -7, -3, -.1 (twice)
    assert only(found).answers["confidence"].to_list() == [6 / 6, 1 / 6, 4 / 6, 2 / 6]
    assert only(found).pairs["confidence_donor"].to_list() == [6 / 6, 3 / 6, 5 / 6]
    assert found.ranked == {"mine": Outside(n=4, of=4, row=1, value="-0.1")}
    assert cells(tmp_path, ANSWERS, PAIRS).ranked == {}


def test_one_method_may_have_probabilities_and_another_none(tmp_path):
    text = "method,sample_id,confidence,correct\na,q1,0.5,1\na,q2,0.7,1\nb,q1,12,1\nb,q2,-0.5,0\n"
    found = cells(tmp_path, text)
    assert found.ranked == {"b": Outside(n=2, of=2, row=3, value="12")}
    assert found.methods["a"].answers["confidence"].to_list() == [0.5, 0.7]
    assert found.methods["b"].answers["confidence"].to_list() == [1.0, 0.5]


INSIDE = [0.1, 0.3, 0.5, 0.7, 0.9] * 4  # 20 probabilities


@pytest.mark.parametrize(
    ("values", "mixed"),
    [
        ([*INSIDE, 85.0], True),  # a slip
        ([*INSIDE[:19], 1.3], True),  # 1 in 20
        ([*INSIDE[:18], 1.3], False),  # 1 in 19, and near: margins of logits
        ([0.5, 1.0000001], True),  # rounding, in a table of any size
        ([1.01, 1.01, 0.5], True),
        ([1.02, 1.02, 0.5], False),
        (INSIDE + [100 * p for p in INSIDE], True),  # half in percent
        (INSIDE + [100 * p for p in INSIDE] + [50.0], False),  # more percentages than others
        ([0.2, 0.4, 5.0, 5.0], True),
        ([0.2, 0.4, 4.9, 4.9], False),
        ([0.2, 0.7, 12.0, 35.0, 60.0, 80.0, 95.0], False),  # percentages, few below 1
        ([0.0, 1.0, 1.0, 2.0, 5.0, 8.0], False),  # counts
        ([-0.1, *INSIDE, 85.0], False),  # a negative one: logits
        (INSIDE, False),
    ],
)
def test_what_mixes_probabilities_and_other_numbers(values, mixed):
    assert is_mixed(np.array(values)) == mixed


def test_mixed_units_are_refused_with_their_number_and_the_first_row(tmp_path):
    rows = [0.5, 61, 0.7, 80]
    text = "sample_id,confidence,correct\n" + "".join(f"q{k},{value},1\n" for k, value in enumerate(rows))
    with pytest.raises(DataError, match=r"'confidence' of method 'mine' mixes .* 2 of 4 .* first in row 2 \(61\)"):
        cells(tmp_path, text)
    lower = [value - 1000 for value in rows]  # as the message advises
    as_scores = "sample_id,confidence,correct\n" + "".join(f"q{k},{value},1\n" for k, value in enumerate(lower))
    assert only(cells(tmp_path, as_scores)).answers.sort("sample_id")["confidence"].to_list() == [
        1 / 4,
        3 / 4,
        2 / 4,
        1,
    ]


@pytest.mark.parametrize(
    ("of_answers", "of_pairs", "shown"),
    [
        (1, 100, r"mine\.csv is in \[0, 1\], such as 0\.9 but .*pairs\.csv leaves \[0, 1\], such as 50;"),
        (100, 1, r"mine\.csv leaves \[0, 1\], such as 90 but .*pairs\.csv is in \[0, 1\], such as 0\.5;"),
    ],
)
def test_answers_and_pairs_on_two_scales_are_refused(tmp_path, of_answers, of_pairs, shown):
    def scaled(text, column, factor):
        return pl.read_csv(text.encode()).with_columns((pl.col(column) * factor).round(3)).write_csv()

    answers = scaled(ANSWERS, "confidence", of_answers)
    with pytest.raises(DataError, match=rf"method 'mine': .*{shown}"):
        cells(tmp_path, answers, scaled(PAIRS, "donor_confidence", of_pairs))
    both = cells(tmp_path, scaled(ANSWERS, "confidence", 100), scaled(PAIRS, "donor_confidence", 100))
    assert both.ranked["mine"].n == 4  # percentages in both tables are ranked


def test_the_scale_of_pairs_is_judged_by_method(tmp_path):
    answers = "method,sample_id,image_id,confidence,correct\n"
    answers += "a,q1,i1,0.9,1\na,q2,i2,0.4,0\nb,q1,i1,90,1\nb,q2,i2,40,0\nc,q1,i1,70,1\n"
    pairs = "method,sample_id,donor_image_id,donor_correct,donor_confidence\na,q1,i2,0,0.5\n"
    found = cells(tmp_path, answers, pairs + "b,q1,i2,0,50\n")
    assert list(found.ranked) == ["b", "c"]  # c has no pairs, and so nothing to compare
    with pytest.raises(DataError, match=r"method 'b': .* such as 90 but .* such as 0\.5"):
        cells(tmp_path, answers, pairs + "b,q1,i2,0,0.5\n")


WITH_GOLDS = """\
sample_id,image_id,question,answer,reference_answer,correct,confidence
q1,ct-01,Is there a lesion?,yes,Yes,1,0.9
q2,ct-02,Is there a lesion?,no,no,1,0.8
q3,ct-03,Is there a lesion?,no,yes#maybe,0,0.6
"""


def pairs_of(*rows, columns="donor_answer,donor_correct"):
    return "\n".join([f"sample_id,donor_image_id,donor_confidence,{columns}", *rows, ""])


def test_what_is_not_known_of_a_donor_is_not_refused(tmp_path):
    pairs = pairs_of("q1,ct-02,0.5,no,1", "q2,elsewhere,0.5,no,0")  # no answer tells the gold answer on that image
    assert len(only(cells(tmp_path, WITH_GOLDS, pairs)).pairs) == 2
    two_golds = WITH_GOLDS + "q4,ct-02,Is there a lesion?,no,yes,0,0.4\n"  # ct-02 has two, so that neither is believed
    assert len(only(cells(tmp_path, two_golds, pairs)).pairs) == 2


def test_labels_that_contradict_the_answers_are_said(tmp_path):
    wrong = WITH_GOLDS.replace("yes,Yes,1", "yes,Yes,0").replace("no,yes#maybe,0", "no,yes#maybe,1")
    (said,) = cells(tmp_path, wrong).warnings
    assert "in 2 of 3 rows, 'correct' is not what grading 'answer' by 'reference_answer' gives: 1, 3." in said
    assert only(cells(tmp_path, wrong)).answers["correct"].to_list() == [False, True, True]  # the column counts
    assert cells(tmp_path, WITH_GOLDS).warnings == ()
    without_golds = WITH_GOLDS.replace("yes,Yes,1", "yes,,0").replace("no,no,1", "no,?,0")  # nothing to compare with
    assert cells(tmp_path, without_golds).warnings == ()
    pairs = pairs_of("q1,ct-02,0.5,no,0,no", columns="donor_answer,donor_correct,donor_reference_answer")
    (said,) = cells(tmp_path, WITH_GOLDS, pairs).warnings
    assert "in 1 of 1 rows, 'donor_correct' is not what grading 'donor_answer'" in said
