"""What two steps of GRPO learn, computed in two other ways: by the formula row by row, and by TRL's own trainer.

The formula reads one row at a time with transformers alone. TRL's trainer is the class as it is, which tokenizes, pads,
and reads images in its own way. Both get the completions that our trainer got.
"""

import dataclasses
import types

import numpy as np
import pytest
import torch
from tests.tiny import both
from transformers import PrinterCallback
from trl.trainer.grpo_trainer import GRPOTrainer

from dualread.data.images import open_image
from dualread.models.backbones.checkpoint import Opened, load
from dualread.models.backbones.processor import load_processor
from dualread.training import trainer
from dualread.training._arguments import arguments
from dualread.training.grpo import train

REWARDS = [1.0, 0.5, -0.5, 0.25]  # of the completions of `answered`, in each step
KL = 0.5
SETTINGS = {"completions_per_pass": 2, "kl_coefficient": KL, "learning_rate": 0.01}
COMPLETION_TYPE = 0  # the token type of a completion in both families


@pytest.fixture(params=[1, 2])
def job(answered, request):
    """A job whose questions show so many images, and the completions."""
    make, ids = answered
    reward = types.SimpleNamespace(CONTRACT="single", reward=lambda found, **_: REWARDS[: len(found)])
    made = make("actor", reward=reward, **SETTINGS)
    shown = ([f"{(i + k) % 3}.png" for k in range(request.param)] for i in range(3))
    questions = [dataclasses.replace(of, image_files=files) for of, files in zip(made.questions, shown, strict=True)]
    return dataclasses.replace(made, questions=questions), [before + block for before, block in ids]


@pytest.fixture
def steps(monkeypatch):
    """The weights before each step of AdamW, and the gradients that it gets, both by name."""
    found, model, step = [], [], torch.optim.AdamW.step
    read = GRPOTrainer.training_step

    def noted(self, *arguments):
        model[:] = [self.accelerator.unwrap_model(self.model)]
        return read(self, *arguments)

    def kept(self, *arguments, **named):
        of = dict(model[0].named_parameters())
        weights = {name: weight.detach().clone() for name, weight in of.items()}
        found.append((weights, {name: weight.grad.clone() for name, weight in of.items() if weight.grad is not None}))
        return step(self, *arguments, **named)

    monkeypatch.setattr(GRPOTrainer, "training_step", noted)
    monkeypatch.setattr(torch.optim.AdamW, "step", kept)
    return found


def log_probs(model, inputs, ids):
    """Return the log-probabilities of the ids behind a prompt, with their gradient; one row, without padding."""
    given = dict(inputs)
    for name, value in inputs.items():
        if value.shape == inputs["input_ids"].shape:
            after = ids if name == "input_ids" else [COMPLETION_TYPE] * len(ids)
            given[name] = torch.cat([value, torch.tensor([after], dtype=value.dtype)], dim=1)
    given["attention_mask"] = torch.ones_like(given["input_ids"])
    logits = model(**given, use_cache=False).logits[0, -len(ids) - 1 : -1]
    return logits.log_softmax(dim=-1)[range(len(ids)), ids]


def gradient_of_formula(job, completions, weights, step):
    """Return the gradient, clipped to a norm of 1, of

    mean over the completions of the mean over their tokens of (p / p_old) (-A + KL (p_ref / p - log(p_ref / p) - 1))

    with A = (reward - mean) / (sample deviation + 1e-4). The policy is still that which sampled: p_old is p itself, and
    no ratio is clipped; it has a gradient all the same.
    """
    model, reference = (load(job.checkpoint, job.model) for _ in range(2))
    model.load_state_dict({**model.state_dict(), **weights})
    encoder = Opened.of(model, load_processor(job.checkpoint, job.model), job.model, job.facts).encoder
    row = trainer.training_order(3, steps=2, prompts_per_step=1, seed=job.seed)[step]
    question = job.questions[row]
    inputs = encoder.inputs(question.text, [open_image(job.images / file) for file in question.image_files])
    rewards = np.array(REWARDS)
    advantages = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
    for ids, advantage in zip(completions, advantages, strict=True):
        log_p = log_probs(model, inputs, ids)
        with torch.no_grad():
            log_ref = log_probs(reference, inputs, ids)
        ratio = (log_p - log_p.detach()).exp()
        divergence = (log_ref - log_p).exp() - (log_ref - log_p) - 1
        (ratio * (-float(advantage) + KL * divergence)).mean().div(len(completions)).backward()
    gradient = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    norm = float(sum(of.double().pow(2).sum() for of in gradient.values())) ** 0.5
    return {name: of / max(norm, 1.0) for name, of in gradient.items()}


def largest_difference(one, other):
    """Return the largest difference between two gradients of norm 1."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@both
def test_both_steps_follow_the_gradient_of_the_formula(job, steps):
    job, completions = job
    train(job)
    assert len(steps) == 2
    for step, (weights, gradient) in enumerate(steps):
        expected = gradient_of_formula(job, completions, weights, step)
        assert largest_difference(gradient, expected) < 1e-5
    # In the first step the divergence is 0, and so is its gradient. In the second one neither is.


@pytest.mark.parametrize("tiny", ["qwen3_vl"], indirect=True)  # of Gemma 3, TRL itself shifts the token types
def test_trl_as_it_is_learns_the_same(job, steps, monkeypatch):
    job, completions = job
    train(job)
    ours = list(steps)
    steps.clear()
    monkeypatch.setattr(GRPOTrainer, "_generate_single_turn", lambda self, *_, **__: (completions, None))
    order = trainer.training_order(3, steps=2, prompts_per_step=1, seed=job.seed)
    plain = GRPOTrainer(
        model=load(job.checkpoint, job.model),
        reward_funcs=[lambda completions, **_: REWARDS[: len(completions)]],
        args=arguments(dataclasses.replace(job, scratch=job.scratch / "plain")),
        train_dataset=trainer._dataset(job.questions, job.references, job.images, order),
        processing_class=load_processor(job.checkpoint, job.model),
    )
    plain.remove_callback(PrinterCallback)
    plain.train()
    assert len(steps) == len(ours) == 2
    for (_, gradient), (_, expected) in zip(steps, ours, strict=True):
        assert largest_difference(gradient, expected) < 1e-5
