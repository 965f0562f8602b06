"""The official OpenAI client against the server: answers, their confidences, streams, and why there is none."""

import json
import re
import statistics
from dataclasses import replace
from itertools import pairwise

import httpx
import numpy as np
import openai
import pytest

from dualread.apps import main as program
from dualread.apps.score import ScorerChoice
from dualread.apps.score.readings import LoadedReaders
from dualread.apps.score.scorer import Scorer
from dualread.apps.serve.opening import open_service
from dualread.apps.serve.outcome import Record
from dualread.models import prompts
from dualread.readers.requirements import NAME
from dualread.schema.recorded import PromptText
from tests.apps.score import small
from tests.apps.serve.running import LESION, data_url, opened, serving, user
from tests.tiny import image

PARTS = ("confidence", "psr", "per")


def parts(judged):
    return [judged[name] for name in PARTS]


def expected(scored):
    return [getattr(scored, name) for name in PARTS]


def test_an_answer_has_the_confidences_of_score(server, study, scorer):
    for seed, question in ((1, LESION), (2, LESION), (1, "Which organ is shown?")):
        scored = scorer(study.image(seed), question)
        [choice] = server.ask(study.image(seed), question).choices
        assert choice.message.content == scored.completion
        assert choice.message.role == "assistant"
        assert choice.finish_reason == scored.finish_reason
        assert choice.dualread["answer"] == scored.answer
        assert parts(choice.dualread) == pytest.approx(expected(scored), abs=2e-6)
        for name, of in scored.methods.items():
            said = choice.dualread["methods"][name]
            assert [said["confidence"], said["score"]] == pytest.approx([of.confidence, of.score], abs=2e-5), name
            assert said["imputed"] == of.imputed
        assert choice.dualread["notes"] == list(scored.notes)


def test_a_stream_says_psr_before_the_first_token_and_the_rest_at_the_end(server, study):
    whole = server.ask(study.image(1), LESION)
    chunks = list(server.ask(study.image(1), LESION, stream=True, stream_options={"include_usage": True}))
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    first, *middle, last, counts = chunks
    assert first.choices[0].delta.role == "assistant"
    assert not first.choices[0].delta.content
    judged = whole.choices[0].dualread
    assert first.choices[0].dualread["psr"] == pytest.approx(judged["psr"], abs=2e-6)
    assert "confidence" not in first.choices[0].dualread
    assert len(middle) >= 1  # tokens that come together are sent together
    text = "".join(chunk.choices[0].delta.content or "" for chunk in (*middle, last))
    assert text == whole.choices[0].message.content
    assert last.choices[0].finish_reason == whole.choices[0].finish_reason
    assert parts(last.choices[0].dualread) == pytest.approx(parts(judged), abs=2e-6)
    assert counts.choices == []
    assert counts.usage.completion_tokens == whole.usage.completion_tokens
    assert counts.usage.total_tokens == whole.usage.total_tokens
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens


def test_what_changes_nothing_or_only_the_question(server, study, scorer):
    options = ["CT", "MRI", "X-ray", "Ultrasound"]
    scored = scorer(study.image(1), "Which is it?", options=options)
    [choice] = server.ask(study.image(1), "Which is it?", extra_body={"dualread": {"options": options}}).choices
    assert choice.message.content == scored.completion
    assert parts(choice.dualread) == pytest.approx(expected(scored), abs=2e-6)
    plain = server.ask(study.image(1), LESION).choices[0]
    whole = prompts.render("shared", question=LESION)  # as `dualread ask` sends it; put in twice, it would be another
    systems = ([{"role": role, "content": ""}, user(study.image(1), LESION)] for role in ("system", "developer"))
    for given in (
        {"messages": [user(LESION, study.image(1))]},  # the place of the image
        {"messages": [user(study.image(1), whole)]},
        *({"messages": messages} for messages in systems),
        *({"messages": [user(study.image(1), LESION)], limit: 10} for limit in ("max_tokens", "max_completion_tokens")),
        {"messages": [user(study.image(1), LESION)], "stop": "never said"},
    ):
        [choice] = server.ask(**given).choices
        assert choice.message.content == plain.message.content
        assert parts(choice.dualread) == pytest.approx(parts(plain.dualread), abs=2e-6)
    choices = server.ask(study.image(1), LESION, n=3).choices
    assert [choice.index for choice in choices] == [0, 1, 2]
    assert {(choice.message.content, choice.dualread["confidence"]) for choice in choices} == {
        (plain.message.content, choices[0].dualread["confidence"])
    }


