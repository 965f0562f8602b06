"""Answer sets: thresholds by hand, beside MAPIE's definition, and what sets are like."""

import numpy as np
import pytest

from dualread.errors import UndefinedMetricError
from dualread.evaluation.answer_sets import conformal_threshold, set_rates


def test_the_threshold_of_single_answers_is_that_of_split_conformal_prediction():
    rng = np.random.default_rng(0)
    for n in (9, 10, 37, 200):
        p = rng.random(n).round(2)
        for miss in (0.1, 0.25):
            rank = int(
                np.ceil((n + 1) * (1 - miss) - 1e-9)
            )  # MAPIE: the ceil((n + 1) (1 - alpha)) / n quantile of 1 - p
            assert 1.0 - conformal_threshold(p, np.arange(n), miss=miss) == pytest.approx(np.sort(1.0 - p)[rank - 1])


def test_images_have_equal_weights_whatever_their_number_of_answers():
    # Three images and the new one have the weight 1/4 each; the first has four answers, of 1/16 each.
    #   p       .9    .8    .7    .6    .5    .4
    #   weight  1/4   1/16  1/16  1/4   1/16  1/16
    #   sum     .25   .3125 .375  .625  .6875 .75
    p, image = [0.8, 0.7, 0.5, 0.4, 0.9, 0.6], [0, 0, 0, 0, 5, 7]
    for miss, threshold in ((0.75, 0.9), (0.7, 0.8), (0.63, 0.7), (0.4, 0.6), (0.35, 0.5), (0.25, 0.4)):
        assert conformal_threshold(p, image, miss=miss) == threshold
    with pytest.raises(UndefinedMetricError, match="expected at least 4"):
        conformal_threshold(p, image, miss=0.2)
    assert conformal_threshold(np.ones(9), np.arange(9), miss=0.1) == 1.0  # 9 of 10 are 90%
    for miss in (0.0, 1.0):
        with pytest.raises(ValueError, match="miss"):
            conformal_threshold(p, image, miss=miss)


def test_sets_are_counted():
    p = np.array([[0.5, 0.5, np.nan], [0.2, 0.3, 0.5], [0.9, 0.1, 0.0], [0.4, 0.3, 0.3]])
    found = set_rates(p, p[range(4), [1, 1, 0, 2]], np.array([3, 3, 3, 8]), threshold=0.5)
    # sets: {0, 1}, {2}, {0}, {}; covered: yes, no, yes, no; by image 2/3 and 0
    assert found.coverage == 0.5
    assert found.coverage_of_clusters == pytest.approx(1 / 3)
    assert (found.mean_size, found.empty, found.single) == (1.0, 0.25, 0.5)


def test_a_new_image_is_covered_as_often_as_promised_over_draws_of_calibration_images():
    # Images of 1 or 30 answers that are right or wrong together; as if answers were independent, .87 are covered here.
    rng, covered = np.random.default_rng(1), []
    for _ in range(1500):
        sizes = np.where(rng.random(16) < 0.2, 30, 1)
        image = np.repeat(np.arange(16), sizes)
        p = np.clip(rng.random(16)[image] + 0.05 * rng.standard_normal(len(image)), 0, 1)
        own = image < 15
        threshold = conformal_threshold(p[own], image[own], miss=0.1)
        covered.append(np.mean(p[~own] >= threshold))
    assert np.mean(covered) > 0.9 - 3 * np.std(covered) / np.sqrt(len(covered))
