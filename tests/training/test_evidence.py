"""Evidence that completions were not drawn from the policy: what it may cost a right training, and what it finds."""

import itertools

import numpy as np
import pytest

from dualread.models.actor import Rollout
from dualread.training import _evidence
from dualread.training._evidence import ALARM, Evidence, Pass, of_tokens


def policies(rng, n, tokens):
    """Log-probabilities [tokens, n] of distributions from nearly certain to nearly uniform."""
    logits = rng.standard_normal((tokens, n)) * np.exp(rng.uniform(-3, 3, (tokens, 1)))
    logits[::3, 0] += rng.uniform(0, 20, len(logits[::3]))  # an id that is far likelier than all others
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


def entropy(log_p):
    return -(np.exp(log_p) * log_p).sum(axis=-1)


@pytest.mark.parametrize("n", [2, 5, 50, 5000])
def test_no_distribution_has_a_larger_variance_than_the_bound_for_its_entropy(n):
    log_p = policies(np.random.default_rng(0), n, 300)
    variance = (np.exp(log_p) * log_p**2).sum(axis=1) - entropy(log_p) ** 2
    assert (variance <= np.interp(entropy(log_p), *_evidence._extremes(n)) * 1.001 + 1e-9).all()
    # One id of probability .9, others share .1: the bound is reached.
    p = np.array([0.9] + [0.1 / (n - 1)] * (n - 1))
    reached = (p * np.log(p) ** 2).sum() - (p * np.log(p)).sum() ** 2
    assert np.interp(entropy(np.log(p)), *_evidence._extremes(n)) == pytest.approx(reached, rel=0.01)


@pytest.mark.parametrize("n", [2, 10, 300])
def test_the_expected_exponential_of_the_evidence_of_a_right_token_is_at_most_one(n):
    """Ville's inequality needs no more than this: no simulation of false alarms is needed."""
    for log_p in policies(np.random.default_rng(1), n, 60):
        each = [of_tokens(np.array([of]), entropy(log_p)[None], n, 0.0) for of in log_p]
        assert (np.exp(log_p)[:, None, None] * np.exp(each)).sum(axis=0).max() <= 1 + 1e-12


def test_the_evidence_of_a_token_by_hand():
    """Of two equally likely ids, -log p is log 2: all else is evidence, times each tilt, because it has no variance."""
    tilts, found = np.array([1 / 64, 1 / 16, 1 / 4, 1]), of_tokens(np.array([-0.2]), np.log([2]), 2, 0.01)
    assert found[0] == pytest.approx(tilts * (np.log(2) - 0.2 - 0.01))
    assert found[1] == pytest.approx(tilts * (0.2 - np.log(2) - 0.01))
    assert of_tokens(np.array([-9.0]), np.log([2]), 2, 0.01)[1] == pytest.approx(tilts * (4 - 0.01))  # counts as 4


def test_the_expected_exponential_of_the_evidence_of_copies_is_one_where_all_are_right():
    """All pairs of two questions' completions, drawn from three."""
    log_p = np.log([0.7, 0.2, 0.1])
    total = np.zeros(2)
    for chosen in itertools.product(range(3), repeat=3):
        rows = [Rollout(token_ids=[i], log_probs=[log_p[i]], drawn_with={}) for i in chosen]
        evidence = Evidence()
        first = evidence.of_copies(["q"], rows[:1], 1.0)
        assert first.tolist() == [0, 0]  # of nothing
        total += np.exp(log_p[list(chosen)].sum() + evidence.of_copies(["q", "q"], rows[1:], 1.0))
    # Where two are known, a copy of one of them is a copy of either with half the probability.
    assert total == pytest.approx([1, 1])


def chosen_by(how):
    """Return the probabilities from which tokens are drawn in place of those of the policy [tokens, n]."""

    def probabilities(log_p):
        if how.startswith("temperature"):
            p = np.exp(log_p / float(how.split()[1]))
        else:
            k = int(how.split()[1])
            p = np.where(log_p >= np.sort(log_p, axis=1)[:, -k][:, None], np.exp(log_p), 0)
        return p / p.sum(axis=1, keepdims=True)

    return probabilities


def first_alarm(how, *, steps, tokens=1500, n=200, seed=0, top_p=1.0):
    rng, evidence = np.random.default_rng(seed), Evidence()
    for step in range(steps):
        log_p = policies(rng, n, tokens)
        drawn = (chosen_by(how)(log_p).cumsum(axis=1) < rng.random((tokens, 1))).sum(axis=1).clip(max=n - 1)
        own = log_p[range(tokens), drawn]
        made = Pass.of(own, own, entropy(log_p), n, 1e-4)
        if fault := evidence.fault(made, np.zeros(2), top_p):
            return step + 1, fault
    return None


@pytest.mark.parametrize(
    ("how", "is_too"),
    [("top 1", "too likely"), ("top 5", "too likely"), ("temperature .7", "too likely"), ("temperature 2", "unlikely")],
)
def test_tokens_from_another_distribution_are_found(how, is_too):
    step, fault = first_alarm(how, steps=5)
    assert step <= 5
    assert is_too in fault


def test_right_tokens_are_no_fault():
    assert first_alarm("temperature 1", steps=100, tokens=200) is None


def test_with_top_p_tokens_may_be_likely_and_not_unlikely():
    assert first_alarm("top 5", steps=5, top_p=0.9) is None
    assert first_alarm("temperature 2", steps=5, top_p=0.9)


def test_a_fault_that_begins_late_is_found_as_soon():
    evidence, right = Evidence(), Pass(tokens=1, evidence=np.full((2, 4), -1e6))
    assert evidence.fault(right, np.full(2, -1e6), 1.0) is None
    assert evidence.fault(Pass(tokens=1), np.full(2, ALARM + 1), 1.0)


def test_copies_by_hand():
    """Completions of probability e^-30: the second of a group is a copy, and so is the first one a step later."""
    evidence, one = Evidence(), Rollout(token_ids=[1, 2], log_probs=[-10.0, -20.0], drawn_with={})
    other = Rollout(token_ids=[3, 4], log_probs=[-15.0, -15.0], drawn_with={})
    of_share = evidence.of_copies(["q", "q"], [one, one], 1.0)  # log(.01 e^30 + .99), log(.5 e^30 + .5)
    assert of_share == pytest.approx([30 + np.log(0.01), 30 + np.log(0.5)])
    assert evidence.of_copies(["q"], [other], 1.0) == pytest.approx([np.log(0.99), np.log(0.5)])
    assert evidence.of_copies(["another"], [other], 1.0).tolist() == [0, 0]
    assert evidence.of_copies(["q"], [one], 1.0).max() < 0  # was made two steps ago
    # top_p = .5: each of two tokens may be twice as probable
    evidence.of_copies(["r"], [one], 0.5)
    assert evidence.of_copies(["r"], [one], 0.5)[1] == pytest.approx(30 - 2 * np.log(2) + np.log(0.5))
