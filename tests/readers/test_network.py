from functools import partial
from itertools import count
from math import nan

import numpy as np
import pytest

from dualread.progress import track
from dualread.readers import _network
from dualread.readers._network import _log_odds, cross_entropy, train
from dualread.readers.settings import NetworkSettings
from tests.readers import synthetic

SETTINGS = NetworkSettings(**{**synthetic.PSR, "max_epochs": 2, "batch_size": 16})


def partitions() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    given = synthetic.examples(120)
    return tuple((part.answers.features("h_pre"), part.correct) for part in map(given.partition, ("fit", "stop")))


def layers(seed: int = 5, *, settings=SETTINGS, **choices) -> dict[str, np.ndarray]:
    loss = cross_entropy(1.0)
    return train(*partitions(), settings, seed, **{"loss": loss, "stop_loss": loss, **choices})[0]


def bytes_of(tensors: dict[str, np.ndarray]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in tensors.items()}


def test_dropout_comes_from_the_readers_own_generator():
    import torch

    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, again = layers(dropout=0.5), layers(dropout=0.5)
    assert (torch.get_rng_state() == state).all()
    assert bytes_of(first) == bytes_of(again)
    assert bytes_of(first) != bytes_of(layers())


def test_dropout_keeps_the_expectation_of_a_unit():
    import torch

    # 10,000 units of value 1, averaged; kept with probability .75 they count 1 / .75. The standard error is .0058.
    n = 10_000
    ones, zeros = torch.ones(n, 1), torch.zeros(n)
    parameters = [ones, zeros, torch.full((1, n), 1 / n), torch.zeros(1)]
    found = _log_odds(torch.ones(1, 1), parameters, 0.25, torch.Generator().manual_seed(0))
    assert float(found) == pytest.approx(1.0, abs=0.02)


def test_the_stop_loss_is_without_dropout():
    fitted, (x, correct) = partitions()
    loss = cross_entropy(1.0)
    tensors, notes = train(fitted, (x, correct), SETTINGS, 5, loss=loss, stop_loss=loss, dropout=0.5)
    for layer in range(3):
        x = (x if layer == 0 else np.maximum(x, 0)) @ tensors[f"weight_{layer}"].T + tensors[f"bias_{layer}"]
    literal = np.mean(np.logaddexp(0, np.where(correct, -x[:, 0], x[:, 0])))
    assert notes["stop_loss"] == pytest.approx(literal, abs=1e-5)


@pytest.mark.parametrize(
    ("patience", "losses", "epochs_run", "restored"),
    [
        (2, [3, 2, 2, 1, 1, 1, 0], 6, 4),  # of equal losses the first; 2 epochs after epoch 4 without a lower one
        (3, [1, 2, 2, 2, 0], 4, 1),  # the 0 would come too late
        (9, [4, 5, 3, 6], 4, 3),  # there are no more epochs
        (2, [nan, 2, nan, nan, 1], 4, 2),  # NaN is not lower
    ],
)
def test_early_stopping_by_hand(patience, losses, epochs_run, restored):
    changed = SETTINGS.model_copy(update={"max_epochs": len(losses), "patience": patience})
    loss, given = cross_entropy(1.0), iter(losses)
    tensors, notes = train(*partitions(), changed, 5, loss=loss, stop_loss=lambda log_odds, correct: next(given))
    assert notes == {"epochs_run": epochs_run, "epoch_restored": restored, "stop_loss": losses[restored - 1]}
    # The weights are those at the end of that epoch: those of a training that ends there, and falls until then.
    until, falling = SETTINGS.model_copy(update={"max_epochs": restored, "patience": 9}), count(0, -1)
    there = layers(settings=until, stop_loss=lambda log_odds, correct: next(falling))
    assert bytes_of(tensors) == bytes_of(there)


def test_a_long_fit_says_how_long_it_may_still_take(monkeypatch, capsys):
    monkeypatch.setattr(_network, "track", partial(track, interval_seconds=0.0))
    layers()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"fitting (epochs at most): {k}/2" for k in (1, 2)]
    assert all(line.endswith(" left") for line in lines)


def test_every_epoch_reads_every_answer_once_in_batches_of_which_the_last_may_be_short():
    fitted, stop = partitions()
    seen = []

    def loss(log_odds, labels):
        seen.append(len(labels))
        return cross_entropy(1.0)(log_odds, labels)

    train(fitted, stop, SETTINGS, 5, loss=loss, stop_loss=cross_entropy(1.0))
    whole, rest = divmod(len(fitted[0]), 16)
    assert rest > 0
    assert seen == 2 * [*whole * [16], rest]


def linear_step(clip_norm: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, gradient and end (weights, then the bias) of one Adam step on a network without hidden layers."""
    (x, correct), stop = partitions()
    settings = SETTINGS.model_copy(update={"hidden": [], "max_epochs": 1, "batch_size": len(x), "weight_decay": 0.0})

    def after(learning_rate: float) -> np.ndarray:
        loss = cross_entropy(1.0)
        changed = settings.model_copy(update={"learning_rate": learning_rate})
        choices = {"loss": loss, "stop_loss": loss, "optimizer": "Adam", "clip_norm": clip_norm}
        tensors = train((x, correct), stop, changed, 5, **choices)[0]
        return np.append(tensors["weight_0"][0], tensors["bias_0"]).astype(np.float64)

    start = after(1e-30)
    inputs = np.column_stack([x.astype(np.float64), np.ones(len(x))])
    gradient = inputs.T @ (1 / (1 + np.exp(-inputs @ start)) - correct) / len(x)
    return start, gradient, after(1e-3)


@pytest.mark.parametrize("clip_norm", [float("inf"), 1e-8])
def test_a_step_by_hand(clip_norm):
    start, gradient, end = linear_step(clip_norm)
    bound = (len(start) - 1) ** -0.5  # weights and bias are uniform below 1 / sqrt(inputs)
    assert 0.8 * bound < np.abs(start).max() <= bound
    # Adam's first step is learning_rate * g / (|g| + 1e-8), with g shortened to the norm `clip_norm`.
    clipped = gradient * min(1.0, clip_norm / np.linalg.norm(gradient))
    np.testing.assert_allclose(end - start, -1e-3 * clipped / (np.abs(clipped) + 1e-8), atol=1e-6)


def test_two_sights_of_an_answer_are_read_by_one_network():
    (x, correct), stop = partitions()
    twice = np.stack([x, x], axis=1)
    loss = cross_entropy(1.0)
    both = train((twice, correct), stop, SETTINGS, 5, loss=lambda odds, z: loss(odds[:, 1], z), stop_loss=loss)[0]
    for name, array in layers().items():
        np.testing.assert_allclose(both[name], array, atol=1e-5)
