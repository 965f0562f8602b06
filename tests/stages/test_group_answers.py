"""Stage group_answers, from samples to the groups that readers see."""

import itertools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dualread.artifacts.tables import read_table
from dualread.errors import ArtifactError
from dualread.models.meaning import embeddings, entailments
from dualread.readers.answers import join_answers
from dualread.readers.base import Examples, FittedReader, fit, score, settings_of
from dualread.readers.groups import sample_groups
from dualread.schema.base import Place, Plugin
from dualread.schema.columns import GRADED, GROUPS, MANIFEST
from dualread.schema.groups import GroupAnswersSpec, Groups, JudgingService
from dualread.stages import group_answers
from dualread.stages._views import read_views
from tests import meaning
from tests.service import completion
from tests.stages import shards

WORDS = ("left lung", "upper left lung", "liver", "heart")
TABLES = {"manifest": MANIFEST, "graded": GRADED}
VALUES = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}


@pytest.fixture
def inputs(tmp_path):
    rows = shards.manifest_rows(3, split="test", roles=("test",))
    ids = [row["sample_id"] for row in rows]
    samples = {ids[0]: [*WORDS, "left lung", None], ids[1]: [WORDS[2], WORDS[3]] * 3, ids[2]: [WORDS[0]] * 6}
    texts = {i: [f"<answer>{text}</answer>" if text else "" for text in samples[i]] for i in ids}
    made = [
        shards.generation(i, text, image_id="image", condition="original/samples", sample_index=k)
        for i in ids
        for k, text in enumerate(texts[i])
    ]
    graded = [row | {"canonical_answer": "heart"} for row in shards.graded_rows(rows, np.ones(3))]
    return {
        "manifest": shards.write(tmp_path / "manifest", "manifest", rows),
        "graded": shards.write(tmp_path / "graded", "graded", graded),
        "view/samples": shards.write(tmp_path / "samples", "generations", made),
    }


def made(inputs, folder, out, **grouping):
    groups = Groups(of=["samples"], source=Place(folder=str(folder)), **grouping)
    spec = GroupAnswersSpec(dataset="slake", split="test", condition="original/meaning", groups=groups)
    out.mkdir()
    summary = group_answers.compute(spec, {**inputs, "source": folder}, out)
    return read_table(out / "groups.parquet", GROUPS), summary


@pytest.mark.parametrize(("neutral", "with_question"), [(False, True), (True, False)])
def test_by_entailment_in_both_directions(inputs, tmp_path, neutral, with_question):
    folder = meaning.classifier(tmp_path / "nli")
    found, summary = made(
        inputs, folder, tmp_path / "out", by="entailment", neutral=neutral, with_question=with_question
    )
    questions = [row["question"] for row in shards.manifest_rows(3, split="test", roles=("test",))]
    answers = [[*WORDS], ["heart", "liver"], ["heart", "left lung"]]  # with the committed one
    expected = []
    for number, (question, of_one) in enumerate(zip(questions, answers, strict=True)):
        before = f"{question} " if with_question else ""
        for one, other in itertools.combinations(sorted(of_one), 2):
            both = [(before + one, before + other), (before + other, before + one)]
            classes = [entailments(folder, [pair])[0] for pair in both]
            same = "contradiction" not in classes and classes.count("neutral") < (2 if neutral else 1)
            expected.append((f"slake/test/{number:04d}", one, other, sum(map(VALUES.get, classes)) / 2, same))
    assert found.rows() == expected
    assert f"{found['same'].sum()} of 8 are the same" in summary


def test_by_embedding_and_what_a_reader_sees(inputs, tmp_path):
    folder = meaning.encoder(tmp_path / "encoder")
    vectors = embeddings(folder, ["liver", "heart"])
    cosine = round(float(vectors[0] @ vectors[1]), 5)
    for threshold, groups in ((cosine, ["liver"] * 6), (cosine + 1e-5, ["liver", "heart"] * 3)):
        grouping = {"by": "embedding", "threshold": threshold, "with_question": False}
        found, _ = made(inputs, folder, tmp_path / f"out {threshold}", **grouping)
        assert found.filter(sample_id="slake/test/0001")["similarity"].to_list() == [cosine]
        assert sample_groups(seen_by_readers(inputs, tmp_path / f"out {threshold}"), 6)[1:] == [
            groups,
            ["left lung"] * 6,
        ]


def seen_by_readers(inputs, folder):
    tables = (read_table(inputs[name] / f"{name}.parquet", schema) for name, schema in TABLES.items())
    answers = join_answers(*(table.drop("correct", strict=False) for table in tables), None, {}.get, where="here")
    folders = {"samples": inputs["view/samples"], "meaning": folder}
    return replace(answers, views=read_views(("samples", "meaning"), folders, answers, where="here"))


