"""What two steps of GRPO learn, computed in two other ways: by the formula row by row, and by TRL's own trainer.

The formula reads one row at a time with transformers alone. TRL's trainer is the class as it is, which tokenizes, pads,
and reads images in its own way. Both get the completions that our trainer got.
"""

import dataclasses
import types

import numpy as np
import pytest
import torch
from tests.architectures import second_in_rest
from tests.training.conftest import with_completion
from transformers import PrinterCallback
from trl.trainer.grpo_trainer import GRPOTrainer

from dualread.data.images import open_image
from dualread.models.backbones.checkpoint import Opened, load
from dualread.models.backbones.processor import load_processor
from dualread.training import _grpo_trainer, trainer
from dualread.training._arguments import arguments
from dualread.training.grpo import train

REWARDS = [1.0, 0.5, -0.5, 0.25]  # of the completions of `answered`, in each step
KL = 0.5
SETTINGS = {"completions_per_pass": 2, "kl_coefficient": KL, "learning_rate": 0.01}

REWARD = types.SimpleNamespace(CONTRACT="single", reward=lambda found, **_: REWARDS[: len(found)])


@pytest.fixture(params=[1, 2])
def several(answered, request):
    """A job whose questions show so many images, and the completions."""
    make, ids = answered
    made = make("actor", reward=REWARD, **SETTINGS)
    shown = ([f"{(i + k) % 3}.png" for k in range(request.param)] for i in range(3))
    questions = [dataclasses.replace(of, image_files=files) for of, files in zip(made.questions, shown, strict=True)]
    return dataclasses.replace(made, questions=questions), [before + block for before, block in ids]


def log_probs(model, inputs, ids):
    """Return the log-probabilities of the ids behind a prompt, with their gradient; one row, without padding."""
    logits = model(**with_completion(inputs, ids), use_cache=False).logits[0, -len(ids) - 1 : -1]
    return logits.log_softmax(dim=-1)[range(len(ids)), ids]


def gradient_of_formula(job, completions, weights, step, old=None):
    """Return the gradient, clipped to a norm of 1, of

    sum over the tokens of (max(-A p / p_old, -A clip(p / p_old)) + KL (p / p_old) (p_ref / p - log(p_ref / p) - 1)) / n

    with A = (reward - mean) / (sample deviation + 1e-4), and n as the type of the loss says. With the weights `old` the
    completions were drawn; without them, the policy is still that which sampled: p_old is p itself, and no ratio is
    clipped; it has a gradient all the same.
    """
    settings = job.settings
    model, reference, drawing = (load(job.checkpoint, job.model) for _ in range(3))
    model.load_state_dict({**model.state_dict(), **weights})
    drawing.load_state_dict({**drawing.state_dict(), **(weights if old is None else old)})
    encoder = Opened.of(model, load_processor(job.checkpoint, job.model), job.model, job.facts).encoder
    row = trainer.training_order(3, steps=2, prompts_per_step=1, seed=job.seed)[step // settings.num_iterations]
    question = job.questions[row]
    inputs = encoder.inputs(question.text, [open_image(job.images / file) for file in question.image_files])
    rewards = np.array(REWARDS)
    advantages = rewards - rewards.mean()
    if settings.scale_rewards == "group":
        advantages /= rewards.std(ddof=1) + 1e-4
    ends = load_processor(job.checkpoint, job.model).tokenizer.eos_token_id
    taught = [ids[-1] == ends or not settings.mask_truncated_completions for ids in completions]
    for ids, advantage, is_taught in zip(completions, advantages, taught, strict=True):
        if not is_taught:
            continue
        log_p = log_probs(model, inputs, ids)
        with torch.no_grad():
            log_ref, log_old = log_probs(reference, inputs, ids), log_probs(drawing, inputs, ids)
        ratio = (log_p - log_old).exp()
        clipped = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high)
        divergence = (log_ref - log_p).exp() - (log_ref - log_p) - 1
        loss = torch.maximum(-float(advantage) * ratio, -float(advantage) * clipped) + KL * ratio * divergence
        n = {
            "grpo": len(ids) * len(completions),
            "dapo": sum(len(of) for of, is_taught in zip(completions, taught, strict=True) if is_taught),
            "dr_grpo": len(completions) * settings.max_completion_tokens,
        }
        loss.sum().div(n[settings.loss_type]).backward()
    gradient = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    norm = float(sum(of.double().pow(2).sum() for of in gradient.values())) ** 0.5
    return {name: of / max(norm, 1.0) for name, of in gradient.items()}


