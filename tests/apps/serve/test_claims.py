"""The claims of reports, as they are told while a report goes on, and at its end."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import httpx
import openai
import polars as pl
import pytest

import dualread
from dualread.apps.score import ScorerChoice, stored
from dualread.apps.score.bundle import STORED
from dualread.apps.score.claims import ClaimDivider
from dualread.apps.score.scorer import Scorer
from dualread.apps.serve.opening import open_service
from dualread.apps.serve.outcome import Record
from dualread.artifacts.tensors import read_file, read_header, read_tensors, write_tensors
from dualread.errors import ArtifactError, DataError
from dualread.grading.contracts import single
from dualread.grading.spans import sentences
from dualread.schema.base import NoSettings
from tests.apps.score import small
from tests.apps.serve import reports
from tests.apps.serve.reports import CLAIMS, SAID
from tests.apps.serve.running import opened, sent, serving, wait_until
from tests.architectures import SECOND_IN_REST
from tests.tiny import image

METHODS = ["sequence_likelihood", "p_state", "question_prior"]
PARSE = single.parse  # the other tests of this folder replace it
NUMBERS = ("confidence", "psr", "per")


@pytest.fixture(scope="module", params=SECOND_IN_REST)
def ward(request, tmp_path_factory):
    return reports.study(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def server(ward):
    with opened(ward, methods=METHODS, engine="transformers") as service, serving(service) as running:
        yield running


def streamed(server, question, number=0, **more):
    """Of one choice: (the claims of an event, the text before it) of each but the last one, which comes beside it."""
    text, early, last = "", [], {}
    for chunk in server.ask(image(1), question, stream=True, **more):
        [choice] = chunk.choices
        if choice.index == number:
            text += choice.delta.content or ""
            last = getattr(choice, "dualread", None) or {}
            if choice.finish_reason is None and "claims" in last:
                early.append((last["claims"], text))
    return early, last


@pytest.mark.parametrize("question", ["Report?", "Short?"])
def test_a_claim_is_told_when_its_sentence_has_ended_as_it_is_at_the_end(server, ward, question):
    early, last = streamed(server, question)
    told = [claim for claims, _ in early for claim in claims]
    assert [claim["text"] for claim in told] == CLAIMS[question]
    assert told == last["claims"]
    for claims, text in early:  # behind the tag, or the beginning of a sentence, come a token or two
        assert 0 <= len(text) - claims[-1]["end"] <= len("</answer>\n<confidence>")
    scored = Scorer.load(ward.reader("dualread"), ward.actor, methods=METHODS)(image(1), question)
    for claim, of_score in zip(told, scored.claims or (), strict=True):
        assert [claim[name] for name in NUMBERS] == pytest.approx([getattr(of_score, n) for n in NUMBERS], abs=2e-6)
        for name, of in of_score.methods.items():
            assert claim["methods"][name]["confidence"] == pytest.approx(of.confidence, abs=2e-6)


def test_a_block_that_is_never_closed_has_other_claims_at_the_end(server):
    early, last = streamed(server, "Open?")
    assert [claim["text"] for claims, _ in early for claim in claims] == ["Axial ct.", "The lesion is small."]
    assert [claim["text"] for claim in last["claims"]] == CLAIMS["Open?"]


def test_streams_at_once_are_told_of_their_own_claims(server):
    alone = {question: streamed(server, question)[1]["claims"] for question in SAID}
    questions = [*SAID] * 3
    with ThreadPoolExecutor(len(questions)) as pool:
        for question, (early, last) in zip(questions, pool.map(lambda q: streamed(server, q), questions), strict=True):
            assert [claim["text"] for claim in last["claims"]] == CLAIMS[question]
            if question != "Open?":
                assert [claim for claims, _ in early for claim in claims] == last["claims"]
            for claim, one in zip(last["claims"], alone[question], strict=True):
                assert claim["confidence"] == pytest.approx(one["confidence"], abs=2e-6)


def test_each_choice_is_told_and_a_client_that_adds_up_a_stream_has_each_claim_once(server):
    assert streamed(server, "Report?", n=2) == streamed(server, "Report?", number=1, n=2)
    with server.client().chat.completions.stream(model="dualread", messages=sent("Report?")["messages"]) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.content == SAID["Report?"]
    assert [claim["text"] for claim in message.dualread["claims"]] == CLAIMS["Report?"]


def test_what_is_cut_off_is_told_no_further_and_has_no_claims_at_the_end(server):
    """What may be the beginning of a text of `stop` is not sent, and no claim that it would end."""
    early, last = streamed(server, "Report?", stop=["Dr. Who"])
    assert [claim["text"] for claims, _ in early for claim in claims] == ["No effusion."]
    assert last["claims"] is None
    assert any("cut off at a text of `stop`" in note for note in last["notes"])


def test_a_report_that_ends_at_its_limit_is_read_to_its_last_token(server, monkeypatch):
    """As if readers knew reports of up to 30 tokens; beside it in the batch goes a longer one."""
    monkeypatch.setattr(server.service.requests, "of_completion", lambda asked, completion: ())
    limits = (30, 120, 30)
    with ThreadPoolExecutor(len(limits)) as pool:
        last = list(pool.map(lambda n: streamed(server, "Report?", max_tokens=n)[1]["claims"], limits))
    assert all(claim["confidence"] is not None for claims in last for claim in claims)
    assert [claim["text"] for claim in last[0]] == [claim["text"] for claim in last[2]]
    assert [claim["text"] for claim in last[1]] == CLAIMS["Report?"] != [claim["text"] for claim in last[0]]


def test_requests_that_readers_cannot_judge_have_no_claims(server):
    early, last = streamed(server, "Report?", temperature=0.01, seed=1)
    assert (early, last["claims"]) == ([], None)


def test_a_client_that_leaves_between_two_claims_disturbs_nobody(server):
    body = sent("Report?", stream=True)
    with httpx.stream("POST", f"{server.address}/v1/chat/completions", json=body, timeout=30) as reply:
        next(line for line in reply.iter_lines() if '"claims"' in line)
    early, last = streamed(server, "Report?")
    assert [claim for claims, _ in early for claim in claims] == last["claims"] != []
    wait_until(lambda: server.service.n_open == 0)


def test_claims_wait_for_the_end_where_a_method_reads_it(ward, monkeypatch):
    """`rlvr` is the confidence that the report states behind its block."""
    monkeypatch.setattr(single, "parse", PARSE)
    with opened(ward, methods=["rlvr"], engine="transformers") as service, serving(service) as server:
        early, last = streamed(server, "Report?")
    assert early == []
    assert [claim["methods"]["rlvr"]["confidence"] for claim in last["claims"]] == [0.7] * len(CLAIMS["Report?"])


def test_a_bundle_has_stored_claims_by_which_an_engine_is_checked(ward, tmp_path, capsys):
    bundle = small.exported(ward, tmp_path / "bundle", thresholds={"dualread": 0.5})
    answers = stored.read(read_file(bundle / STORED))
    assert {len(answer.confidences) for answer in answers} - {0, 1}
    service = open_service(ScorerChoice(reader=bundle), engine="transformers", batch_size=4)
    service.close()
    assert "4 of 4 stored answers are the same" in capsys.readouterr().err
    tensors, header = read_tensors(bundle / STORED), read_header(bundle / STORED)
    tensors["h_close"][-1] *= 1.1
    write_tensors(bundle / STORED, tensors, header)
    with pytest.raises(ArtifactError, match=r"h_close of '.*' is 9\.\d% of its length apart"):
        open_service(ScorerChoice(reader=bundle), engine="transformers", batch_size=4)


def test_a_report_that_a_plugin_divides_wrongly_harms_no_other_one(ward, monkeypatch):
    """Overlapping claims of one report among several of a batch."""

    def overlapping(reports, settings, source):
        return [
            [(1, 5), (3, 9)] if "A scan" in report.text else whole([report], settings, source)[0] for report in reports
        ]

    whole = sentences.spans
    monkeypatch.setattr(sentences, "spans", overlapping)
    with opened(ward, engine="transformers") as service, serving(service) as server, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(streamed, server, question) for question in ("Report?", "Short?", "Report?", "Open?")]
        for k, question in ((0, "Report?"), (2, "Report?"), (3, "Open?")):
            assert [claim["text"] for claim in asked[k].result()[1]["claims"]] == CLAIMS[question]
        with pytest.raises(openai.APIError, match="claim 1 is from character 3 to 9"):
            asked[1].result()


def test_a_record_of_claims_is_a_table_for_evaluate(server, tmp_path):
    replies = [server.ask(image(k), "Report?", extra_body={"dualread": {"id": f"r{k}"}}) for k in range(2)]
    record = Record(tmp_path / "claims.jsonl")
    for outcome in server.replies[-2:]:
        for row in outcome.rows("dualread"):
            record.add(row)
    record.close()
    rows = pl.read_ndjson(tmp_path / "claims.jsonl")
    assert rows.select("sample_id", "claim").rows() == [(f"r{k}", n) for k in range(2) for n in range(5)]
    judged = [claim for reply in replies for claim in reply.choices[0].dualread["claims"]]
    assert rows["answer"].to_list() == CLAIMS["Report?"] * 2
    assert rows["confidence"].to_list() == [claim["confidence"] for claim in judged]
    labeled = rows.with_columns(correct=pl.col("claim") % 2 == 0)
    metrics = dualread.evaluate(labeled, replicates=0).metrics
    assert metrics.filter(metric="accuracy", subset="all")["estimate"].to_list() == [0.6]  # three of five


def test_a_claim_that_was_told_stays_whatever_follows():
    """Each beginning of a completion, character by character."""
    divider = ClaimDivider(plugin="sentences", settings=NoSettings(), thinking_ends=None)
    for question in ("Report?", "Short?"):
        text = SAID[question]
        told = [divider.settled(text[:n]) for n in range(len(text) + 1)]
        assert told[-1] == divider.claims([("", text)])[0]
        assert [text[slice(*span)] for span in told[-1]] == CLAIMS[question]
        assert all(now == last[: len(now)] for now, last in pairwise(told))
        assert not any(told[: text.index("<answer>") + 8])
        assert all(text[end:n].strip() for n, spans in enumerate(told) for _, end in spans)  # more than it follows


def test_a_plugin_that_forgets_a_report_is_refused(monkeypatch):
    monkeypatch.setattr(sentences, "spans", lambda reports, settings, source: [])
    divider = ClaimDivider(plugin="sentences", settings=NoSettings(), thinking_ends=None)
    for call in (lambda: divider.claims([("", SAID["Short?"])]), lambda: divider.settled(SAID["Short?"])):
        with pytest.raises(DataError, match="0 lists of claims for 1 reports"):
            call()


@pytest.mark.parametrize("seed", range(20))
def test_claims_that_are_told_are_those_of_the_whole_text(seed):
    """Of abbreviations, numbers, lists and line breaks, in pieces of any length; only what comes behind is divided."""
    rng, divider = random.Random(seed), ClaimDivider(plugin="sentences", settings=NoSettings(), thinking_ends=None)
    words = ["No", "no.", "Dr.", "1.", "2", "1.2 cm", "E.", "Clear.", "...", "\n", "\n- ", "Why?", '"Yes."', "(x)"]
    report = "".join(rng.choice(words) + rng.choice(["", " ", " ", "  "]) for _ in range(60))
    text, whole, told, n = f"<answer>{report}</answer><confidence>5", [], [], 0
    while n < len(text):
        n = min(len(text), n + rng.randint(1, 8))
        whole += divider.settled(text[:n])[len(whole) :]
        told += divider.settled(text[:n], told)[len(told) :]
        assert told == whole
    assert told == divider.claims([("", text)])[0]
