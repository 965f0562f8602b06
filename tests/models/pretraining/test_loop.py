import numpy as np
import torch
from tests.tiny import image

from dualread.models.corpora.base import Corpus, Item, Subject
from dualread.models.pretraining.exercises import Exercise
from dualread.models.pretraining.loop import _target, pretrain, report, tokenizer_texts
from dualread.specs.actors import Pretraining


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


def test_the_report_has_a_share_for_every_prompt(tiny):
    model, encoder = tiny.load()
    rows = report(model, encoder, corpus(), step=8, questions=4, max_completion_tokens=4, seed=0)
    valid = {row["name"]: row["value"] for row in rows if row["name"].startswith("valid/")}
    assert len(valid) == 8
    assert all(0 <= share <= 1 for share in valid.values())


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
