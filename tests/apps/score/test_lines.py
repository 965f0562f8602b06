"""`dualread score --input`: one line out for each line in, whatever happens in between."""

import argparse
import json
from types import SimpleNamespace

import pytest

from dualread.apps import main as program
from dualread.apps.score import add_choice, lines
from dualread.apps.score import scorer as scoring
from dualread.apps.score.lines import read_rows
from dualread.apps.score.results import Confidence, Failed, Scored
from dualread.evaluation.thresholds import decide


def scored(question):
    said = Confidence(confidence=0.5, score=0.0, imputed=False)
    return Scored(
        **{"answer": question.question, "completion": "<answer>", "parse_status": "valid", "finish_reason": "stop"},
        **{"confidence": 0.5, "psr": None, "per": None, "methods": {"mine": said}, "decision": decide(0.5, None)},
    )


def scorer(asked, digest="here"):
    """A scorer that answers with the question, fails where it is "bad", and is killed where it is "kill"."""

    def each(questions):
        for question in questions:
            asked.append(question.question)
            if question.question == "kill":
                raise KeyboardInterrupt
            yield Failed(error="it is bad") if question.question == "bad" else scored(question)

    return SimpleNamespace(each=each, digest=digest)


def run(file, out, digest="here"):
    asked = []
    lines.score(scorer(asked, digest), read_rows(file), out)
    return asked


def read(out):
    return [json.loads(line) for line in out.read_text().splitlines()]


def written(folder, *texts):
    rows = [json.dumps({"image": "x.png", "question": text, "gold": "yes", "id": f"q {text}"}) for text in texts]
    (folder / "questions.jsonl").write_text("".join(f"{row}\n" for row in rows))
    return folder / "questions.jsonl"


def test_each_line_gets_its_own_in_order_and_blank_lines_at_the_end_are_none(tmp_path):
    file = written(tmp_path, "a", "bad", "c")
    file.write_text(file.read_text() + "\r\n \n\n")
    assert [line.question.image for line in read_rows(file)] == [tmp_path / "x.png"] * 3  # beside the file
    assert run(file, tmp_path / "out.jsonl") == ["a", "bad", "c"]
    first, second, third = read(tmp_path / "out.jsonl")
    assert (first["line"], first["id"], first["answer"]) == (1, "q a", "a")
    assert (second["line"], second["id"], second["error"]) == (2, "q bad", "it is bad")
    assert "answer" not in second
    assert (third["line"], third["answer"]) == (3, "c")


LINES = {  # and what is said about each
    '{"image": "x.png", "question": "a"}': None,
    "": "is empty",
    "no JSON": "not JSON",
    "[]": "is a list, expected an object",
    '{"question": "a"}': "no image",
    '{"image": "x.png"}': "no question",
    '{"image": 3, "question": "a"}': "image is 3",
    '{"image": "x.png", "question": "a", "donor": []}': "donor is []",
    '{"image": ["x.png", 3], "question": "a"}': "image is ['x.png', 3]",
    '{"image": "x.png", "question": "a", "options": "A, B"}': "options",
    '{"image": "x.png", "question": "é", "donor": null, "options": null}': None,
}


def test_a_line_without_a_question_says_why_and_keeps_its_place(tmp_path):
    (tmp_path / "questions.jsonl").write_text("\n".join(LINES), encoding="utf-8")  # no line feed at the end
    assert run(tmp_path / "questions.jsonl", tmp_path / "out.jsonl") == ["a", "é"]
    found = read(tmp_path / "out.jsonl")
    assert [row["line"] for row in found] == list(range(1, 12))
    for row, said in zip(found, LINES.values(), strict=True):
        assert said in row["error"] if said else "error" not in row


@pytest.mark.parametrize("torn", [b"", b'{"line": 3, "ans'])
def test_an_interrupted_run_goes_on_behind_its_last_line(tmp_path, torn):
    file, out = written(tmp_path, "a", "bad", "kill", "d"), tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(file, out)
    done = out.read_bytes()
    assert len(done.splitlines()) == 2
    out.write_bytes(done + torn)
    with pytest.raises(KeyboardInterrupt):
        run(file, out)
    assert out.read_bytes() == done
    lines.score(SimpleNamespace(each=lambda questions: map(scored, questions), digest="here"), read_rows(file), out)
    assert [row["line"] for row in read(out)] == [1, 2, 3, 4]
    assert out.read_bytes().startswith(done)
    assert run(file, out) == []


def test_results_of_other_questions_or_options_are_not_continued(tmp_path):
    file, out = written(tmp_path, "a", "b"), tmp_path / "out.jsonl"
    run(file, out)
    before = out.read_bytes()
    for texts, digest in ((("a", "other"), "here"), (("a",), "here"), (("a", "b"), "there")):
        with pytest.raises(program.DualReadError, match=r"line \d is no result of line \d of the questions"):
            run(written(tmp_path, *texts), out, digest)
        assert out.read_bytes() == before
    longer = written(tmp_path, "a", "b", "c")
    assert run(longer, out) == ["c"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--image", "x.png"], "no --question"),
        ([], "no --image and no --question"),
        (["--input", "q.jsonl", "--image", "x.png"], "--image beside --input"),
        (["--image", "x.png", "--question", "a", "--out", "o"], "--out without --input"),
        (["--input", "q.jsonl", "--batch-size", "0"], "--batch-size 0"),
        (["--input", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused_before_anything_is_loaded(
    given, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scoring.Scorer, "load", lambda *args, **named: pytest.fail("loaded"))
    assert program.main(["score", "--reader", "r", *given]) == 1
    assert said in capsys.readouterr().err


def test_windows_are_given_as_numbers_between_colons_and_commas():
    parser = argparse.ArgumentParser()
    add_choice(parser)
    given = ["--reader", "mine"]
    assert parser.parse_args(given).ct_windows is None
    windows = parser.parse_args([*given, "--ct-windows=-1024:1024,-135:215,0:80"]).ct_windows
    assert windows == [[-1024, 1024], [-135, 215], [0, 80]]
    with pytest.raises(SystemExit):
        parser.parse_args([*given, "--ct-windows=medgemma"])
