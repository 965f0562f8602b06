"""The page over plain HTTP: what it answers, what it refuses, and in how many words."""

import base64
import html
import json
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection

import pytest
from PIL import Image

from dualread.apps import main as program
from dualread.apps.score import scorer as scoring
from dualread.apps.serve.demo import page
from dualread.apps.serve.demo.examples import EXAMPLES
from dualread.apps.serve.demo.page import listen
from tests.apps.score.test_scorer import LESION


def request(demo, method="GET", path="/", body=None, **headers):
    """Return status, text and headers of an answer; the page's own headers unless others are given."""
    own = {"Host": f"127.0.0.1:{demo.port}", "Origin": demo.address, "Content-Type": "application/json"}
    given = {name.title(): value for name, value in headers.items()}
    connection = HTTPConnection("127.0.0.1", demo.port, timeout=60)
    try:
        connection.request(method, path, body, {k: v for k, v in {**own, **given}.items() if v is not None})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


def encoded(content):
    return base64.b64encode(content).decode()


def ask(demo, image=None, question=LESION, donor=None, **headers):
    sent = {"question": question, "image": image and encoded(image), "donor": donor and encoded(donor)}
    return request(demo, "POST", "/ask", json.dumps(sent), **headers)


def words(text):
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", text)).split())


def test_the_page_says_what_it_is_not_for_and_loads_nothing_from_elsewhere(demo):
    status, text, headers = request(demo)
    assert status == 200
    assert "Not for clinical use" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]  # no other site shows the page in a frame
    assert headers["Cache-Control"] == "no-store"
    loaded = re.findall(r'(?:src|href)="([^"]+)"', text)
    drawn = [address for example in EXAMPLES for address in example.addresses]
    assert sorted(loaded) == sorted(["data:,", "demo.css", "demo.js", *drawn])
    for path in ("demo.css", "demo.js"):
        status, text, _ = request(demo, path=f"/{path}")
        assert status == 200
        assert not re.search(r"https?:|//[a-z]+\.", text)
    assert request(demo, path="/../application.py")[0] == 404


def test_an_answer_shows_the_numbers_of_the_scorer_and_a_second_image_the_drop(demo):
    image, donor = demo.study.image(1), demo.study.image(2)
    expected = demo.scorer(image, LESION, donor=donor)
    status, text, _ = ask(demo, image.read_bytes())
    assert status == 200
    shown = words(text)
    for part, value in (
        ("confidence", expected.confidence),
        ("PSR, before the answer", expected.psr),
        ("PER, after the answer", expected.per),
        ("question_prior", expected.methods["question_prior"].confidence),
        ("dualread, both together", expected.confidence),
    ):
        assert f"{part} {value:.4f}" in shown
    assert f"Undecided : {expected.decision.reason}" in shown
    assert "Drop" not in shown
    row = f"dualread, both together {expected.confidence:.4f} {expected.donor.confidence:.4f} {expected.drop:+.4f}"
    assert row in words(ask(demo, image.read_bytes(), donor=donor.read_bytes())[1])


def test_the_threshold_that_travels_with_a_reader_decides(demo, monkeypatch):
    from dualread.evaluation.thresholds import Threshold

    found = Threshold(method="dualread", rule="empirical", target_risk_percent=10, value=0.0, reason=None)
    monkeypatch.setattr(
        demo.scorer, "_loaded", scoring.LoadedScorer(**{**vars(demo.scorer._loaded), "threshold": found})
    )
    shown = words(ask(demo, demo.study.image(1).read_bytes())[1])
    assert "Keep : " in shown
    assert "is at least 0.0000, the empirical threshold for a risk of 10%" in shown


def test_what_the_actor_says_stays_a_text(demo, monkeypatch):
    scored = demo.scorer(demo.study.image(1), LESION)
    said = {**vars(scored), "answer": "<b>x", "completion": "<script>alert(1)</script>", "notes": ("<i>note",)}
    monkeypatch.setattr(demo.scorer, "each", lambda questions: [type(scored)(**said)])
    _, text, _ = ask(demo, demo.study.image(1).read_bytes())
    assert "<script" not in text
    assert "<b>" not in text
    assert "<i>" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_bad_input_gets_one_sentence(demo):
    """`test_hostile` sends what the service refuses; here is what the page adds."""
    good = demo.study.image(1).read_bytes()
    for sent, said in (
        ({"image": None}, "There is no image"),
        ({"image": b"no image"}, "The image cannot be used: an image of 8 bytes: cannot be decoded"),
        ({"image": good, "donor": b"GIF89a"}, "The second image cannot be used"),
        ({"image": good, "question": None}, "the question is empty"),
        ({"image": good, "question": "long " * 500}, "more than max_prompt_tokens"),
        ({"image": b"0" * (page.MAX_IMAGE_MEGABYTES * 1_000_000 + 1)}, "At most 20 MB"),
    ):
        status, text, headers = ask(demo, **sent)
        assert status == 400
        assert said in text
        assert "\n" not in text.strip()
        assert headers.get_content_type() == "text/plain"
    assert ask(demo, good)[0] == 200


