"""Logs of multiple-choice questions, unscored samples, and logs in unusual forms, through `dualread.evaluate`."""

import json
import math

import pytest

import dualread
from dualread.errors import DataError
from tests.data.logs.archive import HEADER, archive, sample

ORGANS = {"A": "liver", "B": "kidney", "C": "spleen", "D": "heart"}
STATED = (95, 90, 80, 70, 60, 55)


def tsv(path, golds, predictions, hits=None, options=ORGANS):
    head = ["index", "question", *options, "answer", "prediction", *(["hit"] if hits else [])]
    rows = [
        [str(k), "Which organ?", *options.values(), gold, f"<answer>{said}</answer><confidence>{stated}</confidence>"]
        + ([str(hits[k])] if hits else [])
        for k, (gold, said, stated) in enumerate(zip(golds, predictions, STATED, strict=False))
    ]
    path.write_text("\n".join("\t".join(row) for row in [head, *rows]) + "\n")
    return path


def evaluated(path, log_format="vlmevalkit", **options):
    return dualread.evaluate(path, log_format=log_format, replicates=0, **options)


def estimate(found, metric):
    return found.metrics.filter(metric=metric, subset="all")["estimate"].item()


@pytest.mark.parametrize(
    "form", ["{0}", "({0})", "{0}.", "{0}. {1}", "{0}: {1}", "{1}", "The {1}", "Option {0}", "**{0}**"]
)
def test_answers_that_name_options_in_any_way_are_graded(tmp_path, form):
    golds, said = "ABAAAB", "ABCADB"  # the third and the fifth are wrong
    predictions = [form.format(letter, ORGANS[letter]) for letter in said]
    found = evaluated(tsv(tmp_path / "a.tsv", golds, predictions))
    assert estimate(found, "accuracy") == pytest.approx(4 / 6)
    # (.05^2 + .1^2 + .8^2 + .3^2 + .6^2 + .45^2) / 6
    assert estimate(found, "brier") == pytest.approx(0.2175)
    assert not any("name none" in note for note in found.notes)


def test_a_judged_file_is_not_contradicted(tmp_path):
    path = tsv(
        tmp_path / "a.tsv", "ABAAAB", ["A", "B. kidney", "C", "I see a liver", "D", "(B)"], hits=[1, 1, 0, 1, 0, 1]
    )
    found = evaluated(path)
    assert estimate(found, "accuracy") == pytest.approx(4 / 6)
    assert found.warnings == []
    said = "the answers to 1 of 6 questions with options name none of them, neither by letter nor by text, such as"
    assert f"{path}: {said} 'I see a liver'; what the score says counts" in found.notes


def test_a_judgement_that_contradicts_the_options_is_still_mentioned(tmp_path):
    found = evaluated(tsv(tmp_path / "a.tsv", "AA", ["A. liver", "B"], hits=[0, 0]))
    assert len(found.warnings) == 1
    assert "in 1 of 2 rows, 'correct' is not what grading" in found.warnings[0]


def test_answers_that_name_no_option_are_counted(tmp_path):
    path = tsv(tmp_path / "a.tsv", "AB", ["lung", "the brain"])
    found = evaluated(path)
    assert estimate(found, "accuracy") == 0
    said = "the answers to 2 of 2 questions with options name none of them, neither by letter nor by text, such as"
    assert f"{path}: {said} 'lung'; they are graded as they are" in found.notes


def test_answers_that_number_the_options_are_refused(tmp_path):
    with pytest.raises(DataError, match="in 2 of 2 rows, column 'answer' is a number and"):
        evaluated(tsv(tmp_path / "a.tsv", "AB", ["0", "1"]))