UNFITTED = [
    ({"temperature": 0.7, "seed": 3}, "drawn with temperature 0.7"),
    ({"extra_body": {"dualread": {"own_prompt": True}}}, "the prompt is the request's own"),
    ({"max_tokens": 2}, "ends after 2 tokens"),
    ({"messages": [{"role": "system", "content": "Be brief."}, user(image(1), LESION)]}, "the messages are of system"),
    ({"messages": [user(image(1), image(2), LESION)]}, "there are 2 images"),
    ({"messages": [user(LESION)]}, "there are no images"),
    ({"messages": [{"role": "user", "content": LESION}]}, "there are no images"),
    ({"messages": [user(image(1), prompts.render("p_true", question="x", answer="y"))]}, "the prompt is 'p_true'"),
    (
        {"messages": [user(image(1), LESION), {"role": "assistant", "content": "no"}, user("Why?")]},
        "the messages are of user, assistant, user",
    ),
]


@pytest.mark.parametrize(("parameters", "reason"), UNFITTED, ids=[reason for _, reason in UNFITTED])
def test_what_the_reader_was_not_fitted_for_is_answered_without_a_confidence(server, study, parameters, reason):
    [choice] = server.ask(study.image(1), LESION, **parameters).choices
    assert choice.finish_reason in ("stop", "length")
    judged = choice.dualread
    assert [judged[name] for name in ("answer", "confidence", "per", "abstain")] == [None] * 4  # nothing is decided
    assert judged["methods"] == {}
    assert any(note.startswith("no confidence: ") and reason in note for note in judged["notes"]), judged["notes"]
    streamed = list(server.ask(study.image(1), LESION, stream=True, **parameters))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed) == choice.message.content
    assert streamed[-1].choices[0].dualread == judged


def test_samples_are_drawn_by_the_seed(server, study):
    def drawn(**parameters):
        return [c.message.content for c in server.ask(study.image(1), LESION, temperature=1.0, **parameters).choices]

    assert drawn(n=4, seed=1) == drawn(n=4, seed=1)
    assert drawn(n=4, seed=1) != drawn(n=4, seed=2)
    assert len(set(drawn(n=4, seed=1))) > 1
    assert drawn() != drawn()
    assert drawn(n=3, seed=5)[:1] == drawn(n=1, seed=5)


def test_log_probabilities_are_those_of_the_tokens_and_the_most_probable_are_those_of_greedy_answers(server, study):
    [choice] = server.ask(study.image(1), LESION, logprobs=True, top_logprobs=3).choices
    assert len(choice.logprobs.content) <= 10
    assert b"".join(bytes(token.bytes) for token in choice.logprobs.content).decode(errors="replace").strip() == (
        choice.message.content.strip()
    )
    for token in choice.logprobs.content:
        assert token.logprob <= 0
        values = [one.logprob for one in token.top_logprobs]
        assert len(values) == 3
        assert values == sorted(values, reverse=True)
        assert values[0] >= token.logprob - 1e-5  # an id that is forbidden may be more probable
    *_, last = streamed = list(server.ask(study.image(1), LESION, logprobs=True, top_logprobs=3, stream=True))
    found = [of for chunk in streamed for of in (chunk.choices[0].logprobs and chunk.choices[0].logprobs.content) or ()]
    assert [of.token for of in found] == [of.token for of in choice.logprobs.content]
    values = [[token.logprob for token in of] for of in (found, choice.logprobs.content)]
    assert np.allclose(*values, atol=1e-4)
    assert found[0].top_logprobs[2].token == choice.logprobs.content[0].top_logprobs[2].token
    assert last.choices[0].logprobs.dualread["confidence"] is not None


