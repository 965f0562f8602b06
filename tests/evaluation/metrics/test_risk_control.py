"""The p-value by hand and by loops, the sequences of tests, and the guarantee in 1,000 simulations per source."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics.risk_control import certified_threshold, risk_p_values, starts
from dualread.evaluation.metrics.selective import threshold
from tests.evaluation.metrics.samples import cells

RISK, DELTA, REPETITIONS = 0.1, 0.1, 1000


def literal_p(confidence, correct, images, threshold, target_risk):
    names = sorted(set(images))
    largest = max(list(images).count(name) for name in names)
    wealths = []
    for k in range(5):
        wealth = 1.0
        for name in names:
            kept = [ok for c, ok, i in zip(confidence, correct, images, strict=True) if i == name and c >= threshold]
            balance = sum(1 for ok in kept if not ok) - target_risk * len(kept)
            wealth *= 1 - balance / (2**k * (1 - target_risk) * largest)
        wealths.append(wealth)
    evidence = sum(wealths) / 5
    return min(1.0, 1 / evidence) if evidence > 0 else 1.0


def test_a_p_value_by_hand():
    # Target .5. Image a keeps a right and a wrong answer from .4 on (balance -.5, then 0), image b one that is right
    # (-.5). The largest image has 2 answers: stakes 1, 1/2, ..., 1/16, and wealth 1 + s/2 at .9, (1 + s/2)^2 at .7,
    # 1 + s/2 at .4. The means over the stakes are 1 + 31/160, 1 + 31/80 + (341/256)/20, and 1 + 31/160.
    levels, p = risk_p_values([0.4, 0.9, 0.7], [False, True, True], ["a", "a", "b"], target_risk=0.5)
    assert levels.tolist() == [0.9, 0.7, 0.4]
    expected = [1 / (1 + 31 / 160), 1 / (1 + 31 / 80 + 341 / 256 / 20), 1 / (1 + 31 / 160)]
    assert p.tolist() == pytest.approx(expected, abs=1e-12)


@given(cells, st.randoms(), st.sampled_from([0.05, 0.2, 0.5]))
def test_p_values_are_those_of_the_definition_in_any_order(cell, random, target_risk):
    confidence, correct = cell
    images = [f"i{k * k % 5}" for k in range(len(correct))]
    levels, p = risk_p_values(confidence, correct, images, target_risk=target_risk)
    assert levels.tolist() == sorted(set(confidence.tolist()), reverse=True)
    for level, value in zip(levels, p, strict=True):
        assert value == pytest.approx(literal_p(confidence, correct, images, level, target_risk), rel=1e-9)
    order = list(range(len(correct)))
    random.shuffle(order)
    turned = risk_p_values(confidence[order], correct[order], [images[k] for k in order], target_risk=target_risk)
    assert np.array_equal(turned[1], p)


def test_a_sequence_ends_at_the_first_threshold_that_fails():
    # 300 images with one answer. From .9 on all 100 answers are right, from .5 on another 100; below, all are wrong.
    confidence = np.repeat([0.96, 0.5, 0.2], 100)
    assert certified_threshold(confidence, confidence > 0.3, range(300), target_risk=0.1) == 0.5
    # One wrong answer in three at .8 breaks the sequences from .975, .95 and .9; those from .8 and 0 begin too low.
    broken = np.concatenate([confidence, np.full(90, 0.8)])
    correct = np.concatenate([confidence > 0.3, np.arange(90) % 3 > 0])
    assert certified_threshold(broken, correct, range(390), target_risk=0.1) == 0.96


def test_equal_confidences_are_kept_together():
    # 200 right and 20 wrong answers at .9: no threshold separates them
    confidence, correct = np.full(220, 0.9), np.arange(220) < 200
    p = risk_p_values(confidence, correct, range(220), target_risk=0.2)[1]
    assert len(p) == 1
    assert certified_threshold(confidence, correct, range(220), target_risk=0.2) == 0.9


def test_answers_to_one_image_count_as_one():
    """200 right answers to 200 images are certain; to two images they say next to nothing."""
    confidence, correct = np.full(200, 0.9), np.ones(200, dtype=bool)
    assert certified_threshold(confidence, correct, range(200), target_risk=0.1) == 0.9
    with pytest.raises(UndefinedMetricError, match=r"too few images \(2\), even if all 200 answers were correct"):
        certified_threshold(confidence, correct, np.arange(200) % 2, target_risk=0.1)


def test_where_nothing_is_certified_the_reason_says_what_was_needed():
    with pytest.raises(UndefinedMetricError, match=r"^no threshold is certified for a risk of 0\.1 with delta 0\.1"):
        certified_threshold([0.9] * 300, [True, False] * 150, range(300), target_risk=0.1)
    with pytest.raises(UndefinedMetricError, match="no rows"):
        certified_threshold([], [], [], target_risk=0.1)


@pytest.mark.parametrize("wrong", [{"target_risk": -0.1}, {"target_risk": 1.0}, {"target_risk": 0.1, "delta": 0.0}])
def test_a_share_outside_its_range_is_an_error(wrong):
    with pytest.raises(ValueError, match=rf"^{list(wrong)[-1]}: -?[01]\.[01], expected a "):
        certified_threshold([0.5], [True], ["a"], **wrong)


def test_a_risk_of_zero_is_never_certified():
    with pytest.raises(UndefinedMetricError, match="no number of right answers certifies a risk of 0"):
        certified_threshold([0.9] * 900, [True] * 900, range(900), target_risk=0.0)


def test_a_smaller_delta_never_certifies_more():
    generator = np.random.default_rng(3)
    confidence, images = generator.random(2000), generator.integers(0, 700, 2000)
    correct = generator.random(2000) < 0.7 + 0.3 * confidence
    found = [certified_threshold(confidence, correct, images, target_risk=0.2, delta=d) for d in (0.5, 0.1, 0.01)]
    assert found == sorted(found)


def test_the_starts_are_confidences():
    for risk in (0.01, 0.3, 0.5, 0.9):
        assert all(0.0 <= start < 1.0 for start in starts(risk))


def one(m, generator):
    return np.ones(m, dtype=int)


def uneven(m, generator):
    return generator.integers(1, 9, m)


def rare(m, generator):
    """Most images have one answer, one image in 15 has twelve."""
    return np.where(generator.random(m) < 1 / 15, 12, 1)


def calibrated(confidence, size, image_luck):
    return 1.0 - confidence


def just_too_risky(confidence, size, image_luck):
    return np.full(len(confidence), 1.02 * RISK)


def whole_images_wrong(confidence, size, image_luck):
    return (image_luck < 1.02 * RISK).astype(float)


def wrong_at_the_top(confidence, size, image_luck):
    """Above .97 most answers are wrong, from .5 to .97 few, below many."""
    return np.where(confidence > 0.97, 0.6, np.where(confidence > 0.5, 0.08, 0.4))


def large_images_wrong(confidence, size, image_luck):
    return np.where(size > 4, 0.3, 0.05)


def continuous(n, generator):
    return generator.random(n)


def tied(n, generator):
    return generator.choice([0.0, 0.5, 0.8, 0.9, 0.95, 1.0], n)


def high(n, generator):
    return 1.0 - 0.6 * generator.random(n) ** 3


SOURCES = {
    "calibrated": (uneven, continuous, calibrated, 120),
    "calibrated, high": (one, high, calibrated, 120),
    "just too risky": (one, high, just_too_risky, 150),
    "just too risky, ties": (uneven, tied, just_too_risky, 120),
    "whole images wrong": (uneven, high, whole_images_wrong, 120),
    "whole images wrong, ties": (rare, tied, whole_images_wrong, 150),
    "wrong at the top": (uneven, continuous, wrong_at_the_top, 150),
    "large images wrong": (rare, high, large_images_wrong, 150),
    "large images wrong, ties": (uneven, tied, large_images_wrong, 150),
    "tiny": (uneven, tied, calibrated, 5),
}


def draw(source, generator, n_images=None):
    sizes, confidences, risk, m = SOURCES[source]
    size = sizes(n_images or m, generator)
    images = np.repeat(np.arange(len(size)), size)
    confidence = confidences(len(images), generator)
    luck = generator.random(len(size))[images]
    return confidence, generator.random(len(images)) < risk(confidence, size[images], luck), images


def share_above_the_target(source, choose):
    """Return in how many of 1,000 validation sets the risk on 40,000 other images exceeds the target."""
    generator = np.random.default_rng([18, len(source)])
    confidence, wrong, _ = draw(source, generator, n_images=40_000)
    exceeded = 0
    for _ in range(REPETITIONS):
        validation, is_wrong, images = draw(source, generator)
        try:
            kept = confidence >= choose(validation, ~is_wrong, images)
        except UndefinedMetricError:
            continue
        exceeded += bool(wrong[kept].mean() > RISK)
    return exceeded / REPETITIONS


@pytest.mark.parametrize("source", SOURCES)
def test_the_realised_risk_exceeds_the_target_in_at_most_delta(source):
    share = share_above_the_target(source, partial(certified_threshold, target_risk=RISK, delta=DELTA))
    assert share <= DELTA + 2 * math.sqrt(DELTA * (1 - DELTA) / REPETITIONS)


@pytest.mark.parametrize("source", ["calibrated", "calibrated, high", "whole images wrong, ties"])
def test_the_empirical_threshold_has_no_such_guarantee(source):
    """The same simulation refutes it, and would refute others."""
    assert share_above_the_target(source, lambda c, ok, images: threshold(c, ok, target_risk=RISK)) > 2 * DELTA


@pytest.mark.parametrize("n_images", [60, 200])
def test_all_right_is_certified_and_all_wrong_never(n_images):
    confidence = np.linspace(0.5, 1.0, n_images)
    right = np.ones(n_images, dtype=bool)
    assert certified_threshold(confidence, right, range(n_images), target_risk=0.1) == 0.5
    with pytest.raises(UndefinedMetricError):
        certified_threshold(confidence, ~right, range(n_images), target_risk=0.1)


def test_with_many_images_nearly_every_threshold_that_exists_is_found():
    """The guarantee is not empty: with 4,000 images, the certified threshold keeps nearly as much as the true one."""
    generator = np.random.default_rng(7)
    images = np.repeat(np.arange(4000), 3)
    confidence = generator.random(len(images))
    correct = generator.random(len(images)) < confidence  # the error rate from c on is (1 - c) / 2: .1 from .8 on
    assert 0.8 <= certified_threshold(confidence, correct, images, target_risk=0.1) < 0.84
