import json
from pathlib import Path

import pytest

from dualread.data.logs.lm_eval import read_log
from dualread.errors import DataError

MADE = Path(__file__).parent / "made"  # by lm-eval 0.4.13: made/lm_eval_log.py


def rows(name):
    return [json.loads(line) for line in (MADE / name).read_text().splitlines()]


def written(folder, records):
    path = folder / "samples.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_multiple_choice_log_is_read():
    log = read_log(MADE / "samples_organs.jsonl")
    first, second, third = log.samples
    assert (first.question, first.references, first.choices) == ("Which organ?", ("liver",), (-1.0, -2.5))
    assert first.others["doc.case"] == "ct-1"
    # acc: -1 > -2.5, the liver. acc_norm: -1 / 5 < -2.5 / 15, the kidney, which is wrong
    assert (first.scores["acc"].value, first.scores["acc"].choice, first.scores["acc"].answer) == (1.0, 0, "liver")
    assert (first.scores["acc_norm"].value, first.scores["acc_norm"].choice) == (0.0, 1)
    assert second.scores["acc"].choice == 0
    assert third.scores["acc"].answer == "spleen"


def test_a_log_of_generation_has_one_score_per_filter_and_all_draws():
    log = read_log(MADE / "samples_sums.jsonl")
    assert len(log.samples) == 3
    second = log.samples[1]
    assert second.completions == ("I say 8, no: 7", "#### 7", "#### 7")
    # the filter `strict` finds no "#### 7" in the first draw; `last` finds 7
    assert (second.scores["exact_match,strict"].value, second.scores["exact_match,strict"].answer) == (0.0, None)
    assert (second.scores["exact_match,last"].value, second.scores["exact_match,last"].answer) == (1.0, "7")
    assert second.references == ("7",)


def test_an_answer_that_is_not_in_the_first_draw_is_not_of_it(tmp_path):
    records = [{**record, "filter": "vote", "filtered_resps": ["7"]} for record in rows("samples_sums.jsonl")[:2]]
    first, second = read_log(written(tmp_path, records)).samples
    assert [first.scores["exact_match"].of_first, second.scores["exact_match"].of_first] == [False, True]


def test_a_choice_that_does_not_give_the_logged_score_is_unknown(tmp_path):
    records = [{**record, "acc": 1 - record["acc"]} for record in rows("samples_organs.jsonl")]
    assert [one.scores["acc"].choice for one in read_log(written(tmp_path, records)).samples] == [None] * 3


def test_the_likelihoods_without_the_question_are_no_choices(tmp_path):
    record = rows("samples_organs.jsonl")[0]
    unconditional = {f"gen_args_{k + 2}": {"arg_0": "", "arg_1": text} for k, text in enumerate([" liver", " kidney"])}
    record["arguments"] |= unconditional
    record["filtered_resps"] += [["-5.0", "False"], ["-6.0", "False"]]
    assert read_log(written(tmp_path, [record])).samples[0].choices == (-1.0, -2.5)


def test_the_likelihood_of_the_gold_answer_is_no_choice(tmp_path):
    record = rows("samples_organs.jsonl")[0] | {"filtered_resps": [["-1.0", "True"]], "target": "liver"}
    record["arguments"].pop("gen_args_1")
    assert read_log(written(tmp_path, [record])).samples[0].choices == ()


def test_older_versions_are_read(tmp_path):
    """Before 0.4.3 requests were lists, and before 0.4.7 rows named neither their filter nor their metrics."""
    records = rows("samples_organs.jsonl")
    for record in records:
        record["arguments"] = [list(request.values()) for request in record["arguments"].values()]
        record["filtered_resps"] = [[float(one), greedy == "True"] for one, greedy in record["filtered_resps"]]
        del record["filter"], record["metrics"]
    log = read_log(written(tmp_path, records))
    new = read_log(MADE / "samples_organs.jsonl")
    assert log.samples == new.samples
    assert log.notes == ["an older lm-eval wrote this log: what is not one of its own fields counts as a score"]


def test_the_address_of_an_image_is_nobodys_name(tmp_path):
    record = rows("samples_organs.jsonl")[0]
    record["doc"]["image"] = "<PIL.PngImagePlugin.PngImageFile image mode=RGB size=8x8 at 0x7F10DEADBEEF>"
    assert "doc.image" not in read_log(written(tmp_path, [record])).samples[0].others


def test_a_last_line_that_is_cut_off_is_counted(tmp_path):
    text = (MADE / "samples_organs.jsonl").read_text()
    (tmp_path / "cut.jsonl").write_text(text[:-200])
    log = read_log(tmp_path / "cut.jsonl")
    assert len(log.samples) == 2
    assert log.left_out == {"the last line is cut off": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda records: records + records[:1], r"1 id occurs more than once, the first is '0 \(filter none\)'"),
        (lambda records: [{"doc_id": 0}], "1 of 1 rows have no 'doc', which lm-eval"),
        (lambda records: [{**records[0], "filtered_resps": []}], "question 0: is not as lm-eval writes it"),
        (lambda records: [{**records[0], "arguments": {"a": 1}}], "question 0: is not as lm-eval writes it"),
        (lambda records: ["text"], "line 1: is a str"),
        (lambda records: [], "has no rows"),
    ],
)
def test_a_log_of_another_form_is_refused(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        read_log(written(tmp_path, change(rows("samples_organs.jsonl"))))


def test_a_broken_line_in_the_middle_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"doc_id": 0\n{"doc_id": 1}\n')
    with pytest.raises(DataError, match=r"a\.jsonl: line 1: not JSON"):
        read_log(tmp_path / "a.jsonl")


def test_draws_may_be_true_and_false(tmp_path):
    row = {
        **{"doc_id": 0, "doc": {}, "target": "True", "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": {}}}},
        **{"resps": [["True", "False"]], "filtered_resps": [["True", "False"]], "filter": "none"},
        **{"metrics": ["exact_match"], "exact_match": 1.0},
    }
    for answers in (["True", "False"], ["1", "True"]):
        log = read_log(written(tmp_path, [row | {"resps": [answers], "filtered_resps": [answers]}]))
        (sample,) = log.samples
        assert (sample.completions, sample.choices) == (tuple(answers), ())
        assert sample.scores["exact_match"].answer == answers[0]


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_samples_may_be_one_json_list(tmp_path, suffix):
    path = tmp_path / f"samples{suffix}"
    path.write_text(json.dumps(rows("samples_organs.jsonl"), indent=2))
    assert read_log(path) == read_log(MADE / "samples_organs.jsonl")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"doc_id": 0}, ', "begins as one JSON list, and is none .*cut off"),
        ("[1]", "item 1 of its JSON list is a int, expected an object"),
        ("[]", "has no rows, it is an empty JSON list"),
        ('{\n"results": {}\n}', "is one JSON object over several lines, such as a file of results"),
    ],
)
def test_json_of_another_form_is_refused(tmp_path, text, message):
    (tmp_path / "samples.jsonl").write_text(text)
    with pytest.raises(DataError, match=message):
        read_log(tmp_path / "samples.jsonl")
