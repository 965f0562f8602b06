"""The test of drift: by hand, against scipy, without a drift and with one, and where it can say nothing."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp

from dualread.apps.serve.outcome import Record
from dualread.errors import ArtifactError
from dualread.evaluation.statistics import drift as module
from dualread.evaluation.statistics.drift import ConfidenceSample, drift, read_validation, write_validation

GUIDE = Path(__file__).parents[3] / "docs/serve.md"


def sample(seed, n_images, per_image=3, shift=0.0, within=0.3):
    """Confidences whose log-odds are those of their image, and a little of their own."""
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(n_images), per_image)
    log_odds = rng.normal(size=n_images)[image] + within * rng.normal(size=len(image)) - shift
    return ConfidenceSample(1 / (1 + np.exp(-log_odds)), image)


def test_the_distance_by_hand_and_that_of_scipy():
    # At .2, 1/2 of the first and 1/3 of the second are not above it; at .4, 1/2 and 3/3.
    assert module._distance(np.array([0.2, 0.9]), np.array([0.2, 0.3, 0.4])) == pytest.approx(1 / 2)
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.integers(0, 9, rng.integers(1, 30)) / 8, rng.integers(0, 9, rng.integers(1, 30)) / 8
        assert module._distance(one, other) == pytest.approx(ks_2samp(one, other).statistic)


def test_log_odds_fall_by_the_shift():
    before = ConfidenceSample(np.array([0.8, 0.5, 0.0, 1.0]), np.arange(4))
    # .8 has the odds 4; divided by e^.5 = 1.6487 they are 2.4261, and 2.4261 / 3.4261 = .7081.
    assert module._lower(before, 0.5) == pytest.approx([0.7081, 0.3775, 0.0, 1.0], abs=1e-4)


def test_without_drift_p_is_seldom_small_although_answers_about_an_image_are_alike(monkeypatch):
    """As independent answers, these would be found to drift in nearly every second case."""
    monkeypatch.setattr(module, "_EXCHANGES", 99)
    monkeypatch.setattr(module, "_DRAWS", 1)
    n = 100
    found = [drift(sample(2 * k, 30, 8, within=0.1), sample(2 * k + 1, 30, 8, within=0.1)).p for k in range(n)]
    alone = [
        ks_2samp(sample(2 * k, 30, 8, within=0.1)[0], sample(2 * k + 1, 30, 8, within=0.1)[0]).pvalue for k in range(n)
    ]
    assert np.mean(np.array(found) <= 0.05) <= 0.12  # .05 and three standard errors of .022
    assert np.mean(np.array(alone) <= 0.05) > 0.3


def test_a_drift_is_noticed_and_power_grows_with_images_and_shift(monkeypatch):
    monkeypatch.setattr(module, "_EXCHANGES", 199)
    monkeypatch.setattr(module, "_DRAWS", 100)
    before = sample(0, 150)
    large = drift(before, sample(1, 150, shift=1.0), shift=1.0)
    assert large.p <= 0.01
    assert large.power > 0.95
    assert large.means[1] < large.means[0]
    assert large.means[2] == pytest.approx(large.means[1], abs=0.06)
    powers = [drift(before, sample(2, n), shift=shift).power for n, shift in ((20, 0.3), (150, 0.3), (150, 0.8))]
    assert powers == sorted(powers)
    assert powers[0] < 0.4 < powers[2]


def test_the_power_is_the_share_of_such_drifts_that_are_noticed(monkeypatch):
    """Samples of the same distribution with the shift: how often p is below .05 is the power, within its error."""
    monkeypatch.setattr(module, "_EXCHANGES", 99)
    monkeypatch.setattr(module, "_DRAWS", 100)
    before = sample(0, 200)
    found = [drift(before, sample(k + 1, 60, shift=0.5)) for k in range(40)]
    noticed = np.mean([of.p <= 0.05 for of in found])
    assert noticed == pytest.approx(np.mean([of.power for of in found]), abs=0.24)  # 3 standard errors of .08


def test_without_a_shift_the_power_is_the_level():
    found = drift(sample(5, 400, per_image=1), sample(6, 40, per_image=1), shift=1e-9)
    assert found.power == pytest.approx(0.05, abs=0.025)  # two standard errors of 400 draws are .022


def row(confidence, image, **more):
    return {"sample_id": "q", "image_id": f"i{image}", "method": "dualread", "confidence": confidence, **more}


@pytest.fixture
def bundle(tmp_path):
    before = sample(0, 60)
    folder = tmp_path / "bundle"
    folder.mkdir()
    write_validation(folder, {"dualread": (before.confidence.tolist(), [f"x{i}" for i in before.image])})
    return folder


def test_what_is_written_about_validation_is_read_again_without_a_name(bundle):
    before, again = sample(0, 60), read_validation(bundle, "dualread")
    assert sorted(again.confidence) == pytest.approx(sorted(before.confidence))
    by_image = [sorted(sorted(of.confidence[of.image == i]) for i in range(60)) for of in (before, again)]
    assert np.allclose(*by_image)
    assert "x1" not in (bundle / "validation.csv").read_text()
    with pytest.raises(ArtifactError, match="no confidences from 0 to 1 of 'psr'"):
        read_validation(bundle, "psr")


def test_the_lines_of_the_guide_say_what_the_record_shows(bundle, tmp_path, monkeypatch, capsys):
    record = Record(tmp_path / "answers.jsonl")
    for confidence, image in zip(*sample(5, 60, shift=2.0), strict=True):
        record.add(row(confidence, image))
        record.add(row(0.5, image, method="psr"))
    record.close()
    (code,) = [block for block in GUIDE.read_text().split("```") if "read_validation" in block]
    bundle.rename(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    found = drift(sample(0, 60), sample(5, 60, shift=2.0))
    said = capsys.readouterr().out
    assert said.startswith(f"distance {found.distance:.4f}, p 0.0005, power ")
