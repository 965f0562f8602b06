"""Which lines of a folder answer which requests."""

import json
import time

import pytest

from dualread import limits
from dualread.errors import ArtifactError
from dualread.models.conditions import Asked
from dualread.models.service.replies import ReplyError
from dualread.models.service.requests import requests_of
from dualread.models.service.responses import Found, read_responses, reply_in
from dualread.schema.answers import Service
from tests import specs


def _requests(n):
    questions = [
        Asked(sample_id=f"d/test/{i}", text="What?", image_files=[f"images/{i}"], image_id=f"{i}") for i in range(n)
    ]
    return list(requests_of(specs.shard(), Service(model="m", log_probs=False, body={}), questions))


def _line(request, text="lung", **more):
    body = {"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]}
    return json.dumps({"custom_id": request.custom_id, "response": {"status_code": 200, "body": body}} | more)


def _read(folder, **files):
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return read_responses(folder)


def _literal(folder, requests):
    """Find the replies with all lines of all files in memory."""
    found = {}
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").split("\n"):
            try:
                decoded = json.loads(line)
            except ValueError:
                continue
            for request in requests:
                if isinstance(decoded, dict) and decoded.get("custom_id") == request.custom_id:
                    try:
                        found.setdefault(request.custom_id, reply_in(decoded, request))
                    except ReplyError:
                        continue
    return found


def test_equals_a_search_with_all_lines_in_memory(tmp_path):
    requests = _requests(6)
    a = [
        _line(requests[3], "left \u00e9"),
        "",
        _line(requests[0])[:-9],
        "[1]",
        _line(requests[1], response=None, error="no"),
    ]
    b = [
        _line(requests[1]),
        _line(requests[5]),
        _line(requests[5]),
        "7",
        _line(requests[0]).replace(requests[0].custom_id, "x"),
    ]
    found = Found(_read(tmp_path, a=a, b=b))
    assert {request.custom_id: reply for request, reply in found.replies(requests)} == _literal(tmp_path, requests)
    assert list(found.is_open) == [1, 0, 1, 0, 1, 0]
    assert (found.n_requests, found.n_missing, found.why) == (6, 3, ["3: no response"])


def test_broken_lines_and_strange_ids_are_counted_and_named(tmp_path):
    requests = _requests(3)
    read = _read(tmp_path, a=[_line(requests[0])[:-9], _line(requests[1])], b=["[1]", "", _line(requests[2])])
    assert [str(place) for place in read.broken] == ["a.jsonl:1", "b.jsonl:1"]
    assert [str(place) for place in read.strange()] == ["a.jsonl:2", "b.jsonl:3"]
    list(Found(read).replies(requests[:2]))
    assert [str(place) for place in read.strange()] == ["b.jsonl:3"]


def test_two_different_responses_are_refused_and_equal_ones_are_not(tmp_path):
    requests = _requests(1)
    assert len(list(Found(_read(tmp_path, a=[_line(requests[0])] * 2)).replies(requests))) == 1
    found = Found(_read(tmp_path, b=[_line(requests[0], "heart")]))
    with pytest.raises(
        ArtifactError, match=r"a\.jsonl:1 and a\.jsonl:2 answer the same request \(d/test/0\) differently"
    ):
        list(found.replies(requests))


_BODY = {"choices": [{"index": 0, "message": {"content": "lung"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("response", "error", "reason"),
    [
        ({"body": _BODY}, None, None),  # lines without a status are of services that write none
        ({"status_code": 200, "body": _BODY}, {"message": "late"}, None),
        ({"status_code": 500, "body": _BODY}, None, "error 500"),  # whatever its body looks like
        ({"status_code": None, "body": _BODY}, None, "error None"),
        ({"status_code": 429, "body": {"error": {"message": "too\nfast"}}}, "no", "error 429: too fast"),
        ({"status_code": 503, "body": "<html>"}, {"message": "down"}, "error 503: down"),
        (None, {"code": "expired"}, "error"),
        (None, "x" * 300, f"error: {'x' * 200}"),
        ("a reply", None, "has neither a response nor an error"),
    ],
)
def test_a_reply_is_that_of_status_200_alone(response, error, reason):
    [request] = _requests(1)
    line = {"custom_id": request.custom_id, "response": response, "error": error}
    if reason is None:
        assert reply_in(line, request).choices[0].text == "lung"
        return
    with pytest.raises(ReplyError) as raised:
        reply_in(line, request)
    assert str(raised.value) == reason


def test_many_lines_of_one_id_are_found_as_fast_as_lines_of_many(tmp_path):
    def seconds(ids):
        (tmp_path / "a.jsonl").write_text("".join(f'{{"custom_id": "{i}"}}\n' for i in ids))
        start = time.process_time()
        read_responses(tmp_path)
        return time.process_time() - start

    n = 20_000
    assert seconds([0] * n) < 5 * seconds(range(n))


def test_a_line_that_is_too_long_is_refused_and_a_changed_file_too(tmp_path, monkeypatch):
    requests = _requests(2)
    read = _read(tmp_path, a=[_line(request) for request in requests])
    (tmp_path / "a.jsonl").write_text("{" * 3000)
    with pytest.raises(ArtifactError, match=r"a\.jsonl: was changed while it was read"):
        list(Found(read).replies(requests))
    monkeypatch.setattr(limits, "RESPONSE_BYTES", 1000)
    with pytest.raises(ArtifactError, match=r"a\.jsonl:1: a line of more than 0 MB, which is no response"):
        read_responses(tmp_path)
