"""Logs of Inspect through its own reader. tests/apps/harnesses/test_inspect.py runs these tests, too."""

import json
import math

import pytest

pytest.importorskip("inspect_ai")

import base64
import hashlib
from pathlib import Path

import dualread
from dualread.data.logs.inspect import read_log
from dualread.errors import DataError, DualReadError
from tests.data.logs.inspect_form import HEADER, archive, sample

MADE = Path(__file__).parent / "made/lesions.eval"  # by inspect-ai 0.3.285: made/inspect_log.py
STATED = "<answer>{}</answer><confidence>{}</confidence>"


def evaluated(path, **options):
    return dualread.evaluate(path, log_format="inspect", replicates=0, **options)


def confidences(found, method):
    answers = found.parts[0].methods[method].answers
    return dict(zip(answers["sample_id"], answers["confidence"], strict=True))


def test_what_a_log_holds_is_read():
    log = read_log(MADE)
    assert [one.sample_id for one in log.samples] == ["q1", "q2", "q3", "q4"]
    first = log.samples[0]
    assert (first.question, first.references) == ("Is there a lesion? (q1)", ["yes"])
    assert first.completions[0] == "<answer>yes</answer> <confidence>90</confidence>"
    assert (first.scores, first.scored_answers["pattern"]) == ({"pattern": "C", "length": 1.0}, ["yes", "yes", "no"])
    assert first.tokens[3] == (b"yes", -0.225)
    assert first.others == {"metadata.hospital.city": "Basel", "metadata.patient": "1"}
    assert log.notes == ["further epochs that failed and are not among the draws: 1"]  # q4, the second epoch
    pixel = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    images = [hashlib.sha256(content).hexdigest() for content in (pixel, pixel + b"b")]
    assert [one.image for one in log.samples] == [images[0]] * 2 + [images[1]] * 2


def test_each_kind_of_confidence_is_a_method():
    found = evaluated(MADE, score="pattern")
    # the percentages of made/inspect_log.py, whose tokens have log-probability -percent / 400
    assert confidences(found, "stated") == {"q1": 0.9, "q2": 0.7, "q3": 0.6, "q4": 0.8}
    assert confidences(found, "sequence_likelihood") == pytest.approx(
        {"q1": math.exp(-0.225), "q2": math.exp(-0.175), "q3": math.exp(-0.15), "q4": math.exp(-0.2)}
    )
    # q1: yes, then yes, no. q2: yes, then no, no. q3: no, then No., no. q4: yes, then no (one epoch failed)
    assert confidences(found, "self_consistency") == {"q1": 0.5, "q2": 0.0, "q3": 1.0, "q4": 0.0}
    rows = found.metrics.filter(metric="accuracy", subset="all").to_dicts()
    assert [(row["estimate"], row["n_clusters"]) for row in rows] == [(0.75, 2)] * 3  # q2 is no; a.png and b.png
    by_patient = evaluated(MADE, score="pattern", cluster="metadata.patient")
    assert by_patient.metrics.filter(metric="accuracy", subset="all")["n_clusters"].to_list() == [4] * 3


@pytest.mark.parametrize("where", ["metadata", "path", "removed"])
def test_an_image_that_is_named_or_missing(tmp_path, where):
    image = {"path": "scans/1.png", "removed": "<base64-data-removed>"}.get(where, "")
    content = [{"type": "image", "image": image}, {"type": "text", "text": "Why?"}]
    asked = sample("q1", "yes", input=[{"role": "user", "content": content}])
    asked["metadata"] = {"image_id": 7} if where == "metadata" else {}
    (read,) = read_log(archive(tmp_path / "a.eval", [asked])).samples
    assert (read.question, read.image) == ("Why?", {"metadata": "7", "path": "scans/1.png"}.get(where))


