"""Squared calibration error and noise floor: by hand, against literal loops, and in any order of rows."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import UndefinedMetricError
from dualread.evaluation.metrics import calibration_chance
from dualread.evaluation.metrics.calibration_chance import (
    SIGNS,
    _signs,
    ece_noise_floor,
    leave_one_image_out,
    squared_calibration_error,
)
from dualread.evaluation.metrics.calibration_error import bins, ece
from dualread.seeding import generator
from tests.evaluation.metrics.samples import cells, turned


def literal(confidence, correct, images):
    """Sum, over bins, share of rows times mean product over pairs of rows of two images; None without pairs."""
    index, total, n_pairs = bins(confidence), 0.0, 0
    residual = np.asarray(correct, dtype=float) - confidence
    for k in set(index.tolist()):
        rows = np.flatnonzero(index == k)
        products = [residual[i] * residual[j] for i, j in permutations(rows, 2) if images[i] != images[j]]
        if products:
            total += len(rows) / len(index) * np.mean(products)
            n_pairs += len(products)
    return total if n_pairs else None


def test_by_hand():
    # The bin [.8, .867) has three rows on two images, with residuals .2 and -.8 (image a) and .2 (image b). Pairs of
    # two images: (.2 * .2 + -.8 * .2) / 2 = -.06. The last bin has two images with residuals .05 and .05: .0025.
    # 3/5 * -.06 + 2/5 * .0025 = -.035
    confidence, correct = [0.8, 0.8, 0.8, 0.95, 0.95], [True, False, True, True, True]
    assert squared_calibration_error(confidence, correct, ["a", "a", "b", "a", "b"]) == pytest.approx(-0.035, abs=1e-15)


@given(cells, st.randoms(use_true_random=False))
def test_literal_in_any_order(cell, random):
    confidence, correct = cell
    images = np.array([random.randrange(4) for _ in correct])
    expected = literal(confidence, correct, images)
    if expected is None:
        with pytest.raises(UndefinedMetricError, match="no bin has answers of two images"):
            squared_calibration_error(confidence, correct, images)
        return
    found = squared_calibration_error(confidence, correct, images)
    assert found == pytest.approx(expected, abs=1e-12)
    assert squared_calibration_error(*turned(random, confidence, correct, images)) == found
    # Nor do the names of the images matter.
    assert squared_calibration_error(confidence, correct, 3 - images) == found


@given(cells, st.randoms(use_true_random=False))
def test_leaving_out_an_image_is_dropping_its_rows(cell, random):
    confidence, correct = cell
    images = np.array([random.randrange(4) for _ in correct])
    if literal(confidence, correct, images) is None:
        return
    left = leave_one_image_out(confidence, correct, images)
    present = sorted(set(images.tolist()))
    assert len(left) == len(present)
    for value, image in zip(left, present, strict=True):
        kept = images != image
        expected = literal(confidence[kept], correct[kept], images[kept]) if kept.any() else None
        if expected is None:
            assert np.isnan(value)
        else:
            assert value == pytest.approx(expected, abs=1e-12)


def test_calibrated_confidences_have_no_squared_error_on_average():
    stream = np.random.default_rng(0)
    found, plain = [], []
    for _ in range(400):
        confidence = stream.beta(2, 1, 60)
        correct = stream.random(60) < confidence
        found.append(squared_calibration_error(confidence, correct, np.arange(60)))
        plain.append(ece(confidence, correct))
    assert abs(np.mean(found)) < 3 * np.std(found) / 20
    assert np.mean(plain) > 0.1  # which the ECE is not


def literal_floor(confidence, correct, images, signs):
    index, residual = bins(confidence), np.asarray(correct, dtype=float) - confidence
    found = sorted(
        sum(abs(sum(sign[images[i]] * residual[i] for i in np.flatnonzero(index == k))) for k in set(index.tolist()))
        / len(index)
        for sign in signs
    )
    return found[949]  # with the ECE itself, 50 of 1,000 are above it


def literal_labels(confidence, names):
    """The ECE of labels that are drawn with the confidences, in their order, as probabilities."""
    ordered = sorted(confidence)
    uniform = generator(*names, "labels").random((SIGNS, len(ordered)))
    return sorted(ece(ordered, row < ordered) for row in uniform)[949]


@pytest.mark.parametrize("per_image", [1, 5])
def test_noise_floor_is_the_literal_one(per_image):
    stream, names = np.random.default_rng(1), ("study", "slake", "test")
    confidence, images = np.round(stream.random(30), 2), np.arange(30) // per_image
    correct = np.repeat(stream.random(30 // per_image), per_image) < confidence
    bits = np.unpackbits(_signs(names, 30 // per_image), axis=1)[:, :SIGNS]
    signs = (2.0 * bits - 1.0).T
    assert len(signs) == SIGNS
    assert set(np.unique(signs)) == {-1.0, 1.0}
    both = literal_floor(confidence, correct, images, signs), literal_labels(confidence, names)
    found = ece_noise_floor(confidence, correct, images, 30 // per_image, names)
    assert found == pytest.approx(max(both), abs=1e-12)
    order = stream.permutation(30)
    assert ece_noise_floor(confidence[order], correct[order], images[order], 30 // per_image, names) == found
    assert ece_noise_floor(confidence, correct, images, 30 // per_image, ("study", "slake", "other")) != found


def test_with_many_answers_the_signs_decide(monkeypatch):
    stream = np.random.default_rng(4)
    confidence, images = stream.random(60), np.arange(60)
    correct = stream.random(60) < confidence
    both = ece_noise_floor(confidence, correct, images, 60, ("a",))
    monkeypatch.setattr(calibration_chance, "LABELED_ROWS", 60)
    assert ece_noise_floor(confidence, correct, images, 60, ("a",)) == both
    monkeypatch.setattr(calibration_chance, "LABELED_ROWS", 59)
    signs = (2.0 * np.unpackbits(_signs(("a",), 60), axis=1)[:, :SIGNS] - 1.0).T
    found = ece_noise_floor(confidence, correct, images, 60, ("a",))
    assert found == pytest.approx(literal_floor(confidence, correct, images, signs), abs=1e-12)
    assert both >= found


def test_of_two_images_there_is_a_floor():
    # The signs are equal in half of the draws: |.5 + .5| / 2, and 0 in the others.
    assert ece_noise_floor([0.5, 0.5], [True, False], np.array([0, 2]), 3, ("a",)) == 0.5


@pytest.mark.parametrize("block", [4, 256])
def test_of_many_images_the_same_signs_are_drawn_block_by_block(monkeypatch, block):
    stream = np.random.default_rng(4)
    images = stream.choice(1000, 700)  # some of the images have no answers
    confidence, correct = stream.random(700), stream.random(700) < 0.5
    found = []
    for kept in (0, 2**14):
        monkeypatch.setattr(calibration_chance, "_KEPT_IMAGES", kept)
        monkeypatch.setattr(calibration_chance, "_BLOCK", block)
        found.append(ece_noise_floor(confidence, correct, images, 1000, ("a",)))
    assert found[0] == found[1]


def test_calibrated_confidences_are_below_their_floor_in_95_of_100_samples():
    stream, above = np.random.default_rng(2), 0
    for k in range(600):
        confidence = stream.beta(1, 1, 80)
        correct = stream.random(80) < confidence
        above += ece(confidence, correct) > ece_noise_floor(confidence, correct, np.arange(80), 80, (str(k),))
    assert 0.015 < above / 600 < 0.075  # at most .05, with a standard error of .009
