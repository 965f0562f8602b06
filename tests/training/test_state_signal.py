"""The head of a state signal: what it learns, and what it teaches the actor, beside plain transformers and autograd."""

import types
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.architectures import second_in_rest
from tests.readers import synthetic
from tests.training.conftest import with_completion
from tests.training.test_loss import largest_difference
from tests.training.test_resume import Killed, dying
from torch.nn.functional import binary_cross_entropy_with_logits

from dualread.data.images import open_image
from dualread.errors import ConfigError
from dualread.models.actor import ReadSpec
from dualread.models.backbones.checkpoint import Opened, load
from dualread.models.backbones.processor import load_processor
from dualread.models.replay.forward import replay_batch
from dualread.readers import state_head
from dualread.readers.base import FittedReader, score
from dualread.readers.state_head import HEAD_FILE
from dualread.training import grpo, state_signal, trainer
from dualread.training.rewards import rlvr
from dualread.training.rewards import state_signal as reward_of_states
from dualread.training.trainer import SECONDS

RIGHT = [1.0, 1.0, 0.0, 0.0]  # of ANSWERS, of which the first two are yes
REWARDS = [1.0, 0.5, -0.5, 0.25]
WEIGHT, RATE = 0.5, 0.01
HEAD = {"weight": WEIGHT, "head_learning_rate": RATE}


def states_of(job, completions, step):
    """Return the model, the prompt, and h_pre and h_close of each completion [n, 2, D], read alone by transformers."""
    model = load(job.checkpoint, job.model)
    opened = Opened.of(model, load_processor(job.checkpoint, job.model), job.model, job.facts)
    encoder = opened.encoder
    question = job.questions[trainer.training_order(3, steps=2, prompts_per_step=1, seed=job.seed)[step]]
    images = [open_image(job.images / file) for file in question.image_files]
    inputs = encoder.inputs(question.text, images)
    n, pairs = inputs["input_ids"].shape[1], []
    for ids in completions:
        ends = next(t for t in range(len(ids)) if "</answer>" in encoder.decode(ids[: t + 1]))
        hidden = model(**with_completion(inputs, ids), use_cache=False, output_hidden_states=True).hidden_states[-1][0]
        pairs.append(hidden[[n - 1, n + ends]])
    return opened, encoder.prompt(question.text, images=images, row="0"), torch.stack(pairs)


def of_formula(job, completions):
    """Return the head after each of two steps, and the gradient that its loss has for the actor in the second one.

    The actor has the weights of its checkpoint in both steps.
    """
    heads, z = [], torch.tensor(RIGHT)[:, None].expand(-1, 2)
    width = load(job.checkpoint, job.model).config.get_text_config().hidden_size
    weight, bias = (torch.zeros(*size, requires_grad=True) for size in ((2, width), (2,)))
    adam = torch.optim.Adam([weight, bias], lr=RATE)
    for step in range(2):
        opened, _, states = states_of(job, completions, step)
        log_odds = torch.stack([states[:, k] @ weight[k] + bias[k] for k in range(2)], dim=1)
        adam.zero_grad()
        (WEIGHT * binary_cross_entropy_with_logits(log_odds, z)).backward()
        gradient = {name: tensor.grad for name, tensor in opened.model.named_parameters() if tensor.grad is not None}
        adam.step()
        heads.append({"weight": weight.detach().clone(), "bias": bias.detach().clone()})
    return heads, gradient


