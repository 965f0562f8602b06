import base64
import hashlib
import json
from pathlib import Path

import pytest

from dualread.data.logs.lmms_eval import read_log
from dualread.errors import DataError

MADE = Path(__file__).parent / "made/20261124_samples_lesions.jsonl"  # by lmms-eval 0.7.3: made/lmms_eval_log.py
ROWS = [json.loads(line) for line in MADE.read_text().splitlines()]


def written(folder, records):
    path = folder / "samples.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_log_of_lmms_eval_is_read():
    first, second, third = read_log(MADE).samples
    assert (first.sample_id, first.question, first.references) == ("0", "Is there a lesion?", ("yes",))
    assert second.completions == ("kidney", "liver")
    assert (second.scores["exact"].value, second.scores["exact"].answer) == (0.0, "kidney")
    assert second.scores["by_organ"].value == 0.0
    assert second.others["by_organ.question_id"] == "b"
    assert [first.image, second.image, third.image] == ["scans/1.png", "scans/1.png", "scans/2.png"]


def test_one_answer_is_logged_once(tmp_path):
    records = [{key: value for key, value in row.items() if key != "resps"} for row in ROWS]
    assert [one.completions for one in read_log(written(tmp_path, records)).samples] == [("yes",), ("kidney",), ("no",)]


def test_draws_that_are_requests_of_their_own_are_read(tmp_path):
    """With `--repeats`, every draw is a request with a list of its own."""
    record = ROWS[0] | {"resps": [["yes"], ["no"]], "filtered_resps": ["yes", "no"]}
    assert read_log(written(tmp_path, [record])).samples[0].completions == ("yes", "no")


@pytest.mark.parametrize("answers", [["True", "False"], [["True"], ["False"]], [["True", "False"]]])
def test_draws_may_be_true_and_false_and_nested(tmp_path, answers):
    record = ROWS[0] | {"resps": answers, "filtered_resps": answers}
    assert read_log(written(tmp_path, [record])).samples[0].completions == ("True", "False")


def test_what_a_filter_leaves_stands_for_reasoning_that_mentions_the_tags(tmp_path):
    clean = "<answer>yes</answer><confidence>95</confidence>"
    record = ROWS[0] | {"resps": [f"I need <answer>X</answer> and <confidence>NN</confidence>: {clean}"]}
    for filtered in (clean, [clean], [[clean]]):
        (sample,) = read_log(written(tmp_path, [record | {"filtered_resps": filtered}])).samples
        assert sample.completions == (clean,)
        assert sample.scores["exact"].of_first


def test_images_are_identified_by_content_address_or_path(tmp_path):
    uri = "data:image/png;base64," + base64.b64encode(b"pixels").decode()
    records = [{**ROWS[k], "input_media": media} for k, media in enumerate([[uri], ["a.png", "b.png"], None])]
    images = [one.image for one in read_log(written(tmp_path, records)).samples]
    digest = hashlib.sha256
    assert images == [digest(b"pixels").hexdigest(), digest(b"a.png\nb.png").hexdigest(), None]


def test_likelihoods_of_choices_are_not_used_and_this_is_said(tmp_path):
    record = ROWS[0] | {"filtered_resps": [["-1.0", "False"], ["-2.0", "True"]]}
    log = read_log(written(tmp_path, [record]))
    assert (log.samples[0].choices, log.samples[0].completions) == ((), ())
    assert log.notes == ["log-likelihoods of choices are not used, because their sign is unknown (questions: 1)"]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (ROWS + ROWS[1:], "2 ids occur more than once, the first is '1'"),
        (
            [{key: value for key, value in ROWS[0].items() if key != "target"}],
            "1 of 1 rows have no 'target', which lmms-",
        ),
    ],
)
def test_a_log_of_another_form_is_refused(tmp_path, records, message):
    with pytest.raises(DataError, match=message):
        read_log(written(tmp_path, records))
