"""`dualread ask`: the files of requests, and what it says about the responses."""

import json
from pathlib import Path

from dualread.apps.ask import sending
from dualread.data.questions.audit import LINKED
from tests.apps.ask.conftest import ABOUT, FIRST, counted, reply


def requests(part=1):
    return [json.loads(line) for line in Path(f"answers/requests-{part:03d}.jsonl").read_text().splitlines()]


def respond(found, name="batch.jsonl", change=lambda line: line):
    """Answer requests as a batch service does, in another order."""
    for line in reversed(found):
        response = {"status_code": 200, "request_id": "x", "body": reply(line["body"])}
        said = change({"id": "b", "custom_id": line["custom_id"], "response": response, "error": None})
        with Path("answers/responses", name).open("a") as file:
            file.write((said if isinstance(said, str) else json.dumps(said)) + "\n")


def test_what_is_open_is_written_in_two_rounds(ask):
    code, said = ask()
    assert code == 0
    assert "rlvr: the method" not in said
    assert f"wrote answers/requests-001.jsonl: {FIRST} requests" in said
    assert f"further requests are about {ABOUT} answers, or shards of samples, that are not there yet" in said
    respond(requests())
    _, said = ask()
    assert f"wrote answers/requests-001.jsonl: {ABOUT} requests" in said
    respond(requests(), "second.jsonl")
    _, said = ask()
    assert "answers: everything is answered" in said
    assert not list(Path("answers").glob("requests-*"))


def test_large_files_are_split(ask, monkeypatch):
    monkeypatch.setattr(sending, "_MOST_LINES", 10)
    ask()
    assert (len(requests(1)), len(requests(2))) == (10, FIRST - 10)
    written = [line for part in (1, 2) for line in requests(part)]
    assert len({line["custom_id"] for line in written}) == FIRST
    assert {(*line, line["method"], line["url"]) for line in written} == {
        ("custom_id", "method", "url", "body", "POST", "/v1/chat/completions")
    }


def test_wrong_ids_are_read_by_nobody_and_named(ask):
    ask()
    respond(requests(), change=lambda line: {**line, "custom_id": f"{line['custom_id']}x"})
    _, said = ask()
    assert f"{FIRST} custom_ids are of no request of this study, such as that of batch.jsonl:1" in said
    assert f"wrote answers/requests-001.jsonl: {FIRST} requests" in said


def test_what_is_no_answer_stays_open_and_is_said(ask):
    """tests/models/service has all that may be wrong with a response."""
    ask()
    too_fast = {"status_code": 429, "body": {"error": {"message": "too fast"}}}
    respond(requests(), change=lambda line: {**line, "response": too_fast})
    respond(requests()[:1], change=lambda line: "<html>502</html>")
    code, found = ask()
    assert code == 0
    assert "error 429: too fast (batch.jsonl:" in found
    assert "1 lines are no response, such as batch.jsonl:17." in found
    assert f"wrote answers/requests-001.jsonl: {FIRST} requests" in found


def test_a_study_without_its_questions_or_that_asks_nobody_says_so(ask):
    Path("results/given/manifests/slake/train/MANIFEST.json").unlink()
    code, said = ask()
    assert code == 1
    assert "Build them first: snakemake --cores 2 --configfile mine.yaml -- questions" in said
    Path("mine.yaml").write_text("study: other\n")
    code, said = ask()
    assert code == 1
    assert "other: no method judges an actor whose answers are given" in said


def test_pictures_behind_links_are_sent_only_on_demand(study, ask):
    """A data set of somebody else may link any file of this user."""
    folder = study.parent / "results/given/manifests/slake/test"
    counted(folder, **{LINKED: "1 of 3 pictures are behind links out of the data set's folder: x.png"})
    code, said = ask()
    assert code == 1
    assert "slake/test: 1 of 3 pictures are behind links" in said
    assert "--linked" in said
    assert ask("--linked")[0] == 0