@second_in_rest
def test_the_head_and_what_it_teaches_follow_plain_autograd(answered, steps):
    make, ids = answered
    read = []

    def reward(found, *, state_confidence=None, **columns):
        read.append(state_confidence)
        return REWARDS

    rewards = types.SimpleNamespace(CONTRACT="single", reward=reward, READS_STATE_CONFIDENCE=True)
    # Steps that are too small to move the actor, and a gradient that is not clipped, in two passes.
    how = {"reward": rewards, "learning_rate": 1e-12, "clip_norm": 1e9, "completions_per_pass": 2}
    grpo.train(plain := make("plain", **how))
    completions = [before + block for before, block in ids]
    heads, expected = of_formula(plain, completions)
    first, second = (gradient for _, gradient in steps)
    for detach in (False, True):
        steps.clear()
        log = state_signal.train(make("actor", detach=detach, **HEAD, **how))
        saved = load_file(plain.out.with_name(HEAD_FILE))
        assert max(float((saved[name] - heads[1][name]).abs().max()) for name in saved) < 1e-5
        assert next(row["value"] for row in log if row["name"] == "terms/state_loss/mean") == pytest.approx(0.693147)
        assert largest_difference(steps[0][1], first) == 0.0  # the head is still zero
        taught = {name: gradient - second[name] for name, gradient in steps[1][1].items()}
        if detach:
            assert all(not tensor.any() for tensor in taught.values())
        else:
            assert max(float(tensor.abs().max()) for tensor in taught.values()) > 1e-3
            padded = {name: expected.get(name, torch.zeros_like(tensor)) for name, tensor in taught.items()}
            assert largest_difference(taught, padded) < 1e-5
        opened, prompt, states = states_of(plain, completions, 1)
        log_odds = (states * heads[0]["weight"]).sum(dim=-1) + heads[0]["bias"]
        assert read[-1] == pytest.approx(log_odds.mean(dim=1).sigmoid().tolist(), abs=1e-5)

    # The reader scores the replay with the head as it was saved.
    replayed = replay_batch(opened, [prompt] * 4, completions, ReadSpec(kappa=0.1))
    tensors = {name: np.stack([row.vectors[name] for row in replayed]) for name in state_head.FEATURES}
    answers = replace(synthetic.examples(4).answers, source=tensors.get)
    reader = FittedReader(module="readers.state_head", settings=None, weights=state_head.weights_of(plain.out.parent))
    log_odds = (states * saved["weight"]).sum(dim=-1) + saved["bias"]
    assert score(reader, answers).confidence == pytest.approx(log_odds.mean(dim=1).sigmoid().tolist(), abs=1e-5)


@pytest.mark.parametrize("tiny", ["qwen3_vl"], indirect=True)
def test_without_a_weight_and_with_a_detached_head_the_actor_is_that_of_grpo(job, tmp_path):
    weights = {}
    for name, algorithm, settings in (
        ("plain", grpo, {}),
        ("none", state_signal, {"weight": 0}),
        ("detached", state_signal, {"detach": True, **HEAD}),
        ("trained", state_signal, HEAD),
    ):
        algorithm.train(made := job(name, learning_rate=0.01, warmup_fraction=0.0, **settings))
        weights[name] = {path.name: path.read_bytes() for path in made.out.iterdir()}
        assert (tmp_path / HEAD_FILE).exists() == (name in ("detached", "trained"))
    assert weights["none"] == weights["plain"]
    assert weights["detached"] == weights["plain"]
    assert weights["trained"] != weights["plain"]


@pytest.mark.rest
@pytest.mark.parametrize("tiny", ["qwen3_vl"], indirect=True)
def test_a_resumed_training_has_the_head_of_one_that_was_not_killed(job, tmp_path):
    def made(name, reward=reward_of_states, **changes):
        return job(name, reward=reward, steps=4, warmup_fraction=0.0, **HEAD, **changes)

    def result(log, name):
        files = (tmp_path / name / "model.safetensors", tmp_path / HEAD_FILE)
        return [row for row in log if row["name"] != SECONDS], [path.read_bytes() for path in files]

    straight = result(state_signal.train(made("straight")), "straight")
    (folder := tmp_path / "kept").mkdir()
    kept = {"checkpoints": folder, "save_every": 1}
    with pytest.raises(Killed):
        state_signal.train(made("killed", dying(reward_of_states, 2), **kept))
    (tmp_path / HEAD_FILE).unlink()
    assert result(state_signal.train(made("resumed", **kept)), "resumed") == straight


@pytest.mark.parametrize(
    ("algorithm", "reward", "settings", "message"),
    [
        (state_signal, rlvr, {"weight": 0.1}, "no head_learning_rate"),
        (state_signal, reward_of_states, {"weight": 0}, "leaves out the head"),
        (grpo, reward_of_states, {}, "gives no state_confidence"),
    ],
)
@pytest.mark.parametrize("tiny", ["qwen3_vl"], indirect=True)
def test_a_head_that_is_missing_is_named(job, algorithm, reward, settings, message):
    with pytest.raises(ConfigError, match=message):
        algorithm.train(job("refused", reward=reward, **settings))