def test_models_health_and_metrics(server, study):
    assert [model.id for model in server.client().models.list()] == ["dualread"]
    assert server.client().models.retrieve("dualread").owned_by == "dualread"
    with pytest.raises(openai.NotFoundError, match="Known: dualread"):
        server.client().models.retrieve("gpt")
    with pytest.raises(openai.NotFoundError, match="Known: dualread"):
        server.ask(study.image(1), LESION, model="gpt")
    assert httpx.get(f"{server.address}/health").text == "ok"

    def counted():
        lines = httpx.get(f"{server.address}/metrics").text.splitlines()
        assert all(line.startswith(("# HELP dualread_", "# TYPE dualread_", "dualread_")) for line in lines)
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}

    before = counted()
    usage = server.ask(study.image(1), LESION).usage
    after = counted()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown['dualread_requests_total{status="200"}'] == 1
    assert grown['dualread_tokens_total{kind="completion"}'] == usage.completion_tokens
    assert grown["dualread_confidence_count"] == 1
    assert grown['dualread_confidence_bucket{le="+Inf"}'] == 1
    assert grown["dualread_request_seconds_count"] == grown["dualread_first_token_seconds_count"] == 1
    assert after["dualread_requests_open"] == after["dualread_completions_open"] == 0


def test_no_answer_is_made_where_psr_is_low(study, scorer):
    psr = [scorer(study.image(i), LESION).psr for i in range(6)]
    between = float(np.mean(sorted(psr)[2:4]))
    with opened(study, abstain_before=str(between)) as service, serving(service) as server:
        for i, value in enumerate(psr):
            [choice] = server.ask(study.image(i), LESION).choices
            assert choice.dualread["psr"] == pytest.approx(value, abs=2e-6)
            if value >= between:
                assert choice.message.content
                assert choice.message.refusal is None
                continue
            assert choice.message.content is None
            assert f"is {value:.4f}, below {between:.4f}" in choice.message.refusal
            assert choice.dualread["abstain"] is True
            assert choice.dualread["confidence"] is None
            *_, last = server.ask(study.image(i), LESION, stream=True)
            assert last.choices[0].delta.refusal == choice.message.refusal
            assert last.choices[0].finish_reason == "stop"
        # Readers have no PSR of other requests, and these are answered.
        assert server.ask(study.image(0), LESION, temperature=1.0).choices[0].message.refusal is None


def test_a_record_is_a_table_that_evaluate_judges_when_the_truth_is_known(study, scorer, tmp_path, capsys):
    with opened(study) as service:
        record = Record(tmp_path / "answers.jsonl")

        def keep(reply):
            for row in reply.rows("dualread"):
                record.add(row)

        with serving(service, done=keep) as server:
            for i in range(8):
                server.ask(study.image(i), LESION, extra_body={"dualread": {"id": f"q{i}"}}, n=1 + i % 2)
            server.ask(study.image(1), LESION, temperature=1.0)  # without a confidence, and so not in the record
        record.close()
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["sample_id"] for row in rows] == [f"q{i}" for i in range(8)]
    assert not any("lesion" in line for line in lines)
    for i, row in enumerate(rows):
        scored = scorer(study.image(i), LESION)
        assert row["answer"] == scored.answer
        assert row["confidence"] == pytest.approx(scored.confidence, abs=2e-6)
    judged = tmp_path / "judged.jsonl"
    judged.write_text("\n".join(json.dumps(row | {"correct": i % 2}) for i, row in enumerate(rows)))
    assert program.main(["evaluate", str(judged)]) == 0
    assert "auroc" in capsys.readouterr().out.lower()