def test_what_is_no_answer_is_counted(tmp_path):
    samples = [
        sample("q1", STATED.format("The liver", 70), target=["liver", "hepar"]),
        sample("q2", STATED.format("left", 60), target="right"),
        sample("q3", STATED.format("left", 50), target=""),
        sample("q4", "", error={"message": "no connection", "traceback": "", "traceback_ansi": ""}),
        sample("q5", "", output={"model": "m", "choices": [], "completion": ""}),
    ]
    found = evaluated(path := archive(tmp_path / "a.eval", samples))
    answers = found.parts[0].methods["stated"].answers
    assert dict(zip(answers["sample_id"], answers["correct"], strict=True)) == {"q1": True, "q2": False}
    why = "the sample failed in Inspect, or has no output"
    assert found.left_out == {f"{path}: {why}": 2, f"{path}: no reference answer": 1}
    (tmp_path / "a.json").write_text(json.dumps({**HEADER, "samples": samples}))
    assert confidences(evaluated(tmp_path / "a.json"), "stated") == {"q1": 0.7, "q2": 0.6}


@pytest.mark.parametrize("unscored", [None, math.nan, ""])
def test_samples_without_a_score_are_left_out_and_counted(tmp_path, unscored):
    values = [True, "I", unscored, "C"]
    samples = [
        sample(f"q{k}", STATED.format("yes", stated), scores={"match": {"value": value}} if value is not None else {})
        for k, (value, stated) in enumerate(zip(values, (90, 80, 70, 60), strict=True))
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**HEADER, "samples": samples}))  # writes NaN
    found = evaluated(path)
    assert found.metrics.filter(metric="brier", subset="all")["estimate"].item() == pytest.approx(
        (0.01 + 0.64 + 0.16) / 3
    )
    assert found.left_out == {f"{path}: no score 'match'": 1}


def test_choices_are_options_and_metadata_may_be_the_confidence(tmp_path):
    replies = {"ANSWER: B": "B", "right": "A", "A) left": "left"}
    samples = [
        sample(f"q{k}", said, target=target, choices=["left", "right"], metadata={"sure": sure})
        for k, ((said, target), sure) in enumerate(zip(replies.items(), (0.9, 0.6, 0.8), strict=True))
    ]
    found = evaluated(archive(tmp_path / "a.eval", samples), columns={"confidence": "metadata.sure"})
    assert found.metrics.filter(metric="accuracy", subset="all")["estimate"].item() == pytest.approx(2 / 3)


def test_reasoning_is_no_part_of_the_completion_and_a_token_has_its_bytes(tmp_path):
    content = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "ä"}]
    tokens = [{"token": "\ufffd", "logprob": -1, "bytes": [0xC3]}, {"token": "\ufffd", "logprob": -2, "bytes": [0xA4]}]
    output = {"choices": [{"message": {"role": "assistant", "content": content}, "logprobs": {"content": tokens}}]}
    (read,) = read_log(archive(tmp_path / "a.eval", [sample("q1", "", output=output)])).samples
    assert (read.completions, read.tokens) == (["ä"], [(b"\xc3", -1.0), (b"\xa4", -2.0)])


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_a_log_that_is_cut_off_is_refused(tmp_path, kept):
    content = MADE.read_bytes()
    (tmp_path / "a.eval").write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(DataError, match=r"a\.eval: inspect_ai cannot"):
        evaluated(tmp_path / "a.eval", score="pattern")


@pytest.mark.parametrize("depth", [100, 900, 5000])
def test_deep_metadata_are_read_or_refused_in_one_sentence(tmp_path, depth):
    text = json.dumps(sample("q1", STATED.format("yes", 80), metadata={"deep": "HERE"}))
    deep = text.replace('"HERE"', '{"a":' * depth + "1" + "}" * depth)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**HEADER, "samples": []}).replace("[]}", f"[{deep}]}}"))
    try:
        found = evaluated(path)
    except DualReadError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        assert len(str(error)) < 500  # noqa: PT017
    else:
        assert confidences(found, "stated") == {"q1": 0.8}


def test_an_archive_that_unpacks_to_very_much_is_refused(tmp_path):
    zeros = [sample(f"q{k}", STATED.format("yes", 80), metadata={"zeros": "0" * 10_000_000}) for k in range(7)]
    with pytest.raises(DataError, match="unpacks to 70,"):
        evaluated(archive(tmp_path / "a.eval", zeros))
