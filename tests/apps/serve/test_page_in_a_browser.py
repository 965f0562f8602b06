"""The page as a person uses it: dropped and chosen files, keys, and what a screen reader is told."""

import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from PIL import Image

from dualread.apps.serve import chats
from tests.apps.serve.running import LESION, serving, user
from tests.reporting.devtools import needs_chromium

pytestmark = needs_chromium

SHOWN = "document.querySelector('#result h2') !== null"
PROBLEM = "document.getElementById('problem').textContent"


@pytest.fixture
def page(server, browser):
    with browser.page() as opened:
        opened.open(f"{server.address}/")
        yield opened


def ask(page):
    page.value("document.getElementById('question').focus()")
    page.type(LESION)
    page.press("Enter")
    page.wait(SHOWN)


def test_a_dropped_image_is_answered_and_a_second_one_shows_the_drop(server, study, scorer, page, tmp_path):
    first, second = study.image(1), tmp_path / "ein zweites Bild, größer.png"
    Image.open(study.image(2)).save(second)
    expected = scorer(first, LESION, donor=second)
    page.value("document.getElementById('drop-image').scrollIntoView()")
    page.drop("#drop-image", first)
    page.wait("document.getElementById('preview-image').naturalWidth > 0")
    page.choose("#donor", second)
    page.wait("document.getElementById('preview-donor').naturalWidth > 0")
    ask(page)
    shown = page.value("document.getElementById('result').innerText")
    assert f"confidence {expected.confidence:.4f}, drop on the second image {expected.drop:+.4f}" in shown
    assert f"{expected.donor.confidence:.4f}" in shown
    assert f"Undecided: {expected.decision.reason.partition(';')[0]}" in shown
    parts = (expected.psr, expected.per, expected.methods["question_prior"].confidence)
    assert all(f"{value:.4f}" in shown for value in parts)
    assert page.value("document.querySelectorAll('#result tbody tr').length") == 1 + 2 + 3 + 1  # answer, parts, others
    assert page.complaints == []
    assert {"/".join(request.split("/")[:3]) for request in page.requests if request.startswith("http")} == {
        server.address
    }


def test_all_is_done_with_keys_and_a_screen_reader_is_told(study, page):
    """Tab goes through examples, images and question; the answer is told as a status, an error as an alert."""
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=True)  # a phone
    names = page.named()
    assert ("textbox", "Question") in names
    assert ("button", "Ask") in names
    assert {("group", "Image"), ("group", "Second image, if you like")} <= names
    assert any(name.startswith("Drop an image here, choose a file, or take a photo") for _, name in names)
    visited = []
    for _ in range(7):
        page.press("Tab")
        visited.append(page.value("document.activeElement.id"))
    assert visited == ["example-1", "example-2", "example-3", "image", "donor", "question", "ask"]
    page.press("Enter")
    page.wait(f"{PROBLEM} !== ''")
    assert "There is no image" in page.value(PROBLEM)
    assert page.value("document.activeElement.id") == "ask"
    page.choose("#image", study.image(1))
    page.press(" ")
    page.wait(f"{PROBLEM}.includes('the question is empty')")
    ask(page)
    assert page.value(PROBLEM) == ""
    for part in ("document.documentElement", "document.getElementById('result')"):
        assert page.value(f"{part}.scrollWidth <= {part}.clientWidth"), part
    told = page.value("document.getElementById('status').textContent")
    assert told.startswith("Answer: ")
    assert {("status", ""), ("alert", "")} & page.named()
    assert all("status of 400" in complaint for complaint in page.complaints)  # what the browser says of the two errors


def test_files_that_are_no_images_get_one_sentence_and_the_next_question_is_answered(study, page, tmp_path):
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "empty.png").touch()
    page.value("document.getElementById('question').focus()")
    page.type(LESION)
    for name, said in (("notes.txt", "cannot be decoded"), ("empty.png", "empty.png is empty")):
        page.choose("#image", tmp_path / name)
        page.press("Enter")
        page.wait(f"{PROBLEM}.includes({said!r})")
    with (tmp_path / "large.png").open("wb") as large:
        large.truncate(22_000_001)
    page.choose("#image", tmp_path / "large.png")
    page.press("Enter")
    page.wait(f"{PROBLEM}.includes('large.png is too large')")
    page.choose("#image", study.image(1))
    page.choose("#donor", study.image(2))
    page.value("document.getElementById('remove').focus()")  # a second image can be taken away again
    page.press("Enter")
    assert page.value("document.activeElement.id") == "donor"
    page.value("document.getElementById('question').focus()")
    page.press("Enter")
    page.wait(SHOWN)
    assert page.value(PROBLEM) == ""
    assert "drop" not in page.value("document.getElementById('result').innerText")


