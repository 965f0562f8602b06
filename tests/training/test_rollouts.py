"""Completions of a training step: in pieces of any size, the same ids per row."""

import numpy as np
import pytest
import torch
from tests.architectures import second_in_rest
from tests.tiny import MODEL, image

from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.seeding import generator
from dualread.training import _grpo_trainer, _rollouts, dcpo, vl_calibration
from dualread.training._reference import for_sampling
from dualread.training._rollouts import roll_out
from dualread.training.rewards import dcpo as dcpo_reward
from dualread.training.rewards import vl_calibration as vl_calibration_reward

QUESTIONS = ["Is this a CT scan?", "What is the size of the lesion?", "Where is it, where is it, where is it?"]


@pytest.fixture
def opened(tiny):
    return open_checkpoint(tiny.checkpoint, MODEL)


@pytest.fixture
def rows(opened):
    """The prompts of three questions with two completions each."""
    return [opened.encoder.prompt(QUESTIONS[i], images=[image(i)], row=str(i)) for i in (0, 0, 1, 1, 2, 2)]


@pytest.fixture
def sizes(monkeypatch):
    """The number of completions of each generation."""
    found, complete = [], _rollouts.complete

    def counted(opened, requests):
        found.append((len(requests), sum(one.decoding.n_samples for one in requests)))
        return complete(opened, requests)

    monkeypatch.setattr(_rollouts, "complete", counted)
    return found


def sampled(opened, rows, job, *, step=0, first=0):
    with for_sampling(opened.model):
        return roll_out(opened, rows, job, step=step, first=first)


def test_a_piece_is_at_most_completions_per_pass_and_reads_each_prompt_once(opened, rows, job, sizes):
    sampled(opened, rows, job("", completions_per_pass=4))
    assert sizes == [(2, 4), (1, 2)]  # (prompts, completions)


@pytest.mark.parametrize(("size", "pieces"), [(5, [5, 1]), (100, [6])])
def test_rollouts_per_pass_goes_before_completions_per_pass(opened, rows, job, sizes, size, pieces):
    whole = sampled(opened, rows, job("", completions_per_pass=2))
    assert [n for _, n in sizes] == [2, 2, 2]
    sizes.clear()
    assert sampled(opened, rows, job("", completions_per_pass=2, rollouts_per_pass=size)) == whole
    assert [n for _, n in sizes] == pieces


def test_every_process_draws_what_one_process_would_draw(opened, rows, job):
    whole = sampled(opened, rows, job(""), step=3)
    split = [sampled(opened, rows[k : k + 3], job(""), step=3, first=k) for k in (0, 3)]
    assert [*split[0], *split[1]] == whole
    assert sampled(opened, rows, job(""), step=4) != whole
    assert sampled(opened, rows, job("", seed=2), step=3) != whole


@second_in_rest
@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_against_a_literal_loop(opened, rows, job, top_p):
    """Reference: one row at a time, one full forward pass per token, no cache, the distribution as numpy arrays."""
    made = sampled(opened, rows, job("", temperature=0.8, top_p=top_p))
    for i, (prompt, ids) in enumerate(zip(rows, made, strict=True)):
        uniform, tokens = generator("rollout", 1, 0, i).random(8), []
        while len(tokens) < 8 and (not tokens or tokens[-1] not in opened.encoder.stop):
            with torch.inference_mode():
                states = opened.model.model(
                    **opened.encoder.batch([prompt], [tokens]), **opened.encoder.shared_images(opened.model, [prompt])
                ).last_hidden_state
                logits = opened.model.lm_head(states[0, -1]).double().numpy() / 0.8
            logits[list(opened.encoder.forbidden)] = -np.inf
            p = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
            order = np.argsort(-p, kind="stable")
            p[order[np.cumsum(p[order]) - p[order] >= top_p]] = 0
            tokens.append(int(np.argmax(np.cumsum(p) > uniform[len(tokens)] * p.sum())))
        assert ids == tokens


def test_no_forbidden_id_is_sampled(opened, rows, job):
    with torch.no_grad():  # otherwise an untrained model hardly ever samples one
        opened.model.lm_head.weight[list(opened.encoder.forbidden)] *= 100
    assert not {token for ids in sampled(opened, rows, job("")) for token in ids} & set(opened.encoder.forbidden)


def test_activations_that_are_computed_again_do_not_change_the_rollouts(opened, rows, job):
    plain = sampled(opened, rows, job(""))
    opened.model.train()
    opened.model.activation_checkpointing_enable()
    assert sampled(opened, rows, job("")) == plain
    assert opened.model.training


@pytest.mark.parametrize(
    ("algorithm", "reward", "settings"),
    [
        (dcpo, dcpo_reward, {"gamma": 0.5, "kl_coefficient": 1e-3}),
        (vl_calibration, vl_calibration_reward, {"patch_pixels": 14}),
    ],
    ids=["dcpo", "vl_calibration"],
)
def test_every_algorithm_generates_in_pieces_with_the_same_ids(job, algorithm, reward, settings, sizes, calls):
    rollouts = calls(_grpo_trainer, "roll_out")

    def run(size, **other):
        rollouts.clear()
        sizes.clear()
        changes = {"prompts_per_step": 3, "completions_per_pass": size, **other, **settings}
        algorithm.train(job(f"pieces of {size}", reward=reward, **changes))
        assert {n for _, n in sizes} == {other.get("rollouts_per_pass", size)}
        return [call.result for call in rollouts]

    whole = run(6)
    assert len(whole) == 2
    # The second step starts from weights whose gradient was summed in another order: equal but for the last bits.
    assert run(1, rollouts_per_pass=2) == whole
