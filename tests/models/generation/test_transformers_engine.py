import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.architectures import both
from tests.specs import changed
from tests.tiny import MODEL, image

from dualread.models.actor import EncodedRequest, ReadSpec, Request, SeededDecoding
from dualread.models.generation import _transformers_stream
from dualread.models.generation._transformers_stream import TransformersStream, _choose
from dualread.models.generation.transformers_engine import open_engine
from dualread.models.replay.forward import replay_batch

GREEDY = SeededDecoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=12, seed=0)


@pytest.fixture
def requests_(tmp_path):
    paths = []
    for seed in range(2):
        image(seed).save(path := tmp_path / f"{seed}.png")
        paths.append(path)
    questions = ["Is this a CT scan?", "What is the size of the lesion?", "Where?", "Where is it? " * 3, "Why?"]
    return [
        Request(text=question, images=[paths[i % 2]], image_name=str(i % 2), row=f"row {i}")
        for i, question in enumerate(questions)
    ]


def engine(tiny, batch_size=2):
    return open_engine(tiny.checkpoint, MODEL, {"batch_size": batch_size})


@both
def test_greedy_against_a_literal_loop(tiny, requests_):
    """Reference: one row at a time, one full forward pass per token, no cache; forbidden ids are never chosen."""
    opened = engine(tiny)
    results = opened.answer(requests_, GREEDY)
    model, encoder = opened.model, opened.encoder
    for request, [completion] in zip(requests_, results, strict=True):
        prompt = encoder.prompt(request.text, images=request.images, row=request.row)
        tokens, log_probs = [], []
        while len(tokens) < 12 and (not tokens or tokens[-1] not in opened.encoder.stop):
            with torch.inference_mode():
                states = model.model(
                    **encoder.batch([prompt], [tokens]), **encoder.shared_images(model, [prompt])
                ).last_hidden_state
                scores = torch.log_softmax(model.lm_head(states[0, -1]).float(), -1)
            allowed = scores.clone()
            allowed[list(opened.encoder.forbidden)] = -torch.inf
            tokens.append(int(allowed.argmax()))
            log_probs.append(float(scores[tokens[-1]]))
        assert list(completion.token_ids) == tokens
        np.testing.assert_allclose(completion.token_log_probs, log_probs, atol=1e-4)
        assert list(completion.prompt_token_ids) == list(prompt.token_ids)
        assert completion.finish_reason == ("stop" if tokens[-1] in opened.encoder.stop else "length")


@both
@pytest.mark.parametrize("sampling", [GREEDY, changed(GREEDY, temperature=2.0, top_p=0.9)], ids=["greedy", "sampled"])
def test_the_replay_reproduces_the_generation(tiny, requests_, sampling):
    """Temperature, top-p and forbidden ids change which ids are chosen, but not the log-probabilities of them."""
    opened = engine(tiny)
    completions = [c for [c] in opened.answer(requests_, sampling)]
    prompts = [opened.encoder.prompt(r.text, images=r.images, row=r.row) for r in requests_]
    replayed = replay_batch(tiny.open(), prompts, [c.token_ids for c in completions], ReadSpec(kappa=0.1))
    for completion, got in zip(completions, replayed, strict=True):
        np.testing.assert_allclose(got.token_log_probs, completion.token_log_probs, atol=1e-4)
        assert sampling is not GREEDY or got.argmax_gap.max() < 1e-4


def test_samples_depend_on_the_seed_and_never_hold_forbidden_ids(tiny, requests_):
    opened = engine(tiny)

    def sampled(seed):
        decoding = SeededDecoding(temperature=1.0, top_p=1.0, n_samples=4, max_completion_tokens=12, seed=seed)
        return opened.answer(requests_, decoding)

    first, again, other = sampled(1), sampled(1), sampled(2)
    assert first == again != other
    assert {len(completions) for completions in first} == {4}
    ids = {token for completions in first for c in completions for token in c.token_ids}
    assert not ids & set(opened.encoder.forbidden)


