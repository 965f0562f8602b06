"""The thread between requests and an actor, with a stand-in for the actor: what is told, cut off, judged, and stuck."""

import queue
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from dualread.apps.score.answering import ActorNeeds
from dualread.apps.score.results import Reading
from dualread.apps.serve import service as module
from dualread.apps.serve.chat_questions import ActorRequest, RequestReader
from dualread.apps.serve.wire import ChatRequest, Turn
from dualread.errors import DataError
from dualread.models.actor import EncodedRequest, SeededDecoding
from dualread.models.streams import Finished, GrowingCompletion, PromptRead
from tests.apps.serve.service.test_texts import TEXT, byte_level

TOKENIZER = byte_level()
IDS = [*TOKENIZER(TEXT, add_special_tokens=False)["input_ids"], TOKENIZER.eos_token_id]
SURE = Reading(
    **{"answer": "no", "completion": TEXT, "parse_status": "valid", "finish_reason": "stop"},
    **{"confidence": 0.7, "psr": 0.6, "per": 0.8, "methods": {}},
)


class Actor:
    """Says `TEXT` to each request, a token per step, as long as `going` is set."""

    broken, config = None, SimpleNamespace()

    def __init__(self):
        self.encoder = SimpleNamespace(
            tokenizer=TOKENIZER, decode=lambda ids: TOKENIZER.decode(ids, skip_special_tokens=True)
        )
        self.rows, self.aborted, self.going = {}, [], threading.Event()
        self.going.set()

    @property
    def n_open(self):
        return sum(map(len, self.rows.values()))

    def add(self, request):
        n = request.decoding.n_samples
        self.rows[request.name] = [GrowingCompletion(request=request, index=k) for k in range(n)]

    def abort(self, name):
        self.rows.pop(name, None)
        self.aborted.append(name)

    def step(self):
        assert self.going.wait(20)
        events = []
        for name, rows in list(self.rows.items()):
            token = IDS[len(rows[0].tokens)]
            if not rows[0].tokens:
                events.append(PromptRead(name=name, state=np.zeros(2)))
            events += [row.grow(token, -0.5) for row in rows]
            is_long = len(rows[0].tokens) == rows[0].request.decoding.max_completion_tokens
            if token == TOKENIZER.eos_token_id or is_long:
                for row in self.rows.pop(name):
                    row.finish_reason = "length" if is_long else "stop"
                    events.append(row.told(Finished, self.encoder.decode))
        return events

    def wake(self):
        pass

    def close(self):
        pass

    def read(self, asked, ended):
        return ended


@pytest.fixture
def service():
    fitted = SimpleNamespace(temperature=0.0, top_p=1.0, max_completion_tokens=100)
    prompt = SimpleNamespace(name="shared")
    required = SimpleNamespace(decoding=fitted, prompt=prompt, fits=lambda n_images: n_images == 1, numbers="one")
    readers = SimpleNamespace(
        threshold=None,
        readings=lambda ended: [SURE for _ in ended],
        before_answer=lambda states: [None] * len(states),
    )
    needs = ActorNeeds(requirements=required)
    made = module.AnsweringService(
        SimpleNamespace(actor=Actor(), readers=readers, needs=needs, notes=(), known_early=False)
    )
    yield made
    made.close()


def asked(service, name, *, n=1, temperature=0.0, longest=100, **more):
    """The news of a request, as they come."""
    decoding = SeededDecoding(
        temperature=temperature, top_p=1.0, n_samples=n if temperature else 1, max_completion_tokens=longest, seed=0
    )
    told = queue.Queue()
    encoded = EncodedRequest(name=name, prompt=SimpleNamespace(token_ids=(1,)), decoding=decoding)
    sent = ChatRequest(messages=[{"role": "user", "content": "x"}], n=n, **more)
    service.submit(ActorRequest(sent=sent, encoded=encoded, shown=SimpleNamespace()), told.put)
    return told


def answers(told, n=1):
    found = []
    while len(found) < n:
        if isinstance(news := told.get(timeout=20), module.Answer):
            found.append(news)
    return sorted(found, key=lambda answer: answer.index)


@pytest.mark.parametrize(("n", "temperature"), [(1, 0.0), (3, 0.0), (3, 1.0)])
def test_what_is_cut_off_is_answered_at_once_and_no_longer_made(service, n, temperature):
    actor = service.loaded.actor
    for answer in answers(asked(service, "a", n=n, temperature=temperature, stop=[": no"]), n):
        assert answer.completion.text == "At 37°C 日本"
        assert (answer.completion.finish_reason, answer.reading) == ("stop", None)
        assert "cut off" in answer.notes[0]
        assert len(answer.completion.token_ids) < len(IDS)
    assert answers(asked(service, "b", stop=["never"]))[0].reading == SURE
    assert actor.aborted == ["a"]


def test_a_text_of_stop_in_the_last_token_is_told_once(service, monkeypatch):
    """Here the second completion comes a step later than the first."""
    actor, late = service.loaded.actor, []
    step = actor.step

    def one_after_the_other():
        events = [*late, *step()]
        late[:] = [event for event in events if getattr(event, "index", 0) == 1 and event not in late]
        return [event for event in events if event not in late]

    monkeypatch.setattr(actor, "step", one_after_the_other)
    told = asked(service, "a", n=2, temperature=1.0, stop=[TEXT[-2:]], longest=len(IDS) - 1)
    found = [told.get(timeout=20) for _ in range(3)][1:]
    assert [(answer.index, answer.completion.text) for answer in found] == [(0, TEXT[:-2]), (1, TEXT[:-2])]
    assert answers(asked(service, "b"))[0].reading == SURE
    assert told.empty()