JUDGE = GroupAnswersSpec(
    dataset="slake",
    split="test",
    condition="original/meaning",
    groups=Groups(by="judge", of=["samples"], service=JudgingService(model="m", folder="judge"), grader="equivalence"),
    grader=Plugin(module="grading.graders.equivalence"),
)
# What a judge replies about the first and the second answer, the latter being the rest of the key; else "no".
REPLIES = {
    ("left lung", "upper left lung"): " **Yes**, they do.",  # in both orders
    ("upper left lung", "left lung"): "yes",
    ("heart", "liver"): "Yes.",  # in one order alone
    ("heart", "left lung"): "",  # no verdict; in the other order, "no"
}


def respond(inputs, folder, wrong=()):
    """Write the responses of a judge, with errors in the place of those at the positions `wrong`."""
    pairs = sorted({pair for _, pair in group_answers.compared_answers(JUDGE, inputs)})
    lines = []
    for number, request in enumerate(group_answers.judge_requests(JUDGE, pairs)):
        both = [json.loads(line.partition(": ")[2]) for line in request.question.text.splitlines()[-2:]]
        body = completion(REPLIES.get(tuple(both), "No"))
        answered = {"status_code": 200, "body": body} if number not in wrong else {"status_code": 500, "body": "busy"}
        lines.append(json.dumps({"custom_id": request.custom_id, "response": answered}))
    folder.mkdir(exist_ok=True)
    (folder / "made.jsonl").write_text("\n".join(lines))
    return len(lines)


def test_by_judge_in_both_orders_and_a_question_without_a_verdict_has_no_value(inputs, tmp_path):
    inputs = {**inputs, "responses": tmp_path / "responses"}
    # 6 pairs of the first question, 1 of each of the others, each in both orders: questions differ.
    assert respond(inputs, tmp_path / "responses") == 2 * 8
    (tmp_path / "out").mkdir()
    summary = group_answers.compute(JUDGE, inputs, tmp_path / "out")
    assert summary == (
        "compared 8 distinct pairs of answers; 1 of 8 are the same, 2 have no verdict (a reply says neither yes nor no)"
    )
    found = read_table(tmp_path / "out/groups.parquet", GROUPS)
    different = [("heart", "upper left lung"), ("left lung", "liver"), ("liver", "upper left lung")]
    meanings = {("left lung", "upper left lung"): (1.0, True), ("heart", "liver"): (0.5, False)}
    meanings |= {("heart", "left lung"): (None, None), **dict.fromkeys(different, (0.0, False))}
    assert {row[1:3]: row[3:] for row in found.rows()} == meanings

    seen = seen_by_readers(inputs, tmp_path / "out")
    module = "readers.self_consistency"
    twelve, correct = seen.take(np.repeat(np.arange(3), 4)), np.array([True, False] * 6)
    twelve = replace(twelve, table=twelve.table.with_columns(role=pl.lit("validation")))
    weights = fit(module, Examples(answers=twelve, correct=correct), {"k": 2}, {}, 0)
    # The questions 0 and 2 have a pair without a verdict: question 1 alone is fitted on, whose share is constant.
    assert weights.notes["platt_clipped"]
    scores = score(FittedReader(module=module, settings=settings_of(module, {"k": 2}), weights=weights), seen)
    assert scores.imputed.tolist() == [True, False, True]
    assert scores.confidence.tolist() == [0.5, 0.5, 0.5]  # that of question 1 is the base rate of its labels
    assert scores.score[1] == 0.5  # "liver", "heart" beside "heart"
    assert np.isnan(scores.score[[0, 2]]).all()


def test_without_a_reply_the_stage_is_refused(inputs, tmp_path):
    respond(inputs, tmp_path / "responses", wrong=(3, 5))
    with pytest.raises(ArtifactError, match=r"2 of 16 requests are not answered in .*responses \(2: error 500"):
        group_answers.compute(JUDGE, {**inputs, "responses": tmp_path / "responses"}, tmp_path)


def test_a_checkpoint_judges_by_the_same_texts(inputs, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(group_answers, "greedy_replies", lambda _, texts: asked.extend(texts) or ["yes"] * len(texts))
    groups = Groups(by="judge", of=["samples"], source=Place(folder="judge"), grader="equivalence")
    summary = group_answers.compute(
        JUDGE.model_copy(update={"groups": groups}), {**inputs, "source": tmp_path}, tmp_path
    )
    pairs = sorted({pair for _, pair in group_answers.compared_answers(JUDGE, inputs)})
    assert asked == [request.question.text for request in group_answers.judge_requests(JUDGE, pairs)]
    assert summary == "compared 8 distinct pairs of answers; 8 of 8 are the same"
