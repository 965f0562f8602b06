"""`dualread ask` of a study whose samples a judge groups: what it is asked, once, and what a hostile one does."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from starlette.responses import HTMLResponse, JSONResponse

from tests.apps.ask.conftest import reply, sent
from tests.service import completion
from tests.stages import shards

VIEW = """
views: {samples: {decoding: {n_samples: 2}},
        meaning: {groups: {by: judge, of: [samples], service: {model: a-judge, folder: judge}, grader: equivalence}}}
methods: {base: null, rlcr: null, dcpo: null, vl_calibration: null, sc2: {views: [samples, meaning]}}
"""


@pytest.fixture
def judged(study):
    """The study with a judge; its samples are not there yet."""
    lines = [line for line in study.read_text().splitlines() if not line.startswith(("views:", "methods:"))]
    study.write_text("\n".join(lines) + VIEW)
    return study


def sample(split, n, answers):
    """Write the grades and samples of a split."""
    where = f"qwen3-vl-tiny/rlvr/0/slake/{split}/original"
    rows = shards.manifest_rows(n, split=split, roles=(split,))
    graded = [row | {"canonical_answer": "lung"} for row in shards.graded_rows(rows, np.ones(n))]
    shards.write(Path("results/given/graded", where), "graded", graded)
    made = [
        shards.generation(row["sample_id"], f"<answer>{text}</answer>", image_id="image", condition="original/samples",
                          sample_index=k)
        for row in rows
        for k, text in enumerate(answers)
    ]  # fmt: skip
    shards.write(Path("results/given/views", where, "samples"), "generations", made)


def of_judge(bodies):
    return [body for body in bodies if body["model"] == "a-judge"]


def test_each_pair_is_asked_once_in_both_orders_when_its_samples_are_there(judged, service, ask):
    service.behave = lambda _, body: completion("yes") if body["model"] == "a-judge" else reply(body)
    assert sent(judged, service) == 0
    assert not of_judge(service.bodies)
    assert "further requests are about 2 answers, or shards of samples, that are not there yet" in ask()[1]
    for split in ("validation", "test"):
        sample(split, 3, ["lung", "liver"])
    assert sent(judged, service) == 0
    texts = [body["messages"][0]["content"] for body in of_judge(service.bodies)]
    # Of the 3 questions of each split, which have the same words in both: lung and liver, and the other way round.
    questions = {row["question"] for row in shards.manifest_rows(3, split="test", roles=("test",))}
    assert len(texts) == len({*texts}) == 2 * len(questions)
    assert sum(text.endswith('First answer: "lung"\nSecond answer: "liver"') for text in texts) == len(questions)
    assert sent(judged, service) == 0  # nothing is asked twice, and no answer of the actor
    assert len(of_judge(service.bodies)) == len(texts)
    assert "judge: everything is answered" in ask()[1]
    shutil.rmtree("results/given/graded")
    shutil.rmtree("results/given/views")
    sample("test", 3, ["lung", "heart"])
    assert sent(judged, service) == 0
    assert len(of_judge(service.bodies)) == 2 * len(texts)  # lung and heart alone


def test_what_is_no_reply_is_asked_again_and_an_empty_one_is_kept(judged, service, ask):
    for split in ("validation", "test"):
        sample(split, 3, ["lung", "liver"])
    hostile = [HTMLResponse("<html>"), JSONResponse({"error": {"message": "no"}}, 400), {"choices": []}]
    said = iter([*hostile, completion(""), completion("Sure! yes")])
    service.behave = lambda _, body: next(said, completion("no")) if body["model"] == "a-judge" else reply(body)
    n = len({row["question"] for row in shards.manifest_rows(3, split="test", roles=("test",))})
    assert sent(judged, service, at_once=1) == min(3, 2 * n)
    assert sent(judged, service) == 0
    lines = [json.loads(line) for line in Path("judge/responses/sent.jsonl").read_text().splitlines()]
    kept = [line for line in lines if (line["response"] or {}).get("status_code") == 200]
    assert len(kept) == len({line["custom_id"] for line in kept}) == 2 * n
    assert "everything is answered" in ask()[1]