def test_the_threshold_of_a_bundle_decides_and_its_statement_comes_along(study, tmp_path):

    def answers(bundle, *, certified):
        service = open_service(ScorerChoice(reader=bundle, certified=certified), engine="transformers", batch_size=4)
        with serving(service) as server:
            found = [server.ask(study.image(i), LESION).choices[0].dualread for i in range(8)]
        service.close()
        return found

    any_bundle = small.exported(study, tmp_path / "any", "psr", thresholds={"dualread": 0.5})
    middle = statistics.median(one["confidence"] for one in answers(any_bundle, certified=False))
    bundle = small.exported(study, tmp_path / "mine", "psr", thresholds={"dualread": middle})
    said = {False: "About new answers, this promises nothing", True: "with a probability of at most 10%"}
    for certified, statement in said.items():
        found = answers(bundle, certified=certified)
        for judged in found:
            assert judged["abstain"] == (judged["confidence"] < middle)
            assert judged["threshold"]["value"] == middle
            assert judged["threshold"]["target_risk_percent"] == 10
            assert judged["threshold"]["rule"] == ("certified" if certified else "empirical")
            assert statement in judged["threshold"]["statement"]
        assert len({judged["abstain"] for judged in found}) == 2


def test_a_limit_for_which_there_is_no_room_is_lowered_with_a_note(server, study):
    [plain] = server.ask(study.image(1), LESION, max_tokens=100).choices
    [choice] = server.ask(study.image(1), LESION, max_tokens=100_000).choices
    assert any(note.startswith("max_tokens 100000 is lowered to ") for note in choice.dualread["notes"])
    assert choice.message.content.startswith(plain.message.content.rstrip("\ufffd"))


