from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

from dualread.readers import bicr, psr
from dualread.readers._network import cross_entropy, pos_weight, train
from dualread.readers.base import Examples
from dualread.readers.linear import standardized
from tests.readers import synthetic
from tests.readers.test_network import bytes_of

# No gradient has a norm of 1e9.
PLAIN = MappingProxyType({"brier_weight": 0.0, "ranking_weight": 0.0, "dropout": 0.0, "clip_norm": 1e9})


def examples(n: int = 300, seed: int = 0) -> Examples:
    return synthetic.with_views(synthetic.examples(n, seed=seed), ("black",))


def fit(given: Examples, **changes):
    return bicr.fit(given, bicr.Settings(**{**synthetic.BICR, **changes}), {}, 17)


def loss(real, black, correct, *, weight=1.0, **changes) -> float:
    import torch

    settings = SimpleNamespace(**{"brier_weight": 0.0, "ranking_weight": 0.0, "margin": 0.0, **changes})
    log_odds = torch.tensor([real, black], dtype=torch.float64).T
    labels = torch.tensor(correct, dtype=torch.float64)
    return float(bicr.contrastive_loss(log_odds, labels, likelihood=cross_entropy(weight), settings=settings))


def test_the_loss_by_hand():
    # p_real = .75 (right), .25 (right), .75 (wrong), .5 (wrong); p_black = .25, .5, .1, .5
    real, black = np.log([3, 1 / 3, 3, 1]).tolist(), np.log([1 / 3, 1, 1 / 9, 1]).tolist()
    correct = [1.0, 1.0, 0.0, 0.0]
    # Cross-entropy with pos_weight 2: -(2 ln .75 + 2 ln .25 + ln .25 + ln .5) / 4
    likelihood = -(2 * np.log(0.75) + 3 * np.log(0.25) + np.log(0.5)) / 4
    assert loss(real, black, correct, weight=2.0) == pytest.approx(likelihood, abs=1e-6)
    # Brier: (.0625 + .5625 + .5625 + .25) / 4 = .359375
    assert loss(real, black, correct, weight=2.0, brier_weight=0.4) == pytest.approx(
        likelihood + 0.4 * 0.359375, abs=1e-6
    )
    # Ranking: relu(.6 - (.75 - .25)) = .1 and relu(.6 - (.25 - .5)) = .85, of the two correct answers: .95 / 2
    found = loss(real, black, correct, weight=2.0, ranking_weight=0.2, margin=0.6)
    assert found == pytest.approx(likelihood + 0.2 * 0.475, abs=1e-6)


def test_a_batch_without_correct_answers_has_no_ranking_loss():
    assert loss([0.0], [5.0], [0.0], ranking_weight=0.3, margin=0.2) == pytest.approx(np.log(2), abs=1e-6)


def test_some_units_are_kept():
    assert bicr.Settings(**{**synthetic.BICR, "dropout": 0.99}).dropout == 0.99
    with pytest.raises(ValueError, match="less than 1"):
        bicr.Settings(**{**synthetic.BICR, "dropout": 1.0})


def test_without_its_additions_it_is_psr():
    given = examples()
    expected = psr.fit(given, psr.Settings(**{**synthetic.PSR, "weight_decay": 0.0}), {}, 17)
    found = fit(given, **PLAIN, weight_decay=0.0)  # Adam and AdamW are one without weight decay
    for name, array in expected.tensors.items():
        np.testing.assert_allclose(found.tensors[name], array, atol=1e-3)
    assert found.notes["epoch_restored"] == expected.notes["epoch_restored"]


@pytest.mark.parametrize(
    "change", [{"brier_weight": 2.0}, {"margin": 0.9}, {"dropout": 0.5}, {"clip_norm": 1e-3}, {"weight_decay": 0.1}]
)
def test_every_addition_changes_the_weights(change):
    given = examples()
    assert bytes_of(fit(given, max_epochs=12, **change).tensors) != bytes_of(fit(given, max_epochs=12).tensors)


def test_weight_decay_is_adams():
    given, settings = examples(), bicr.Settings(**{**synthetic.BICR, **PLAIN, "weight_decay": 0.1})
    found = bicr.fit(given, settings, {}, 17).tensors
    states = [standardized(given.partition(role).answers.features("h_pre"), found) for role in ("fit", "stop")]
    labels = [given.partition(role).correct for role in ("fit", "stop")]
    loss = cross_entropy(pos_weight(labels[0]))
    losses = {"loss": loss, "stop_loss": loss}
    layers = {
        name: train((states[0], labels[0]), (states[1], labels[1]), settings, 17, optimizer=name, **losses)[0]
        for name in ("Adam", "AdamW")
    }
    np.testing.assert_allclose(found["weight_0"], layers["Adam"]["weight_0"], atol=1e-3)
    assert np.abs(layers["AdamW"]["weight_0"] - layers["Adam"]["weight_0"]).max() > 0.1


def test_score_reads_the_real_image_alone():
    given = examples()
    reader = synthetic.reader("readers.bicr", fit(given))
    with_view, without = given.answers, replace(given.answers, views=())
    assert (bicr.score(reader, with_view).score == bicr.score(reader, without).score).all()


def test_only_the_black_view_of_the_fit_partition_is_read():
    given = examples()
    first = fit(given)

    def with_black(roles: tuple[str, ...]) -> dict[str, bytes]:
        """Weights where the black states of `roles` are other ones."""
        view, changed = given.answers.only_view(), given.answers.table["role"].is_in(roles).to_numpy()
        states = np.where(changed[:, np.newaxis], 3.0, view.features("h_pre")).astype(np.float32)
        other = replace(view, source=lambda name: states, rows=np.arange(len(given)))
        weights = fit(Examples(answers=replace(given.answers, views=(other,)), correct=given.correct))
        assert weights.tensors["mean"].tobytes() == first.tensors["mean"].tobytes()
        return bytes_of(weights.tensors)

    assert with_black(("stop", "calibration")) == bytes_of(first.tensors)
    assert with_black(("fit",)) != bytes_of(first.tensors)
