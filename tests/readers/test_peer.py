"""The numbers of medvlm 0.1.0 (with hedge-bench 0.1.2) where it is right, and what ours says where it is not.

The literal values are what `benchmarks/peer_numbers.py` prints, whose first lines say how to run it; the inputs are the
same. docs/answer.md says what is wrong in the peer. Those of uqlm 0.6.7 and torch-uncertainty 0.13.0 are equal, or
others by definition (docs/estimators.md).
"""

import math

import numpy as np
import pytest

from dualread.evaluation.answer_sets import set_rates
from dualread.evaluation.metrics.calibration_error import brier, ece, ece_equal_mass, log_loss
from dualread.evaluation.metrics.discrimination import fpr_at_95_tpr
from dualread.evaluation.metrics.selective import aurc, risks
from dualread.readers import radflag
from dualread.readers.base import FittedReader, Scores, Weights, score
from dualread.readers.groups import agreement
from dualread.readers.semantic_uncertainty import normalized_entropy
from dualread.readers.vase import amplified_entropy, shares
from tests.readers import synthetic
from tests.readers.synthetic import PLATT, sampled
from tests.readers.test_post_hoc import confidences, fitted, stated

CONFIDENCES: list[float | None] = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5, 0.4, 0.3, 0.2]
HALLUCINATION = [0.1, 0.4, 1.2, 0.2, 0.6, 1.5, 0.3, 1.1, 0.9, 0.8, 1.4, 1.3]
CORRECT = [True, True, False, True, True, False, True, False, True, False, True, False]
ASKED: list[float | None] = [0.97, 0.82, 0.55, 0.25]
ASKED_HALLUCINATION = [0.2, 1.0, 0.5, 1.6]
EVEN: list[float | None] = [(2 * k + 1) / 30 for k in range(15)]
EVEN_CORRECT = [bool(z) for z in (0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1)]


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("temperature_scaling", [0.8871800507601995, 0.7108670865041185, 0.5297277240936626, 0.342590679672911]),
        ("platt_scaling", [0.7873778693500612, 0.7082567835121214, 0.5316741435199311, 0.32791033094142974]),
        ("isotonic", [1.0, 0.6666666666666666, 0.5, 0.25]),
    ],
)
def test_maps_of_confidences(name, peer):
    # The peer looks for the temperature to 1e-5 of its value, and stops a logistic regression at 1e-4 of the gradient.
    assert confidences(fitted(name, stated(CONFIDENCES, CORRECT)), ASKED) == pytest.approx(peer, abs=5e-5)


def test_bins_where_equal_width_is_equal_number():
    peer = [0.3333333333333333, 0.3333333333333333, 0.6666666666666666, 0.6666666666666666, 1.0]
    reader = fitted("histogram_binning", stated(EVEN, EVEN_CORRECT), {"bins": 5})
    assert confidences(reader, [0.1, 0.3, 0.5, 0.7, 0.9]) == pytest.approx(peer)


@pytest.mark.parametrize(
    ("form", "peer"),
    [
        ("regression", [0.959891419627888, 0.4776269353327601, 0.8755487389226453, 0.07322740289310263]),
        ("gate", [0.9617527761785329, 0.6278936646103764, 0.5325514195829915, 0.04573338653746119]),
    ],
)
def test_hac_without_the_peers_penalty(form, peer, monkeypatch):
    """The peer shrinks the weight of the hallucination score as it is, so that its unit changes the result."""
    scores = dict(zip(CONFIDENCES + ASKED, HALLUCINATION + ASKED_HALLUCINATION, strict=True))
    certainty = "tests.certainty"

    def of_method(reader: FittedReader, answers):
        found = score(synthetic.reader("readers.verbalized", Weights()), answers)
        if reader.module != certainty:
            return found
        return Scores(
            score=np.array([-scores[c] for c in found.confidence]), confidence=found.confidence, imputed=found.imputed
        )

    monkeypatch.setattr("dualread.readers._post_hoc.score", of_method)
    parents = {
        "confidence": synthetic.reader("readers.verbalized", Weights()),
        "hallucination": synthetic.reader(certainty, Weights()),
    }
    reader = fitted("hac", stated(CONFIDENCES, CORRECT), {"form": form}, **parents)
    # Both stop where the loss is flat, at confidences that differ in the fourth digit.
    assert confidences(reader, ASKED) == pytest.approx(peer, abs=2e-3)


CLEAN, DISTORTED = [-0.1, -0.2, -0.9, -1.6], [-0.3, -0.5, -0.4, -2.0]