def largest_difference(one, other):
    """Return the largest difference between two gradients of norm 1."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@second_in_rest
def test_both_steps_follow_the_gradient_of_the_formula(several, steps):
    job, completions = several
    train(job)
    assert len(steps) == 2
    for step, (weights, gradient) in enumerate(steps):
        expected = gradient_of_formula(job, completions, weights, step)
        assert largest_difference(gradient, expected) < 1e-5
    # In the first step the divergence is 0, and so is its gradient. In the second one neither is.


@pytest.mark.rest
@pytest.mark.parametrize(
    "variant",
    [
        {"loss_type": "dapo"},
        {"loss_type": "dr_grpo"},
        {"scale_rewards": "none"},
        {"num_iterations": 2},
        {"mask_truncated_completions": True},
    ],
    ids=lambda variant: next(iter(variant)),
)
@pytest.mark.parametrize("tiny", ["qwen3_vl"], indirect=True)
def test_variants_of_the_loss_follow_their_formulas(answered, steps, monkeypatch, variant):
    make, ids = answered
    completions = [before + block for before, block in ids]
    completions[2] = completions[2][:-1]  # as if it was cut
    monkeypatch.setattr(_grpo_trainer, "roll_out", lambda *_, **__: completions)
    job = make("actor", reward=REWARD, **{**SETTINGS, "learning_rate": 0.003}, **variant)
    log = train(job)
    assert [row["step"] for row in log if row["name"] == "gradient_norm"] == [1, 2]
    for step, (weights, gradient) in enumerate(steps):
        drawn_by = steps[step - step % job.settings.num_iterations][0]
        expected = gradient_of_formula(job, completions, weights, step, drawn_by)
        assert largest_difference(gradient, expected) < 1e-5
        plain = gradient_of_formula(
            dataclasses.replace(job, settings=make("plain").settings), completions, weights, step
        )
        assert largest_difference(gradient, plain) > 1e-3 or step < job.settings.num_iterations - 1


@pytest.mark.parametrize("tiny", ["qwen3_vl"], indirect=True)  # of Gemma 3, TRL itself shifts the token types
def test_trl_as_it_is_learns_the_same(several, steps, monkeypatch):
    assert_trl_learns_the_same(*several, steps, monkeypatch, REWARDS)


@pytest.mark.rest
@pytest.mark.parametrize(
    "variant",
    [
        *({"loss_type": loss} for loss in ("grpo", "dapo", "bnpo", "dr_grpo")),
        *({"scale_rewards": "batch", "loss_type": loss} for loss in ("grpo", "bnpo")),
        {"scale_rewards": "none", "loss_type": "dapo", "mask_truncated_completions": True},
        *(
            {"num_iterations": 2, "mask_truncated_completions": True, "loss_type": loss, "scale_rewards": scale}
            for loss, scale in (("grpo", "none"), ("dapo", "batch"), ("bnpo", "group"), ("dr_grpo", "batch"))
        ),
    ],
    ids=lambda variant: "-".join(map(str, variant.values())),
)
@pytest.mark.parametrize("tiny", ["qwen3_vl"], indirect=True)
def test_trl_as_it_is_learns_the_same_by_every_variant(answered, steps, monkeypatch, variant):
    make, ids = answered
    completions = [before + block for before, block in ids] * 2
    completions[2] = completions[2][:-1]  # as if it was cut
    monkeypatch.setattr(_grpo_trainer, "roll_out", lambda *_, **__: completions)
    rewards = [*REWARDS, 3.0, 0.0, 0.0, 1.0]  # two groups of other deviations than that of both
    reward = types.SimpleNamespace(CONTRACT="single", reward=lambda found, **_: rewards[: len(found)])
    job = make("actor", reward=reward, **{**SETTINGS, "learning_rate": 0.003}, **variant)
    job = dataclasses.replace(job, settings=job.settings.model_copy(update={"prompts_per_step": 2}))
    assert variant.items() <= vars(arguments(job)).items()  # by which TRL's trainer is told, too
    assert_trl_learns_the_same(job, completions, steps, monkeypatch, rewards)


def assert_trl_learns_the_same(job, completions, steps, monkeypatch, rewards):
    train(job)
    ours = list(steps)
    steps.clear()
    monkeypatch.setattr(GRPOTrainer, "_generate_single_turn", lambda self, *_, **__: (completions, None))
    n, rollouts = job.settings.prompts_per_step, 2 // job.settings.num_iterations
    order = trainer.training_order(3, steps=rollouts, prompts_per_step=n, seed=job.seed)
    plain = GRPOTrainer(
        model=load(job.checkpoint, job.model),
        reward_funcs=[lambda completions, **_: rewards[: len(completions)]],
        args=arguments(dataclasses.replace(job, scratch=job.scratch / "plain")),
        train_dataset=trainer._dataset(job.questions, job.references, job.images, order),
        processing_class=load_processor(job.checkpoint, job.model),
    )
    plain.remove_callback(PrinterCallback)
    plain.train()
    assert len(steps) == len(ours) == 2
    for (_, gradient), (_, expected) in zip(steps, ours, strict=True):
        assert largest_difference(gradient, expected) < 1e-5