@both
def test_loglikelihoods_against_direct_forward_passes(tiny, requests_):
    """Reference: one full pass per continuation, and the sum of the log-probabilities of its ids."""
    opened = engine(tiny)
    given = [dataclasses.replace(r, prefix=(50, 51, 52)[: i % 4]) for i, r in enumerate(requests_)]
    continuations = [[[40], [41, 42], [41, 43], [41, 42, 44], [45 + i]] for i in range(len(given))]
    scored = opened.loglikelihoods(given, continuations)
    for request, of_request, found in zip(given, continuations, scored, strict=True):
        prompt = opened.encoder.prompt(request.text, images=request.images, row=request.row)
        assert list(found.prompt_token_ids) == [*prompt.token_ids, *request.prefix]
        for ids, log_prob in zip(of_request, found.values, strict=True):
            own = direct(opened, prompt, [*request.prefix, *ids])[len(request.prefix) :]
            assert log_prob == pytest.approx(own.sum(), abs=1e-4)


@both
def test_samples_of_a_request_do_not_depend_on_other_requests(tiny, requests_):
    decoding = SeededDecoding(temperature=1.0, top_p=1.0, n_samples=3, max_completion_tokens=8, seed=4)
    together = engine(tiny).answer(requests_, decoding)
    alone = engine(tiny, batch_size=1).answer(requests_[3:4], decoding)
    assert [c.token_ids for c in alone[0]] == [c.token_ids for c in together[3]]
    fewer = engine(tiny).answer(requests_, changed(decoding, n_samples=2))
    assert [[c.token_ids for c in cs] for cs in fewer] == [[c.token_ids for c in cs[:2]] for cs in together]


def test_samples_encode_prompt_and_image_once(tiny, requests_, monkeypatch):
    """Passes over more than one column read prompts: one row per image, then one per prompt, and none per sample."""
    opened = engine(tiny, batch_size=64)
    rows = []
    forward = type(opened.model.model).forward

    def counted(self, *args, **kwargs):
        if kwargs["input_ids"].shape[1] > 1:
            rows.append(kwargs["input_ids"].shape[0])
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(type(opened.model.model), "forward", counted)
    opened.answer(requests_, SeededDecoding(temperature=1.0, top_p=1.0, n_samples=8, max_completion_tokens=4, seed=4))
    n_images = len({str(request.images) for request in requests_})
    assert n_images < len(requests_)
    assert rows == [n_images, len(requests_)]


def test_a_changed_picture_is_made_again_only_after_others(tiny):
    """A picture is made when it is asked for, and few stay in memory: those about one follow each other."""
    made = []

    def shown(k):
        return lambda: made.append(k) or image(k)

    asked = [Request(text="Where?", images=[shown(k % 3)], image_name=f"{k % 3}", row=f"{k}") for k in range(9)]
    found = engine(tiny, batch_size=64).answer(asked, GREEDY)
    assert made == sorted(made)
    assert set(made) == {0, 1, 2}
    alone = [engine(tiny).answer([one], GREEDY)[0] for one in asked[:3]]
    assert [of[0].token_ids for of in found] == [of[0].token_ids for of in alone * 3]


def test_ids_are_drawn_by_their_probabilities():
    """For u in [0, 1): the cumulative probabilities are .1, .1, .4, 1 at temperature 1."""
    scores = torch.log(torch.tensor([[0.1, 0.0, 0.3, 0.6]])).repeat(10, 1)
    uniform = np.array([0.0, 0.05, 0.0999, 0.1001, 0.2, 0.3999, 0.4001, 0.5, 0.9, 0.9999])
    sampling = SeededDecoding(temperature=1.0, top_p=1.0, n_samples=1, max_completion_tokens=1, seed=0)
    assert _choose(scores, sampling, uniform).tolist() == [0, 0, 0, 2, 2, 2, 3, 3, 3, 3]
    # .6 alone holds less than .7 of the mass, .6 and .3 hold it: 2 has a third of what is left, below u = 1/3.
    nucleus = changed(sampling, top_p=0.7)
    assert _choose(scores, nucleus, uniform).tolist() == [2, 2, 2, 2, 2, 3, 3, 3, 3, 3]
    # Two of four equal ids hold exactly half of the mass.
    half = changed(sampling, top_p=0.5)
    assert _choose(torch.zeros(2, 4), half, np.array([0.0, 0.9999])).tolist() == [0, 1]
    # Squared and normalized: .01, 0, .09, .36 of .46, so the cumulated sums are .0217, .0217, .2174, 1.
    cold = changed(sampling, temperature=0.5)
    assert _choose(scores, cold, uniform).tolist() == [0, 2, 2, 2, 2, 3, 3, 3, 3, 3]


