import numpy as np
import pytest
import torch

from dualread.generation._interface import Decoding, Request
from dualread.generation.transformers_engine import open_engine
from dualread.replay.forward import replay_batch
from tiny import MODEL, image

GREEDY = Decoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=12, seed=0)


@pytest.fixture
def requests_(tmp_path):
    paths = []
    for seed in range(2):
        image(seed).save(path := tmp_path / f"{seed}.png")
        paths.append(path)
    questions = ["Is this a CT scan?", "What is the size of the lesion?", "Where?", "Where is it? " * 3, "Why?"]
    return [
        Request(text=question, image=paths[i % 2], image_key=str(i % 2), row=f"row {i}")
        for i, question in enumerate(questions)
    ]


def engine(tiny, batch_size=2):
    return open_engine(tiny.checkpoint, tiny.backbone, MODEL, {"batch_size": batch_size})


def test_greedy_against_a_literal_loop(tiny, requests_):
    """One row at a time, one whole forward pass a token, no cache; forbidden ids never chosen."""
    opened = engine(tiny)
    results = opened.generate(requests_, GREEDY)
    model, encoder = opened.model, opened.encoder
    for request, [completion] in zip(requests_, results, strict=True):
        prompt = encoder.prompt(request.text, image_key=request.image_key, image=request.image, row=request.row)
        tokens, log_probs = [], []
        while len(tokens) < 12 and (not tokens or tokens[-1] not in opened.stop):
            with torch.inference_mode():
                states = model.model(
                    **encoder.batch([prompt], [tokens]), **encoder.shared_images(model, [prompt])
                ).last_hidden_state
                scores = torch.log_softmax(model.lm_head(states[0, -1]).float(), -1)
            allowed = scores.clone()
            allowed[opened.forbidden] = -torch.inf
            tokens.append(int(allowed.argmax()))
            log_probs.append(float(scores[tokens[-1]]))
        assert list(completion.token_ids) == tokens
        np.testing.assert_allclose(completion.token_log_probs, log_probs, atol=1e-4)
        assert list(completion.prompt_token_ids) == list(prompt.token_ids)
        assert completion.finish_reason == ("stop" if tokens[-1] in opened.stop else "length")


def test_the_replay_reproduces_the_generation(tiny, requests_):
    opened = engine(tiny)
    completions = [c for [c] in opened.generate(requests_, GREEDY)]
    prompts = [opened.encoder.prompt(r.text, image_key=r.image_key, image=r.image, row=r.row) for r in requests_]
    replayed = replay_batch(
        opened.model,
        opened.encoder,
        prompts,
        [c.token_ids for c in completions],
        kappa=0.1,
        stop=opened.stop,
        forbidden=opened.forbidden,
    )
    for completion, got in zip(completions, replayed, strict=True):
        np.testing.assert_allclose(got.token_log_probs, completion.token_log_probs, atol=1e-4)
        assert got.argmax_gap.max() < 1e-4


def test_results_come_in_the_order_of_the_requests_and_repeat_bit_for_bit(tiny, requests_):
    first, again = engine(tiny).generate(requests_, GREEDY), engine(tiny).generate(requests_, GREEDY)
    assert first == again
    alone = engine(tiny).generate(requests_[2:3], GREEDY)
    assert alone[0][0].token_ids == first[2][0].token_ids


def test_samples_follow_the_seed_and_never_hold_forbidden_ids(tiny, requests_):
    opened = engine(tiny)

    def sampled(seed):
        decoding = Decoding(temperature=1.0, top_p=1.0, n_samples=4, max_completion_tokens=12, seed=seed)
        return opened.generate(requests_, decoding)

    first, again, other = sampled(1), sampled(1), sampled(2)
    assert first == again != other
    assert {len(completions) for completions in first} == {4}
    ids = {token for completions in first for c in completions for token in c.token_ids}
    assert not ids & set(opened.forbidden)


def test_log_probs_are_raw_whatever_the_temperature(tiny, requests_):
    """Temperature and barred ids change what is chosen, not the log-probability that is kept of it."""
    opened = engine(tiny)
    decoding = Decoding(temperature=2.0, top_p=0.9, n_samples=1, max_completion_tokens=12, seed=5)
    completions = [c for [c] in opened.generate(requests_, decoding)]
    prompts = [opened.encoder.prompt(r.text, image_key=r.image_key, image=r.image, row=r.row) for r in requests_]
    replayed = replay_batch(
        opened.model, opened.encoder, prompts, [c.token_ids for c in completions], kappa=0.1, stop=set(), forbidden=[]
    )
    for completion, got in zip(completions, replayed, strict=True):
        np.testing.assert_allclose(got.token_log_probs, completion.token_log_probs, atol=1e-4)
