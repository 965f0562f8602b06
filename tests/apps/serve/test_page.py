"""The page of the server over plain HTTP, its drawn examples, and the short way to open it."""

import base64
import io
import re

import httpx
import numpy as np
import pytest
from PIL import Image

from dualread.apps.serve.application import examples
from dualread.training.phantoms.questions import ask
from tests.apps.serve.running import serving


def test_the_page_says_what_it_is_not_for_and_loads_nothing_from_elsewhere(server):
    page = httpx.get(f"{server.address}/")
    assert page.status_code == 200
    assert "Not for clinical use" in page.text
    for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):  # no other site shows it
        assert rule in page.headers["Content-Security-Policy"]
    assert page.headers["Cache-Control"] == "no-store"
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    drawn = [address for example in examples() for address in example["addresses"]]
    assert sorted(loaded) == sorted(["data:,", "demo.css", "demo.js", *drawn])
    for path in ("demo.css", "demo.js"):
        text = httpx.get(f"{server.address}/{path}").text
        assert text
        assert not re.search(r"https?:|//[a-z]+\.", text)
    assert "innerHTML" not in text  # what a model says stays a text


def test_a_key_keeps_out_who_asks_and_not_who_opens_the_page(server):
    with serving(server.service, api_key="secret") as locked:
        for path in ("/", "/demo.css", "/demo.js"):
            assert httpx.get(locked.address + path).status_code == 200
            assert httpx.post(locked.address + path).status_code == 405
        assert httpx.post(f"{locked.address}/v1/chat/completions", json={}).status_code == 401


@pytest.mark.parametrize("example", examples(), ids=lambda example: example["shown"])
def test_the_question_has_another_answer_on_the_second_image(example):
    [own], [other] = (
        [asked.answer for asked in ask(scene) if asked.question == example["question"]] for scene in example["scenes"]
    )
    assert own != other
    for shown, scene in zip((example["shown"], example["donor_shown"]), example["scenes"], strict=True):
        assert ("haze" in shown) == (scene.haze > 0)
        assert shown.startswith("no lesion" if scene.lesion_count == 0 else f"a {scene.lesion_color} lesion")
    files = [base64.b64decode(address.removeprefix("data:image/png;base64,")) for address in example["addresses"]]
    first, second = (np.asarray(Image.open(io.BytesIO(file))) for file in files)
    assert first.shape == second.shape == (64, 64, 3)
    assert (first != second).any()