def test_what_an_engine_made_before_changes_no_byte(tiny, requests_):
    """One engine answers many shards; each has to get the bytes that it would get alone, in any order."""
    sampling = SeededDecoding(temperature=1.0, top_p=1.0, n_samples=3, max_completion_tokens=8, seed=4)
    continuations = [[[40], [41, 42], [41, 43]]] * len(requests_)
    shards = [
        lambda opened: opened.answer(requests_[:3], GREEDY),
        lambda opened: opened.answer(requests_[2:], sampling),
        lambda opened: [of.values.tolist() for of in opened.loglikelihoods(requests_, continuations)],
    ]
    alone = [shard(engine(tiny)) for shard in shards]
    opened, reverse = engine(tiny), engine(tiny)
    assert [shard(opened) for shard in shards] == alone
    assert [shard(reverse) for shard in shards[::-1]] == alone[::-1]


def test_a_prompt_longer_than_a_sliding_window(tmp_path):
    """Reference: one full pass per continuation. The window of 16 tokens ends within the prompt."""
    from tests.tiny import build

    long = build("gemma3", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["text_config"]["sliding_window"] = 16
    (tmp_path / "config.json").write_text(json.dumps(config))
    opened = engine(long)
    requests = [Request(text="Where is it? " * n, images=[image(n)], image_name=str(n), row=str(n)) for n in (1, 4)]
    continuations = [[[40], [41, 42], [41, 43, 44], [45, 46]]] * 2
    prompts = [opened.encoder.prompt(r.text, images=r.images, row=r.row) for r in requests]
    assert min(len(prompt.token_ids) for prompt in prompts) > 16
    greedy = [c for [c] in opened.answer(requests, GREEDY)]
    for prompt, completion, found in zip(prompts, greedy, opened.loglikelihoods(requests, continuations), strict=True):
        for ids, log_prob in zip(continuations[0], found.values, strict=True):
            assert log_prob == pytest.approx(direct(opened, prompt, ids).sum(), abs=1e-4)
        np.testing.assert_allclose(completion.token_log_probs, direct(opened, prompt, completion.token_ids), atol=1e-4)


def direct(opened, prompt, ids):
    """Return the log-probabilities of `ids` after a prompt, from one pass over everything."""
    with torch.inference_mode():
        batch = opened.encoder.batch([prompt], [ids])
        states = opened.model.model(**batch, **opened.encoder.shared_images(opened.model, [prompt])).last_hidden_state
        scores = torch.log_softmax(opened.model.lm_head(states[0, -len(ids) - 1 : -1]).double(), -1)
    return scores[range(len(ids)), list(ids)].numpy()


@both
def test_aborted_requests_leave_a_batch_whose_last_tokens_are_read(tiny, requests_, monkeypatch):
    rows, steps = [], _transformers_stream.steps

    def counted(*arguments):
        for step in steps(*arguments):
            rows.append(len(step.at))
            yield step

    monkeypatch.setattr(_transformers_stream, "steps", counted)
    opened = tiny.open()
    nothing = SimpleNamespace(layers=lambda n_layers: [], read=lambda rows, *_: [None] * len(rows))
    stream = TransformersStream(opened, 4, nothing)
    for name, request in zip("abcd", requests_, strict=False):
        decoding = GREEDY.model_copy(update={"max_completion_tokens": 2 if name == "a" else 12})
        prompt = request.encoded(opened.encoder)
        stream.add(EncodedRequest(name=name, prompt=prompt, decoding=decoding, watched=True))
    events = [event for _ in range(5) for event in stream.step()]
    for name in ("b", "c", "c", "unknown"):
        stream.abort(name)
    assert stream.n_open == 1
    while stream.n_open:
        events += stream.step()
    assert [event.name for event in events if hasattr(event, "completion")] == ["a", "d"]
    # Step 6 is computed for all; then 1 of 4 goes on. The last of 12 tokens is read in step 13.
    assert rows == [4] * 6 + [1] * 7