def test_what_the_model_says_and_a_threshold_are_shown_as_texts(server, study, page, monkeypatch):
    real = chats.ReplyWriter.whole

    def whole(writer):
        reply = real(writer)
        [choice] = reply["choices"]
        choice["message"]["content"] = "<script>alert(1)</script>"
        decided = {"threshold": {"decision": "<i>why"}, "abstain": False, "confidence": None}
        choice["dualread"] |= {"answer": "<b>x", "notes": ["<i>note"], **decided}
        return reply

    monkeypatch.setattr(chats.ReplyWriter, "whole", whole)
    page.choose("#image", study.image(1))
    ask(page)
    page.value("document.querySelector('#result details').open = true")
    shown = page.value("document.getElementById('result').innerText")
    for text in ("Answer: <b>x, no confidence", "Keep: <i>why", "Note: <i>note", "<script>alert(1)</script>"):
        assert text in shown
    assert page.value("document.querySelectorAll('#result :is(b, i, script)').length") == 0
    assert page.complaints == []


def test_the_claims_of_a_report_are_shown_with_their_confidences(server, study, page, monkeypatch):
    real = chats.ReplyWriter.whole
    claim = {"start": 0, "end": 9, "confidence": 0.25, "reason": None, "keep": False}
    none = {"confidence": None, "reason": "<i>why", "keep": None}
    claims = [claim | {"text": "<b>Clear."}, claim | none | {"text": "No."}]

    def whole(writer):
        reply = real(writer)
        reply["choices"][0]["dualread"] |= {"claims": claims, "confidence": None, "notes": ["none as a whole"]}
        return reply

    monkeypatch.setattr(chats.ReplyWriter, "whole", whole)
    page.choose("#image", study.image(1))
    ask(page)
    rows = (
        "[...document.querySelectorAll('#result tr')]"
        ".map((row) => [...row.children].map((cell) => cell.innerText.trim()))"
    )
    assert page.value(rows) == [
        ["Claim", "Confidence", "Decision"],
        ["<b>Clear.", "0.2500", "Do not keep"],
        ["No.", "none: <i>why", "Undecided"],
    ]
    assert page.value("document.getElementById('status').textContent") == "Report: 2 claims"
    assert page.value("document.querySelector('#result meter').value") == 0.25
    assert page.value("document.querySelectorAll('#result :is(b, i)').length") == 0
    page.choose("#donor", study.image(2))
    page.value("document.getElementById('question').focus()")
    page.press("Enter")
    page.wait("document.querySelectorAll('#result table').length === 2")
    title = page.value("document.querySelector('#result h2').textContent")
    assert title == "Report: 2 claims, on the second image 2 claims"
    assert page.complaints == []


def test_a_server_with_a_key_asks_for_it(server, study, browser):
    with serving(server.service, api_key="secret") as locked, browser.page() as page:
        page.open(f"{locked.address}/")
        page.value("document.getElementById('example-1').click()")
        page.wait(f"{PROBLEM}.includes('the API key is missing')")
        page.value("document.getElementById('key').focus()")
        page.type("secret")
        page.press("Enter")
        page.wait(SHOWN)


def test_a_page_of_another_site_in_the_same_browser_cannot_ask(server, page, tmp_path, monkeypatch):
    """It sends the kind of request for which a browser does not ask for leave first; the server refuses it."""
    submitted = []
    monkeypatch.setattr(server.service, "submit", lambda *given: submitted.append(given))
    (tmp_path / "other.html").write_text("<title>another site</title>")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        page.open(f"http://127.0.0.1:{other.server_port}/other.html")
        sent = json.dumps({"messages": [user(LESION)]})
        how = f"{{method: 'POST', mode: 'no-cors', body: {json.dumps(sent)}}}"
        asked = f"fetch('{server.address}/v1/chat/completions', {how})"
        page.value(f"{asked}.then((reply) => reply.text()).then((text) => {{ window.found = `read: ${{text}}` }})")
        page.wait("window.found === 'read: '")  # the browser shows nothing of the refusal
        other.shutdown()
    assert f"{server.address}/v1/chat/completions" in page.requests
    assert submitted == []