def test_gold_answers_that_name_no_option_are_refused_or_counted(tmp_path):
    with pytest.raises(
        DataError, match=r"the gold answers to 2 of 2 questions .*: '0' of 'liver', 'kidney'.*correct=NAME"
    ):
        evaluated(tsv(tmp_path / "a.tsv", "01", ["A", "B"]))
    found = evaluated(tsv(tmp_path / "a.tsv", "0BAB", ["A", "B", "A", "A"]))
    assert any("the gold answers to 1 of 4 questions with options name none" in note for note in found.notes)


def test_options_that_are_letters_are_not_mixed_up(tmp_path):
    groups = {"A": "B", "B": "A", "C": "AB", "D": "0"}  # blood groups: option A is "B"
    found = evaluated(tsv(tmp_path / "a.tsv", "AAB", ["A", "B", "B. A"], options=groups))
    assert estimate(found, "accuracy") == pytest.approx(2 / 3)


def test_options_with_one_canonical_form_are_not_mixed_up(tmp_path):
    found = evaluated(tsv(tmp_path / "a.tsv", "AA", ["A", "B"], options={"A": "lung", "B": "lungs"}))
    assert estimate(found, "accuracy") == 0.5


def test_choices_of_inspect_are_options(tmp_path):
    samples = [
        sample("q1", "ANSWER: B", target="B", choices=["left", "right"]),
        sample("q2", "right", target="A", choices=["left", "right"]),
        sample("q3", "A) left", target="left", choices=["left", "right"]),
    ]
    for one, sure in zip(samples, (0.9, 0.6, 0.8), strict=True):
        one["metadata"] = {"sure": sure}
    found = evaluated(archive(tmp_path / "a.eval", samples), "inspect", columns={"confidence": "metadata.sure"})
    assert estimate(found, "accuracy") == pytest.approx(2 / 3)


@pytest.mark.parametrize("unscored", [None, math.nan, math.inf, "NaN", ""])
def test_samples_without_a_score_are_left_out_and_counted(tmp_path, unscored):
    text = "<answer>yes</answer><confidence>{}</confidence>"
    values = ["C", "I", unscored, "C"]
    samples = [
        sample(f"q{k}", text.format(stated), scores={"match": {"value": value, "answer": "yes"}})
        for k, (value, stated) in enumerate(zip(values, (90, 80, 70, 60), strict=True))
    ]
    path = archive(tmp_path / "a.eval", samples)
    found = evaluated(path, "inspect")
    assert estimate(found, "accuracy") == pytest.approx(2 / 3)
    assert estimate(found, "brier") == pytest.approx((0.01 + 0.64 + 0.16) / 3)
    assert found.left_out == {f"{path}: no score 'match'": 1}


def test_a_column_of_scores_that_are_not_numbers_is_left_out_too(tmp_path):
    samples = [
        sample(f"q{k}", "<answer>yes</answer><confidence>80</confidence>", scores={"match": {"value": value}})
        for k, value in enumerate([1.0, math.nan, 0.0])
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**HEADER, "samples": samples}))  # writes NaN
    found = evaluated(path, "inspect", columns={"correct": "score.match"})
    assert found.left_out == {f"{path}: no value for 'correct'": 1}
    assert estimate(found, "accuracy") == 0.5


def test_a_choice_that_is_not_the_likeliest_is_mentioned(tmp_path):
    row = {
        **{
            "doc_id": 0,
            "doc": {},
            "target": 1,
            "filter": "none",
            "metrics": ["acc", "acc_norm"],
            "acc": 0.0,
            "acc_norm": 1.0,
        },
        "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": " no"}, "gen_args_1": {"arg_0": "?", "arg_1": " a lesion"}},
        **{
            "resps": [[["-1.0", "False"]], [["-2.0", "False"]]],
            "filtered_resps": [["-1.0", "False"], ["-2.0", "False"]],
        },
    }
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(row) + "\n")
    said = "in 1 of 1 questions, the choice that 'acc_norm' judges is not the likeliest one"
    assert any(said in note for note in evaluated(path, "lm-eval", score="acc_norm").notes)
    assert not any(said in note for note in evaluated(path, "lm-eval", score="acc").notes)