def test_a_text_of_stop_cuts_off_the_answer_whole_and_streamed(server, study):
    whole = server.ask(study.image(1), LESION).choices[0]
    text = whole.message.content
    start = len(text) // 2
    stop = text[start : start + 2]
    cut = text[: text.index(stop)]
    [choice] = server.ask(study.image(1), LESION, stop=[stop, "never said"], n=2).choices[:1]
    assert (choice.message.content, choice.finish_reason) == (cut, "stop")
    assert choice.dualread["confidence"] is None
    assert "cut off at a text of `stop`" in choice.dualread["notes"][0]
    streamed = list(server.ask(study.image(1), LESION, stop=stop, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed) == cut
    assert streamed[-1].choices[0].finish_reason == "stop"
    drawn = {"temperature": 1.0, "seed": 3, "n": 3}
    whole = server.ask(study.image(1), LESION, logprobs=True, **drawn).choices
    texts = [one.message.content for one in whole]
    tokens = [of.token for of in whole[1].logprobs.content]
    stop = next(two for one, two in pairwise(tokens) if one in texts[1] and texts[1].find(two) > 0)  # a whole token
    stopped = server.ask(study.image(1), LESION, stop=stop, logprobs=True, **drawn).choices
    assert [one.message.content for one in stopped] == [text.partition(stop)[0] for text in texts]
    *before, _ = [bytes(token.bytes) for token in stopped[1].logprobs.content]
    assert stopped[1].message.content not in b"".join(before).decode(errors="replace")  # the last begins in the text


def test_a_number_that_json_does_not_have_is_null(study, monkeypatch):
    with opened(study) as service, serving(service) as server:
        real = LoadedReaders.readings

        def no_number(*given):
            return [replace(one, per=float("nan")) for one in real(*given)]

        monkeypatch.setattr(LoadedReaders, "readings", no_number)
        for stream in (False, True):
            with server.client().chat.completions.with_streaming_response.create(
                model="dualread", messages=[user(study.image(1), LESION)], stream=stream
            ) as reply:
                text = reply.read().decode()
            assert "NaN" not in text
            assert '"per":null' in text


def test_replies_have_names_and_other_addresses_say_what_to_do(server, study):
    for path in ("/health", "/v1/models", "/nothing"):
        assert re.fullmatch(r"[0-9a-f]{32}", httpx.get(server.address + path).headers["x-request-id"])
    raw = server.client().chat.completions.with_raw_response.create(
        model="dualread", messages=[user(study.image(1), LESION)]
    )
    reply = raw.parse()
    assert reply.id == f"chatcmpl-{raw.headers['x-request-id']}"
    assert reply.usage.dualread == [reply.choices[0].dualread]  # what is said is in the usage, too
    said = json.loads(raw.text)["choices"][0]["dualread"]
    others = {"answer", "distance_percentile", "methods", "answer_sets", "claims", "threshold", "abstain", "notes"}
    assert set(said) == {"confidence", "psr", "per"} | others
    assert data_url(study.image(1)) not in raw.text
    with pytest.raises(openai.NotFoundError, match="ends with /v1"):
        server.client().with_options(base_url=server.address).chat.completions.create(
            model="dualread", messages=[user(LESION)]
        )
    with server.client().chat.completions.with_streaming_response.create(
        model="dualread", messages=[user(LESION)], stream=True
    ) as reply:
        assert reply.headers["x-accel-buffering"] == "no"


@pytest.fixture(scope="module")
def ward(studies, tmp_path_factory):
    """A study whose prompt has a system message and an earlier turn, and is in a package of its own."""
    folder = tmp_path_factory.mktemp("ward")
    (folder / "ward_asked").mkdir()
    (folder / "ward_asked/__init__.py").touch()
    earlier = "[system]\nYou read images.\n[user]\nReady for {QUESTION}\n[assistant]\nYes.\n"
    (folder / "ward_asked/turns.txt").write_text(f"{earlier}[user]\nAbout it: {{QUESTION}}")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        tiny = studies("qwen3_vl").tiny
        asked = PromptText(name="ward_asked.turns", sha256=prompts.template_sha256("ward_asked.turns"))
        required = small.requirements(tiny.checkpoint, prompt=asked)
        yield small.build(tiny, folder / "results", **{NAME: required.model_dump()})


BEFORE = [
    {"role": "system", "content": "You read images."},
    {"role": "user", "content": f"Ready for {LESION}"},
    {"role": "assistant", "content": "Yes."},
]


def test_a_conversation_that_begins_as_the_readers_prompt_does_is_judged(ward):
    scored = Scorer.load(ward.reader("dualread"), ward.actor, plugins=["ward_asked"])(ward.image(1), LESION)
    last = user(ward.image(1), LESION)
    with opened(ward, plugins=["ward_asked"]) as service, serving(service) as server:
        for messages in (
            [last],
            [*BEFORE, last],
            [*BEFORE, user(ward.image(1), f"About it: {LESION}")],
            [{**BEFORE[0], "role": "developer"}, *BEFORE[1:], last],
        ):
            [choice] = server.ask(messages=messages).choices
            assert choice.message.content == scored.completion
            assert parts(choice.dualread) == pytest.approx(expected(scored), abs=2e-6)
        for messages, reason in (
            (
                [BEFORE[0], last],
                "of system, user, and readers were fitted on messages of system, user, assistant, user",
            ),
            ([{**BEFORE[0], "content": "Be brief."}, *BEFORE[1:], last], "are not those of the prompt"),
            ([*BEFORE, user(ward.image(1), "Which organ is shown?")], "are not those of the prompt"),
            ([BEFORE[0], user(ward.image(2), BEFORE[1]["content"]), BEFORE[2], last], "there are 2 images"),
            ([*BEFORE[:1], *BEFORE[1:], user(LESION)], "there are no images"),
        ):
            [choice] = server.ask(messages=messages).choices
            judged = choice.dualread
            assert judged["confidence"] is None
            assert any(reason in note for note in judged["notes"]), judged["notes"]
