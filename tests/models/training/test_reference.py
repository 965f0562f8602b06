"""A training ends in its first step if its log-probabilities are not those of the plain model."""

import numpy as np
import pytest
from tests.tiny import image

from dualread.errors import TrainingError
from dualread.models.backbones.encode import Encoder
from dualread.models.training._reference import FLOAT32, RATIO, Reference, check
from dualread.models.training.grpo import train


def of(*values):
    return np.array(values, dtype=float)


def test_the_bound_is_rounding_by_hand():
    # rounding (.1 + .3) / 2 = .2 nats, so that a mean difference of FLOAT32 + RATIO * .2 is accepted
    reference = Reference(exact=of(-1.0, -2.0), rounded=of(-1.1, -2.3))
    check([(of(-1.0, -2.0 - 2 * RATIO * 0.2), reference)])
    with pytest.raises(TrainingError, match=r"by 0\.61 nats on average over 2 tokens of 1 completions"):
        check([(of(-1.0, -2.0 - 2 * RATIO * 0.2 - 0.02), reference)])
    exact = Reference(exact=of(-1.0), rounded=of(-1.0))
    check([(of(-1.0 - 0.9 * FLOAT32), exact)])
    for wrong in (-1.0 - 1.1 * FLOAT32, np.nan, -np.inf):
        with pytest.raises(TrainingError):
            check([(of(wrong), exact)])


def test_a_second_bos_is_not_trained_with(tiny):
    """Released tokenizers of Gemma add BOS, and so do their chat templates: what trl 1.16 encodes twice is longer."""
    _, encoder = tiny.load()
    tokenizer = encoder.processor.tokenizer
    prompt = encoder.prompt("Where?", image=image(0), row="1")
    assert prompt.token_ids.count(tokenizer.bos_token_id) == (tokenizer.bos_token_id is not None)
    added = tokenizer(tokenizer.bos_token or "")["input_ids"]
    assert len(added) == 2 * (tokenizer.bos_token_id is not None)


def _without(types):
    return {name: 0 * values for name, values in types.items()}


def _shifted(types):
    return {name: values.roll(1, dims=1) for name, values in types.items()}


@pytest.mark.parametrize("wrong", [_without, _shifted])
def test_wrong_token_types_end_the_training(job, monkeypatch, wrong):
    right = Encoder.token_types
    monkeypatch.setattr(Encoder, "token_types", lambda self, ids, width: wrong(right(self, ids, width)))
    monkeypatch.setattr("dualread.models.training.trainer.roll_out", _made_without_a_model)
    with pytest.raises(TrainingError, match=r"^training: the trainer's log-probabilities differ .* by [\d.e-]+ nats"):
        train(job("actor"))


def test_another_image_ends_the_training(job, monkeypatch):
    from trl.trainer.grpo_trainer import GRPOTrainer

    right = GRPOTrainer._get_per_token_logps_and_entropies

    def swapped(self, *arguments, pixel_values, **named):
        return right(self, *arguments, pixel_values=pixel_values.flip(0), **named)

    monkeypatch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", swapped)
    with pytest.raises(TrainingError, match="differ from those of the plain model"):
        train(job("actor"))


def _made_without_a_model(opened, rows, expected, job, **_):
    return [[40 + i, 50, 60, 70] for i in range(len(rows))]
