"""How requests are read: what is taken back, ignored and refused, forms of data URLs, and how long it takes."""

import base64
import io
import json
import time
from functools import partial

import pytest
from PIL import Image

from dualread.apps.serve import wire
from dualread.data import given_images
from dualread.errors import DataError
from dualread.limits import ClientLimits
from tests.data.dicoms import dicom
from tests.data.test_windows import CT, LEVELS, MEDGEMMA
from tests.drawn import attempt

RAW = bytes(range(256)) * 3  # with both characters in which the alphabets differ
PLAIN = base64.b64encode(RAW).decode()
ONE = {"messages": [{"role": "user", "content": "Is there a lesion?"}]}


def read(**changed):
    return wire.read(json.dumps({**ONE, **changed}).encode())


def turns(sent, read_image=given_images.read, *, megapixels=1):
    return sent.turns(ClientLimits(megapixels=megapixels), read_image)


def image_part(url):
    return {"type": "image_url", "image_url": {"url": url}}


def test_ct_is_shown_through_the_windows_that_were_said():
    image = base64.b64encode(dicom([[40 + 1024]], **CT)).decode()
    sent = read(messages=[{"role": "user", "content": [image_part(f"data:application/dicom;base64,{image}")]}])
    for windows, shown in ((MEDGEMMA, True), (None, False)):
        (turn,) = turns(sent, partial(given_images.read, ct_windows=windows))
        assert (turn.parts[0].decoded.image.getpixel((0, 0)) == LEVELS[40]) is shown


def test_the_time_to_read_grows_with_the_length_alone():
    pairs = ",".join(f'"{"k" * 30}{i}":0' for i in range(40_000))
    body = f'{{{pairs},"{"k" * 30}39999":1}}'.encode()
    assert len(body) > 1_500_000
    began = time.process_time()
    with pytest.raises(DataError, match="is there twice"):
        wire.read(body)
    assert time.process_time() - began < 2  # counting each name in a list took minutes


@pytest.mark.parametrize(
    "url",
    [
        f"data:image/png;base64,{PLAIN}",
        f"DATA:Image/PNG;BASE64,{PLAIN}",
        f"data:;base64,{PLAIN}",
        f'data:image/png;charset=utf-8;name="x.png";base64,{PLAIN}',
        "data:image/png;base64," + "\r\n".join(PLAIN[i : i + 76] for i in range(0, len(PLAIN), 76)),
        f"data:image/png;base64,{base64.urlsafe_b64encode(RAW).decode()}",
        f"data:image/png;base64,{base64.b64encode(RAW[:-1]).decode().rstrip('=')}",
        "data:image/png;base64," + PLAIN.replace("+", "%2B").replace("/", "%2f"),
    ],
)
def test_data_urls_of_all_forms_are_read(url):
    assert wire.content_of(url) in (RAW, RAW[:-1])


OTHERS = [
    *("data:image/png,x", "data:image/png;base64,A", "data:image/png;base64,QQ==QQ==", "data:;base64,"),
    *("data:;base64,é",),
]


@pytest.mark.parametrize("url", OTHERS)
def test_other_addresses_are_refused(url):
    with pytest.raises(DataError):
        wire.content_of(url)


def test_pixels_count_per_request_and_are_counted_before_they_are_decoded():
    file = io.BytesIO()
    Image.new("L", (300, 300)).save(file, "PNG")
    part = image_part(f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}")
    sent = read(messages=[{"role": "user", "content": [part] * 3}])
    assert len(turns(sent, megapixels=0.27)[0].parts) == 3
    assert len(turns(read(messages=[{"role": "user", "content": [part] * 8}]))[0].parts) == 8
    decoded = []
    with pytest.raises(DataError, match="too large"):
        turns(sent, lambda given: decoded.append(0) or given_images.read(given), megapixels=0.269999)
    assert len(decoded) == 2


KEPT = {"refusal": None, "role": "assistant", "annotations": None, "audio": None, "function_call": None}
BACK = {
    "as the official client keeps it": {**KEPT, "content": "no", "tool_calls": None, "dualread": {"confidence": 0.5}},
    "as litellm keeps it": {
        "role": "assistant",
        "content": "no",
        "tool_calls": [],
        "provider_specific_fields": {"x": 1},
    },
    "in parts": {"role": "assistant", "content": [{"type": "text", "text": "no"}]},
    "an abstention": {"role": "assistant", "content": None, "refusal": "no", "audio": {}},
}


@pytest.mark.parametrize("name", BACK)
def test_a_reply_comes_back_in_the_next_turn(name):
    sent = read(messages=[*ONE["messages"], BACK[name], {**ONE["messages"][0], "name": "me"}])
    assert [(turn.role, turn.parts) for turn in turns(sent)][1] == ("assistant", ("no",))


def test_an_empty_message_of_the_system_is_as_none_and_a_developer_is_the_system():
    for content in ("", " \n", []):
        for role in ("system", "developer"):
            assert turns(read(messages=[{"role": role, "content": content}, *ONE["messages"]])) == turns(read())
    assert turns(read(messages=[{"role": "developer", "content": "x"}, *ONE["messages"]]))[0].role == "system"


@pytest.mark.parametrize(
    "more",
    [
        {"service_tier": "auto", "store": True, "user": "me", "metadata": {"a": "b"}, "prompt_cache_key": "x"},
        {"n": None, "stop": None, "stream": None, "tools": None, "foo": None, "response_format": None},
        {"frequency_penalty": 0.0, "presence_penalty": 0, "logit_bias": {}, "tools": [], "tool_choice": "auto"},
        {"response_format": {"type": "text"}, "functions": [], "parallel_tool_calls": False, "best_of": 1},
        {
            "tools": [{"type": "function"}],
            "tool_choice": "none",
            "stop": [""],
            "stream_options": {"include_usage": None},
        },
    ],
)
def test_what_changes_nothing_is_ignored(more):
    assert read(**more) == read()


def test_texts_of_a_request_have_100000_characters_at_most():
    for n in (50_000, 50_001):
        found, error = attempt(lambda n=n: read(messages=[{"role": "user", "content": "x" * n}] * 2), DataError)
        assert (found is None) == (n == 50_001)
        assert found is not None or "the texts have 100002 characters; at most 100000 are read" in str(error)


def test_one_limit_may_be_said_twice_and_settings_that_are_missing_are_noted():
    assert read(max_tokens=3, max_completion_tokens=3).max_tokens == 3
    [note] = read(reasoning_effort="low").without_effect
    assert note.startswith("reasoning_effort")