def test_tokens_are_kept_only_where_their_log_probabilities_are_wanted(service):
    assert answers(asked(service, "a"))[0].tokens == ()
    tokens = answers(asked(service, "b", logprobs=True))[0].tokens
    assert [event.token for event in tokens] == IDS[:-1]  # without the token that ends a turn


@pytest.mark.parametrize("reason", ["the completion has no valid answer", None])
def test_an_answer_without_a_confidence_is_never_kept(service, monkeypatch, reason):
    judged = module.replace(SURE, reason=reason, confidence=None if reason else SURE.confidence)
    monkeypatch.setattr(service.loaded.readers, "readings", lambda ended: [judged for _ in ended])
    told = asked(service, "a")
    assert told.get(timeout=20) == module.Before(psr=None)
    [answer] = answers(told)
    assert (answer.decision.keep is False) is (answer.confidence is None) is (reason is not None)
    assert [reason in note for note in answer.notes] == [True] * (reason is not None)


def test_a_request_whose_completions_fail_together_breaks_nothing(service, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(service.loaded.readers, "readings", fails)
        told = asked(service, "a", n=3, temperature=1.0)
        while not isinstance(news := told.get(timeout=20), module.AnswerError):
            pass
    assert "out of memory" in str(news)
    assert answers(asked(service, "b"))[0].reading == SURE
    assert service.broken is None


def fails(ended):
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(("limit", "is_answered"), [(0.5, True), (0.51, False)])
def test_no_answer_is_made_below_the_limit_of_psr(service, monkeypatch, limit, is_answered):
    monkeypatch.setattr(service.loaded.readers, "before_answer", lambda states: [0.5] * len(states))
    monkeypatch.setattr(service, "_limit", limit)
    first = asked(service, "a").get(timeout=20)
    assert first == (module.Before(psr=0.5) if is_answered else module.Abstained(psr=0.5, limit=limit, notes=()))
    assert service.loaded.actor.aborted == ([] if is_answered else ["a"])


def test_a_service_is_stuck_as_long_as_nothing_happens_to_what_is_asked(service):
    actor = service.loaded.actor
    assert service.seconds_stuck == 0
    actor.going.clear()
    told = asked(service, "a")
    time.sleep(0.3)
    assert service.seconds_stuck > 0.2
    actor.going.set()
    answers(told)
    while service._running:
        time.sleep(0.01)
    assert service.seconds_stuck == 0


def requests(**decoding) -> RequestReader:
    """Requests to an actor whose readers were fitted on answers of up to ten tokens."""
    fitted = SimpleNamespace(**{"temperature": 0.0, "top_p": 1.0, "max_completion_tokens": 10, **decoding})
    prompt = SimpleNamespace(name="shared")
    required = SimpleNamespace(decoding=fitted, prompt=prompt, fits=lambda n_images: n_images == 1, numbers="one")
    actor = SimpleNamespace(encoder=None, config=None)
    return RequestReader(SimpleNamespace(actor=actor, needs=ActorNeeds(requirements=required)))


@pytest.mark.parametrize(
    ("finish_reason", "n", "is_judged"),
    # An answer that is cut off is the one that readers know only where they cut it off, too.
    [*(("stop", n, n <= 10) for n in (9, 10, 11)), *(("length", n, n == 10) for n in (9, 10, 11))],
)
def test_an_answer_is_judged_if_it_ends_where_readers_saw_it_end(finish_reason, n, is_judged):
    asked, completion = SimpleNamespace(reasons=()), SimpleNamespace(token_ids=(7,) * n, finish_reason=finish_reason)
    said = (f"the completion ends after {n} tokens, and readers were fitted on completions of up to 10",)
    assert requests().of_completion(asked, completion) == (() if is_judged else said)
    of_request = SimpleNamespace(reasons=("the prompt is another one",))
    assert requests().of_completion(of_request, completion) == of_request.reasons


@pytest.mark.parametrize(
    ("fitted", "wanted", "is_judged"),
    [
        ({}, {}, True),
        ({}, {"temperature": 0.0, "top_p": 0.5}, True),  # greedy, whatever the probability
        ({}, {"temperature": 0.5}, False),
        ({"temperature": 0.5}, {}, True),
        ({"temperature": 0.5}, {"temperature": 0.0}, False),
        ({"temperature": 0.5, "top_p": 0.9}, {"top_p": 0.9}, True),
        ({"temperature": 0.5, "top_p": 0.9}, {"top_p": 1.0}, False),
    ],
)
def test_an_answer_is_judged_if_it_is_drawn_as_those_that_readers_saw(fitted, wanted, is_judged):
    sent, turn = ChatRequest(messages=[{"role": "user", "content": "x"}], **wanted), Turn(role="user", parts=())
    assert (list(requests(**fitted)._reasons([turn], True, 1, None, sent)) == []) is is_judged


def test_a_prompt_leaves_room_for_a_token_and_the_one_that_is_read_after_it():
    sent = ChatRequest(messages=[{"role": "user", "content": "x"}])
    decoding, notes = requests()._decoding(sent, 2**17 - 2, "q1")
    assert decoding.max_completion_tokens == 1
    assert notes == ["max_tokens 10 is lowered to 1, for which there is room"]
    with pytest.raises(DataError, match=rf"^a prompt of {2**17 - 1} tokens leaves no room for an answer. Shorten it.$"):
        requests()._decoding(sent, 2**17 - 1, "q1")
