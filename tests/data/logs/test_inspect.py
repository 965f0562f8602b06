import base64
import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from dualread.data.logs.inspect import read_log
from dualread.errors import DataError
from tests.data.logs.archive import HEADER, archive, sample

MADE = Path(__file__).parent / "made/lesions.eval"  # by inspect-ai 0.3.285: made/inspect_log.py


def test_a_log_of_inspect_is_read():
    log = read_log(MADE)
    assert [one.sample_id for one in log.samples] == ["q1", "q2", "q3", "q4"]
    first = log.samples[0]
    assert first.question == "Is there a lesion? (q1)"
    assert first.references == ("yes",)
    assert first.completions[:2] == (
        "<answer>yes</answer> <confidence>90</confidence>",
        "<answer>yes</answer> <confidence>80</confidence>",
    )
    assert (first.scores["pattern"].value, first.scores["pattern"].answer) == ("C", "yes")
    assert first.scores["pattern"].draws == ("yes", "no")
    assert first.scores["length"].value == 1.0
    assert first.tokens is not None
    assert first.tokens[3] == (b"yes", -0.225)
    assert first.others == {"metadata.hospital.city": "Basel", "metadata.patient": "1"}
    assert log.left_out == {}
    assert log.notes == ["further epochs that failed and are not among the draws: 1"]  # q4, the second epoch


def test_an_image_is_identified_by_its_content():
    pixel = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    images = [one.image for one in read_log(MADE).samples]
    first, second = hashlib.sha256(pixel).hexdigest(), hashlib.sha256(pixel + b"b").hexdigest()
    assert images == [first, first, second, second]


@pytest.mark.parametrize("where", ["metadata", "path", "removed", "unresolved"])
def test_an_image_that_is_named_or_missing(tmp_path, where):
    image = {"path": "scans/1.png", "removed": "<base64-data-removed>", "unresolved": "attachment://gone"}.get(
        where, ""
    )
    content = [{"type": "image", "image": image}, {"type": "text", "text": "Why?"}]
    metadata = {"image_id": 7} if where == "metadata" else {}
    asked = sample("q1", "yes", input=[{"role": "user", "content": content}], metadata=metadata)
    log = read_log(archive(tmp_path / "a.eval", [asked]))
    expected = {"metadata": "7", "path": "scans/1.png"}.get(where)
    assert log.samples[0].image == expected
    assert log.samples[0].question == "Why?"
    assert log.notes == (["image_id is metadata.image_id"] if where == "metadata" else [])


def test_older_archives_and_json_hold_the_same(tmp_path):
    samples = [sample("q1", "yes"), sample("q2", "no")]
    (tmp_path / "a.json").write_text(json.dumps({**HEADER, "samples": samples}))
    assert read_log(archive(tmp_path / "a.eval", samples)) == read_log(tmp_path / "a.json")


def test_samples_without_an_answer_are_counted(tmp_path):
    samples = [
        sample("q1", "yes"),
        sample("q2", "", error={"message": "no connection"}),
        sample("q3", "no", invalidation={"author": "me"}),
        sample("q4", "no", output={"model": "m", "choices": [], "completion": ""}),
    ]
    log = read_log(archive(tmp_path / "a.eval", samples))
    assert [one.sample_id for one in log.samples] == ["q1"]
    assert log.left_out == {
        "the sample failed in Inspect": 1,
        "the sample was invalidated in Inspect": 1,
        "the model gave no output": 1,
    }


def test_a_run_that_has_not_ended_says_what_is_missing(tmp_path):
    log = read_log(archive(tmp_path / "a.eval", [sample("q1", "yes")], header=None))
    assert log.notes == ["the run did not end well (its status: not ended): 1 of its questions have no sample here"]


def test_reasoning_is_no_part_of_the_completion(tmp_path):
    content = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}]
    output = {"choices": [{"message": {"role": "assistant", "content": content}}]}
    assert read_log(archive(tmp_path / "a.eval", [sample("q1", "", output=output)])).samples[0].completions == ("yes",)


def test_bytes_of_a_token_go_before_its_text(tmp_path):
    tokens = [{"token": "\ufffd", "logprob": -1, "bytes": [0xC3]}, {"token": "\ufffd", "logprob": -2, "bytes": [0xA4]}]
    output = {"choices": [{"message": {"content": "ä"}, "logprobs": {"content": tokens}}]}
    log = read_log(archive(tmp_path / "a.eval", [sample("q1", "", output=output)]))
    assert log.samples[0].tokens == ((b"\xc3", -1.0), (b"\xa4", -2.0))


@pytest.mark.parametrize("kept", [0.3, 0.99])
def test_a_log_that_is_cut_off_is_refused(tmp_path, kept):
    content = MADE.read_bytes()
    (tmp_path / "a.eval").write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(DataError, match=r"a\.eval: is neither an archive nor JSON .* cut off.*inspect log recover"):
        read_log(tmp_path / "a.eval")


def test_a_damaged_member_is_refused(tmp_path):
    content = bytearray(MADE.read_bytes())
    with zipfile.ZipFile(MADE) as file:
        start = next(one.header_offset for one in file.infolist() if one.filename == "samples/q2_epoch_1.json")
    content[start + 200 : start + 220] = bytes(20)
    (tmp_path / "a.eval").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.eval: is damaged \(samples/q2_epoch_1\.json: "):
        read_log(tmp_path / "a.eval")


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "holds no samples"),
        ([sample("q1", "yes"), sample("q1", "no") | {"uuid": "x"}], r"1 id occurs more than once.*'q1 \(epoch 1\)'"),
        ([{"id": "q1", "epoch": 1, "input": "?", "target": "yes"}], "1 of 1 rows have no 'output', which Inspect"),
    ],
)
def test_a_log_of_another_form_is_refused(tmp_path, samples, message):
    (tmp_path / "a.json").write_text(json.dumps({**HEADER, "samples": samples}))
    with pytest.raises(DataError, match=message):
        read_log(tmp_path / "a.json")


def test_a_json_of_something_else_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(DataError, match="no key 'eval'"):
        read_log(tmp_path / "a.json")