@pytest.mark.parametrize(
    ("clusters", "entropy", "flag", "amplified"),
    [
        ((0, 0, 0, 1, 2, 0, 1, 1, 3), 0.7398139238357544, 0.5, 1.2168272733688354),
        ((0, 1, 1, 2, 1, 1, 2, 2, 2), 0.4627033770084381, 0.0, 0.8442651629447937),
    ],
)
def test_samples(clusters, entropy, flag, amplified):
    own, clean, distorted = str(clusters[0]), [str(k) for k in clusters[1:5]], [str(k) for k in clusters[5:]]
    p, q = shares(clean, CLEAN, "clean"), shares(distorted, DISTORTED, "distorted")
    assert -sum(share * math.log(share) for share in p.values()) == pytest.approx(entropy, abs=1e-6)
    given = sampled((own, clean))
    assert radflag.score(synthetic.reader("readers.radflag", PLATT, {"k": 4}), given).score.tolist() == [flag]
    # The peer adds the committed answer's group, to which no sample need belong. Then it is an empty one more.
    with_own = {f"answer {own}": 0.0, **p}
    assert amplified_entropy(with_own, q, 1.0) == pytest.approx(amplified, abs=1e-6)
    assert (amplified_entropy(p, q, 1.0) == pytest.approx(amplified, abs=1e-6)) == (own in clean)


def test_a_confidence_of_0_is_in_the_lowest_bin():
    """The peer's bins are open below: 0 is in none of them, and its binning says 0 where two of two are right."""
    peer = 0.0
    [ours] = confidences(
        fitted("histogram_binning", stated([0.0, 0.0, 0.5, 1.0], [True, True, False, True]), {"bins": 3}), [0.0]
    )
    assert (peer, ours) == (0.0, 1.0)


def test_binning_is_not_judged_where_it_was_fitted():
    """Coins, whose outcomes no confidence tells: the peer's report of its own binning has an error of 3e-17."""
    peer_before, peer_after = 0.2671859495883915, 3.1641356201816965e-17
    rng = np.random.default_rng(0)
    confidence, correct = rng.uniform(size=200), rng.random(200) < 0.5
    assert ece(confidence, correct, n_bins=10) == pytest.approx(peer_before)
    assert peer_after < 1e-15
    reader = fitted("histogram_binning", stated(confidence.tolist(), correct.tolist()), {"bins": 10})
    other, outcome = rng.uniform(size=200), rng.random(200) < 0.5
    assert ece(np.array(confidences(reader, other.tolist())), outcome, n_bins=10) > 0.05


def test_scores_of_uqlm():
    samples = ["liver", "liver", "spleen", "lung", "lung", "liver", "kidney", "spleen"]
    assert agreement(sampled(("liver", samples)), 8).tolist() == [0.375]  # exact match; noncontradiction, too
    # The peer's negentropy counts the committed answer as one more sample; without it, it is 1 - ours.
    assert 1 - normalized_entropy(["liver", *samples]) == pytest.approx(0.42061983571430495)
    assert 1 - normalized_entropy(samples) == pytest.approx(0.36478697925681114)


def test_metrics_of_uqlm_and_torch_uncertainty():
    confidence, correct = np.array(CONFIDENCES, dtype=float), np.array(CORRECT)
    assert brier(confidence, correct) == pytest.approx(0.22916666666666663)  # both
    assert log_loss(confidence, correct) == pytest.approx(0.6455612525796562)
    assert [ece(confidence, correct, n_bins=n) for n in (5, 15)] == pytest.approx([0.15, 0.31666666666666665])
    # uqlm has bins (low, high], which moves .8, .6, .4 and .2 (.1167); between edges, both are equal.
    assert ece(confidence - 0.01, correct, n_bins=5) == pytest.approx(0.1166666666666667)
    assert fpr_at_95_tpr(confidence, correct) == pytest.approx(0.800000011920929)
    assert fpr_at_95_tpr([0.9, 0.9, 0.5, 0.5], np.array([True, False, True, False])) == 1.0
    # Of four bins of three; of 12 answers in five bins, others have three (.1333), and 15 bins are NaN there.
    assert ece_equal_mass(confidence, correct, n_bins=4) == pytest.approx(0.10833334922790527)
    assert ece_equal_mass(confidence, correct, n_bins=5) == pytest.approx(0.09166666666666667)
    # AURC: the mean of the same risks here (.2743), there their trapezoids from the first to the last answer.
    curve, n = risks(confidence, correct), len(correct)
    assert np.trapezoid(curve, np.arange(1, n + 1) / n) / (1 - 1 / n) == pytest.approx(0.2802439987800197)
    assert aurc(confidence, correct) == pytest.approx(curve.mean()) == pytest.approx(0.27425144300144294)
    # Of ties, the order of the rows decides there: .361 or .639.
    assert [aurc([0.9, 0.9, 0.5, 0.5], z == np.array([1, 0, 1, 0])) for z in (1, 0)] == [0.5, 0.5]
    sets = set_rates(SETS, SETS[range(4), [0, 1, 1, 2]], np.arange(4), threshold=0.5)
    assert (sets.coverage, sets.mean_size) == (0.75, 1.5)


SETS = np.array([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3], [0.2, 0.6, 0.2], [0.5, 0.5, 0.5]])
