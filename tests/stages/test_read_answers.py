"""The stages of given answers, on what an ordinary service replies."""

import json

import polars as pl
import pytest

from dualread.artifacts.tensors import read_header, read_tensors
from dualread.errors import ArtifactError
from dualread.models.conditions import asked
from dualread.models.service.requests import requests_of
from dualread.schema.answers import Choices, DescribeServiceSpec, ReadAnswersSpec, ReadLikelihoodsSpec, Service
from dualread.stages import describe_service, read_answers, read_likelihoods
from tests import specs
from tests.stages.shards import generation, manifest_rows, seal, write

RUN = {"backbone": "m", "actor": "given", "seed": 0}
ANSWER = "<answer>Lung</answer><confidence>80</confidence>"


@pytest.fixture
def inputs(tmp_path):
    write(tmp_path / "manifest", "manifest", manifest_rows(3, split="test", roles=("test",)))
    ids = [f"slake/test/{i:04d}" for i in range(3)]
    texts = (ANSWER, "no answer", ANSWER)
    rows = [generation(i, text, image_id=f"image {k}") for k, (i, text) in enumerate(zip(ids, texts, strict=True))]
    write(tmp_path / "generations", "generations", rows)
    (tmp_path / "responses").mkdir()
    (tmp_path / "actor").mkdir()
    describe_service.compute(DescribeServiceSpec(**RUN, model="m", left_out={}), {}, tmp_path / "actor")
    seal(tmp_path / "actor")
    return {name: tmp_path / name for name in ("manifest", "generations", "responses", "actor")}


def respond(inputs, shard, service, bodies, answers=None):
    """Write the responses `bodies` to the requests of a shard."""
    manifest = pl.read_parquet(inputs["manifest"] / "manifest.parquet")
    questions = asked(
        manifest, images=shard.images, prompt=shard.prompt.name, hints=shard.prompt.hints, answers=answers
    )
    lines = [
        json.dumps({"custom_id": request.custom_id, "response": {"status_code": 200, "body": body}})
        for request, body in zip(requests_of(shard, service, questions), bodies, strict=False)
    ]
    (inputs["responses"] / "a.jsonl").write_text("\n".join(lines))


def completion(*texts, logprobs=None, **more):
    choices = [
        {"index": i, "message": {"content": t}, "finish_reason": "stop", "logprobs": logprobs}
        for i, t in enumerate(texts)
    ]
    return {"choices": choices, **more}


def test_what_a_service_does_not_tell_is_not_made_up(inputs, tmp_path):
    service, shard = Service(model="m", log_probs=False, body={}), specs.shard()
    respond(inputs, shard, service, [completion(ANSWER, usage={"prompt_tokens": 9}), completion("x"), completion("")])
    said = read_answers.compute(ReadAnswersSpec(**RUN, service=service, shard=shard), inputs, tmp_path)
    assert said == "read 3 responses, wrote 3 completions, 0 cut at the limit"
    rows = pl.read_parquet(tmp_path / "generations.parquet").to_dicts()
    assert [row["text"] for row in rows] == [ANSWER, "x", ""]
    assert [row["n_prompt_tokens"] for row in rows] == [9, 0, 0]
    assert all(row["token_ids"] == row["token_log_probs"] == [] for row in rows)
    assert [row["image_id"] for row in rows] == ["image 0", "image 1", "image 2"]


def test_samples_of_several_requests_are_numbered_on(inputs, tmp_path):
    shard = specs.shard("original/samples", image="original", decoding=specs.decoding(temperature=1.0, n_samples=3))
    service = Service(model="m", log_probs=True, body={}, max_choices=2)
    respond(inputs, shard, service, [completion("a", "b"), completion("c")] * 3)
    read_answers.compute(ReadAnswersSpec(**RUN, service=service, shard=shard), inputs, tmp_path)
    rows = pl.read_parquet(tmp_path / "generations.parquet")
    assert rows["sample_index"].to_list() == [0, 1, 2] * 3
    assert rows["text"].to_list() == ["a", "b", "c"] * 3


