import numpy as np
import pytest
import torch
from tests.architectures import second_in_rest
from tests.tiny import image

from dualread.schema.backbones import Pretraining
from dualread.training.corpora import Corpus, Item, Subject
from dualread.training.pretraining.exercises import Exercise
from dualread.training.pretraining.loop import (
    Muon,
    _backward,
    _target,
    groups_of_similar_length,
    pretrain,
    tokenizer_texts,
)


def corpus():
    items = [
        Item(
            question="Is this a CT scan?",
            answer="yes",
            wrong_answers=("no",),
            options=(),
            findings="axial ct",
            evidence="ct",
            difficulty=0.1,
        )
    ]
    subjects = [Subject(views=[image(i)], items=items) for i in range(4)]
    return Corpus(training=subjects, held_out=subjects[:1])


SETTINGS = Pretraining(
    steps=8,
    images_per_step=2,
    questions_per_image=2,
    learning_rate=3e-3,
    warmup_steps=2,
    weight_decay=0.05,
    clip_norm=1.0,
    mixture={"shared": 0.7, "p_true": 0.3},
)


def test_loss_falls_and_a_seed_reproduces_the_weights_bit_for_bit(tiny):
    def run(seed):
        model, encoder = tiny.load()
        log = pretrain(model, encoder, corpus(), SETTINGS, seed)
        return [row["value"] for row in log if row["name"] == "loss"], model.state_dict()

    (losses, weights), (_, again), (_, other) = run(0), run(0), run(1)
    assert losses[-1] < losses[0]
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    assert any(not torch.equal(weights[name], other[name]) for name in weights)


def test_a_token_that_straddles_two_parts_takes_the_larger_weight(tiny):
    _, encoder = tiny.load()
    made = Exercise(prompt="", parts=(("<answer>", 1.0), ("upper left", 3.0), ("</answer>", 1.0)))
    ids, weights = _target(encoder.tokenizer, made)
    assert ids[-1] == encoder.tokenizer.eos_token_id
    assert weights[-1] == 1.0
    pieces = [encoder.tokenizer.decode([i]) for i in ids[:-1]]
    ends = np.cumsum([len(piece) for piece in pieces])
    for piece, end, weight in zip(pieces, ends, weights, strict=False):
        overlaps = end - len(piece) < len("<answer>upper left") and end > len("<answer>")
        assert weight == (3.0 if overlaps else 1.0), piece


def test_the_tokenizer_learns_from_questions_and_completions():
    texts = tokenizer_texts(corpus(), 0)
    assert "Is this a CT scan?" in texts
    assert any(text.startswith("<vision>") for text in texts)


def test_rows_of_one_pass_differ_by_a_quarter_at_most():
    """In order 40, 41, 50 | 51, 60 | 90: a pass ends before 51 > 1.25 * 40, and before 90 > 1.25 * 51."""
    assert groups_of_similar_length([60, 40, 90, 41, 50, 51]) == [[1, 3, 4], [5, 0], [2]]


@second_in_rest
def test_the_gradient_is_that_of_single_rows(tiny):
    """Reference: one row at a time, without padding; the mean is over the weights of all rows."""
    model, encoder = tiny.load()
    questions = ["Is this a CT scan?", "What is the size of the lesion? " * 4]
    prompts = [encoder.prompt(q, images=[image(i % 2)], row=q) for i, q in enumerate([*questions, questions[0]])]
    targets = [([40, 41, 42], [1.0, 0.0, 3.0]), ([43, 44], [0.3, 1.0]), ([45], [2.0])]
    mean = _backward(model, encoder, prompts, targets)
    fast = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    total = 0.0
    for prompt, (ids, weights) in zip(prompts, targets, strict=True):
        batch = encoder.batch([prompt], [ids])
        states = model.model(**batch, **encoder.shared_images(model, [prompt])).last_hidden_state
        log_probs = torch.log_softmax(model.lm_head(states[0, -len(ids) - 1 : -1]), -1)[range(len(ids)), ids]
        loss = -(log_probs * torch.tensor(weights)).sum() / 7.3  # the sum of all weights
        loss.backward()
        total += loss.item()
    np.testing.assert_allclose(mean, total, rtol=1e-5)
    for name, p in model.named_parameters():
        if p.grad is not None:
            np.testing.assert_allclose(fast[name], p.grad, atol=1e-4, rtol=1e-3)


def drawn(seed, shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def updates(optimizer_class, shape, **settings):
    """Return the change of a matrix in each of five steps, with gradients that resemble one another."""
    matrix = torch.nn.Parameter(drawn(0, shape))
    optimizer = optimizer_class([{"params": [matrix], "lr": 0.02, "momentum": 0.8, "weight_decay": 0.3}], **settings)
    changes = []
    for step in range(5):
        before = matrix.detach().clone()
        matrix.grad = drawn(1, shape) + drawn(2 + step, shape) / 2
        optimizer.param_groups[0]["lr"] *= 0.9
        optimizer.step()
        changes.append(matrix.detach() - before)
    return torch.stack(changes)


@pytest.mark.parametrize("shape", [(16, 48), (48, 16), (32, 32)])
def test_it_is_torchs_muon_without_the_rounding_of_bfloat16(shape):
    ours = updates(Muon, shape, defaults={})
    torchs = updates(torch.optim.Muon, shape, adjust_lr_fn="match_rms_adamw")
    assert (ours - torchs).norm() < 0.02 * torchs.norm()
    # The bound can tell updates apart: those of one step and of the next differ by more.
    assert (ours[1:] - torchs[:-1]).norm() > 0.1 * torchs.norm()


@pytest.mark.parametrize("gradient", [None, torch.zeros(3, 4)])
def test_a_matrix_with_no_gradient_or_one_of_zeros_stays(gradient):
    unused, used = (torch.nn.Parameter(torch.ones(3, 4)) for _ in range(2))
    unused.grad, used.grad = gradient, torch.ones(3, 4)
    Muon([{"params": [unused, used], "lr": 0.1, "momentum": 0.8, "weight_decay": 0.0}], {}).step()
    assert torch.equal(unused, torch.ones(3, 4))
    assert not torch.equal(used, torch.ones(3, 4))
