"""The page as a person uses it: dropped and chosen files, keys, and what a screen reader is told."""

import json
from base64 import b64encode
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from PIL import Image

from tests.apps.score.test_scorer import LESION
from tests.reporting.devtools import needs_chromium

pytestmark = needs_chromium

SHOWN = "document.querySelector('#result h2') !== null"
PROBLEM = "document.getElementById('problem').textContent"


@pytest.fixture
def page(demo, browser):
    with browser.page() as opened:
        opened.open(demo.address)
        yield opened


def test_a_dropped_image_is_answered_and_a_second_one_shows_the_drop(demo, page, tmp_path):
    first, second = demo.study.image(1), tmp_path / "ein zweites Bild, größer.png"
    Image.open(demo.study.image(2)).save(second)
    expected = demo.scorer(first, LESION, donor=second)
    page.value("document.getElementById('drop-image').scrollIntoView()")
    page.drop("#drop-image", first)
    page.wait("document.getElementById('preview-image').naturalWidth > 0")
    page.choose("#donor", second)
    page.wait("document.getElementById('preview-donor').naturalWidth > 0")
    page.value("document.getElementById('question').focus()")
    page.type(LESION)
    page.press("Enter")
    page.wait(SHOWN)
    shown = page.value("document.getElementById('result').innerText")
    assert f"confidence {expected.confidence:.4f}, drop on the second image {expected.drop:+.4f}" in shown
    assert f"{expected.donor.confidence:.4f}" in shown
    assert page.value("document.querySelectorAll('#result tbody tr').length") == 1 + 2 + 2 + 1  # answer, parts, others
    assert page.complaints == []
    assert {"/".join(request.split("/")[:3]) for request in page.requests if request.startswith("http")} == {
        demo.address
    }


def test_all_is_done_with_keys_and_a_screen_reader_is_told(demo, page):
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
    page.choose("#image", demo.study.image(1))
    page.press(" ")
    page.wait(f"{PROBLEM}.includes('the question is empty')")
    page.value("document.getElementById('question').focus()")
    page.type(LESION)
    page.press("Enter")
    page.wait(SHOWN)
    assert page.value(PROBLEM) == ""
    for part in ("document.documentElement", "document.getElementById('result')"):
        assert page.value(f"{part}.scrollWidth <= {part}.clientWidth"), part
    told = page.value("document.getElementById('status').textContent")
    assert told.startswith("Answer: ")
    assert {("status", ""), ("alert", "")} & page.named()
    assert all("status of 400" in complaint for complaint in page.complaints)  # what the browser says of the two errors


def test_files_that_are_no_images_get_one_sentence_and_the_next_question_is_answered(demo, page, tmp_path):
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "empty.png").touch()
    page.value("document.getElementById('question').focus()")
    page.type(LESION)
    for name, said in (("notes.txt", "The image cannot be used"), ("empty.png", "empty.png is empty")):
        page.choose("#image", tmp_path / name)
        page.press("Enter")
        page.wait(f"{PROBLEM}.includes({said!r})")
    with (tmp_path / "large.png").open("wb") as large:
        large.truncate(20_000_001)
    page.choose("#image", tmp_path / "large.png")
    page.press("Enter")
    page.wait(f"{PROBLEM}.includes('large.png is too large')")
    page.choose("#image", demo.study.image(1))
    page.choose("#donor", demo.study.image(2))
    page.value("document.getElementById('remove').focus()")  # a second image can be taken away again
    page.press("Enter")
    assert page.value("document.activeElement.id") == "donor"
    page.value("document.getElementById('question').focus()")
    page.press("Enter")
    page.wait(SHOWN)
    assert page.value(PROBLEM) == ""
    assert "drop" not in page.value("document.getElementById('result').innerText")


def test_a_page_of_another_site_in_the_same_browser_cannot_ask(demo, page, tmp_path, monkeypatch):
    """It sends the kind of request for which a browser does not ask for leave first; the program refuses it."""
    monkeypatch.setattr(demo.scorer, "each", lambda questions: pytest.fail("asked"))
    (tmp_path / "other.html").write_text("<title>another site</title>")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        page.open(f"http://127.0.0.1:{other.server_port}/other.html")
        sent = json.dumps({"question": LESION, "image": b64encode(demo.study.image(1).read_bytes()).decode()})
        asked = f"fetch('{demo.address}/ask', {{method: 'POST', mode: 'no-cors', body: {json.dumps(sent)}}})"
        page.value(f"{asked}.then(() => {{ window.found = 'read' }}, () => {{ window.found = 'nothing' }})")
        page.wait("window.found === 'nothing'")
        other.shutdown()
    assert f"{demo.address}/ask" in page.requests