def test_a_reply_without_both_words_has_no_score(inputs, tmp_path):
    shard = specs.shard(
        *("original/p_true",),
        image="original",
        prompt=specs.prompt("p_true"),
        decoding=None,
        choices=Choices(words=["Yes", "No"]),
        answer_contract=specs.contract(),
    )
    service = Service(model="m", log_probs=True, body={})
    replies = [
        completion(top[0][0], logprobs={"content": [{**listed[0], "top_logprobs": listed}]})
        for top in ([("Yes", -0.5), ("No", -1.0)], [("Well", -0.25)])
        for listed in [[{"token": token, "logprob": value} for token, value in top]]
    ]
    # Nothing is asked about the second answer, which is not valid.
    respond(inputs, shard, service, replies, answers={"slake/test/0000": "Lung", "slake/test/0002": "Lung"})
    said = read_answers.compute(ReadAnswersSpec(**RUN, service=service, shard=shard), inputs, tmp_path)
    assert "in 0 responses a word is not listed" in said
    assert "in 1 none is listed and there is no score" in said
    rows = pl.read_parquet(tmp_path / "choices.parquet").select("sample_id", "choice", "log_prob").rows()
    assert rows == [("slake/test/0000", "Yes", -0.5), ("slake/test/0000", "No", -1.0)]


def likelihoods(inputs, bodies, out):
    """Read the responses `bodies` to a shard, and then the likelihoods of these answers."""
    service, shard = Service(model="m", log_probs=True, body={}), specs.shard()
    respond(inputs, shard, service, bodies)
    (out / "read").mkdir()
    read_answers.compute(ReadAnswersSpec(**RUN, service=service, shard=shard), inputs, out / "read")
    inputs = {"generations": out / "read", "actor": inputs["actor"]}
    read_likelihoods.compute(ReadLikelihoodsSpec(**RUN, shard=shard), inputs, out)


def test_likelihoods_have_the_form_of_a_replay_without_states(inputs, tmp_path):
    # The last token ends the turn and is not in the text. A character of two tokens belongs to the second.
    content = [("<answer>", -1.0), ("\xef", -0.5), ("</answer>", -0.25), ("<|im_end|>", -0.125)]
    logprobs = {"content": [{"token": token, "logprob": value} for token, value in content]}
    half = {"token": "\\xc3", "bytes": [0xC3], "logprob": -0.5}, {"token": "\\xaf", "bytes": [0xAF], "logprob": -1.5}
    halves = {"content": [logprobs["content"][0], *half, *logprobs["content"][2:]]}
    said = [completion("<answer>\xef</answer>", logprobs=of) for of in (logprobs, halves, logprobs)]
    likelihoods(inputs, said, tmp_path)
    assert read_tensors(tmp_path / "features.safetensors")["answer_log_prob"].tolist() == [[-0.5], [-1.5], [-0.5]]
    header = read_header(tmp_path / "features.safetensors")
    assert (header["actor"], header["final_layer"], header["kappa"]) == ("given", None, None)
    rows = pl.read_parquet(tmp_path / "features.parquet").to_dicts()
    assert [row["answer_positions"] for row in rows] == [[1], [2], [1]]
    assert [row["row"] for row in rows] == [0, 1, 2]
    assert rows[0]["token_log_probs"] == [-1.0, -0.5, -0.25, -0.125]


def test_a_likelihood_of_no_token_is_refused(inputs, tmp_path):
    with pytest.raises(ArtifactError, match="of slake/test/0000 has no token, so its likelihood is undefined"):
        likelihoods(inputs, [completion("")] * 3, tmp_path)


def test_what_is_missing_is_said_in_one_sentence(inputs, tmp_path):
    service, shard = Service(model="m", log_probs=False, body={}), specs.shard()
    respond(inputs, shard, service, [completion(ANSWER), completion("a", "b")])
    with pytest.raises(ArtifactError) as refused:
        read_answers.compute(ReadAnswersSpec(**RUN, service=service, shard=shard), inputs, tmp_path)
    assert str(refused.value) == (
        f"slake/test/original: 2 of 3 requests are not answered in {inputs['responses']} (1: has 2 choices, expected 1"
        " (a.jsonl:2); 1: no response). `dualread ask` writes what is still to be asked, and with --run sends it. Then"
        " run the same command again."
    )