@pytest.mark.parametrize(
    "body", ["", "no JSON", "[]", "3", '{"image": 3}', '{"image": "*"}', '{"image": "é"}', "[" * 99_999]
)
def test_what_the_page_did_not_write_is_refused_in_one_sentence(demo, body):
    status, text, _ = request(demo, "POST", "/ask", body.encode())
    assert status == 400
    assert "Load the page again" in text
    assert "\n" not in text.strip()


def test_a_body_that_is_too_large_is_refused_before_it_is_read_to_its_end(demo):
    connection = HTTPConnection("127.0.0.1", demo.port, timeout=60)
    connection.putrequest("POST", "/ask")
    connection.putheader("Origin", demo.address)
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    try:
        for _ in range(page.MAX_BODY // 1_000_000 + 2):
            connection.send(b"0" * 1_000_000)
    except OSError:  # the program has answered and closed
        pass
    else:
        assert connection.getresponse().status == 400
    connection.close()
    assert request(demo)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost@evil.example", ""]
)
def test_a_name_that_is_not_of_this_machine_is_refused(demo, host):
    """A site may point its own name to 127.0.0.1 (DNS rebinding); the browser then sends that name."""
    host = host.format(port=demo.port)
    for method, path in (("GET", "/"), ("GET", "/demo.js"), ("POST", "/ask")):
        status, text, _ = request(demo, method, path, host=host, origin=f"http://{host}")
        assert status in (400, 403)
        assert "lesion" not in text


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://localhost:{port}"],
)
def test_another_site_cannot_ask(demo, origin):
    origin = origin and origin.format(port=demo.port)
    status, _, headers = ask(demo, demo.study.image(1).read_bytes(), origin=origin)
    assert status == 403
    assert not [name for name in headers if name.lower().startswith("access-control")]
    status, _, headers = request(demo, "OPTIONS", "/ask", origin=origin or "http://evil.example")
    assert status == 403
    assert not [name for name in headers if name.lower().startswith("access-control")]


def test_the_page_may_be_opened_as_localhost_and_through_a_tunnel(demo):
    image = demo.study.image(1).read_bytes()
    for host in (f"localhost:{demo.port}", "localhost:9999", "127.0.0.1:9999"):
        assert request(demo, host=host)[0] == 200
        assert ask(demo, image, host=host, origin=f"http://{host}")[0] == 200


def test_nothing_is_stored(demo, tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before = sorted(demo.study.folder.rglob("*"))
    image = Image.effect_noise((1500, 1500), 50)  # 2 MB: larger than what servers keep in memory
    image.save(tmp_path / "large.png")
    content = (tmp_path / "large.png").read_bytes()
    (tmp_path / "large.png").unlink()
    assert len(content) > 1_500_000
    assert ask(demo, content)[0] == 200
    assert list(tmp_path.iterdir()) == []
    assert sorted(demo.study.folder.rglob("*")) == before


def test_a_port_that_is_taken_is_named_before_anything_is_loaded(monkeypatch, capsys):
    monkeypatch.setattr(scoring.Scorer, "load", lambda *args, **named: pytest.fail("loaded"))
    with listen(0) as taken:
        port = taken.getsockname()[1]
        assert program.main(["demo", "--reader", "r", "--port", str(port)]) == 1
    assert f"--port {port}: Address already in use" in capsys.readouterr().err
    assert program.main(["demo", "--reader", "r", "--port", "65536"]) == 1
    assert "--port 65536" in capsys.readouterr().err


def test_the_command_serves_until_it_is_interrupted(demo):
    arguments = ["--reader", demo.study.reader("dualread"), "--checkpoint", demo.study.actor, "--port", "0"]
    command = [sys.executable, "-m", "dualread", "demo", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        ready = running.stdout.readline()
        port = int(re.match(r"http://127\.0\.0\.1:(\d+) is ready", ready)[1])
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=60)
    assert running.returncode == 0
    assert out == "stopped\n"
    assert "Traceback" not in errors
