"""The simulations of `benchmarks/coverage.py`: sources that are what they say, and a program that runs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def simulated(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import _simulated

    return _simulated


def test_methods_are_calibrated_and_one_does_not_respond_to_the_image(simulated):
    design = simulated.Design(name="", images=20_000, per_image=(2, 2), accuracy=0.8)
    rows, pairs = simulated.answers(design, np.random.default_rng(0))
    assert rows["correct"].mean() == pytest.approx(0.8, abs=0.01)
    for method in simulated.METHODS:
        confidence, correct = (rows[name][rows["method"] == method] for name in ("confidence", "correct"))
        for low in np.arange(0.05, 1.0, 0.1):
            chosen = (confidence >= low) & (confidence < low + 0.1)
            if np.count_nonzero(chosen) > 2000:
                assert correct[chosen].mean() == pytest.approx(confidence[chosen].mean(), abs=0.02)
    blind = rows["method"] == "blind"
    decisive = blind & rows["correct"] & ~pairs["donor_correct"]
    wins = rows["confidence"][decisive] > pairs["donor_confidence"][decisive]
    assert wins.mean() == pytest.approx(0.5, abs=0.02)
    assert (rows["image_id"] != pairs["donor_image_id"]).all()


def test_the_risk_of_a_calibration_source_is_at_the_target_where_its_name_says_so(simulated):
    for of in simulated.CALIBRATIONS:
        drawn = of.draw(np.random.default_rng(0), images=100_000)
        if "at the target" in of.name:
            assert drawn["wrong"].mean() == pytest.approx(0.201, abs=0.002)
            assert (~drawn["correct"]).mean() == pytest.approx(0.201, abs=0.005)
        if of.max_per_image is not None:
            assert np.bincount(drawn["image"]).max() == of.max_per_image


def test_the_program_prints_error_and_kept_share_of_every_source():
    command = [sys.executable, "coverage.py", "--only", "certified", "--data-sets", "2"]
    done = subprocess.run(
        command, cwd=BENCHMARKS, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "  printed  " in line]
    assert len(lines) == 11
    assert all(0.0 <= float(line.split()[-2]) <= 1.0 for line in lines)
