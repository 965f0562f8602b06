"""Our metrics in an evaluation by Inspect itself, in an environment that has inspect_ai beside this one's packages."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import polars as pl
import pytest

from dualread import evaluate

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
INSPECT = (ROOT / "envs/inspect.txt").read_text().splitlines()[-1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment that has inspect_ai beside this one's packages."""
    folder = tmp_path_factory.mktemp("inspect")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    (site,) = folder.glob("env/lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    install = [folder / "env/bin/python", "-m", "pip", "install", "--quiet", "--no-compile", INSPECT]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot install {INSPECT}: {done.stderr.strip().splitlines()[-1]}")
    return folder


def run(folder, *arguments):
    """What Python prints in this environment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "INSPECT_DISPLAY": "none"}
    command = [folder / "env/bin/python", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def found(environment):
    """What tests/apps/harnesses/inspect_eval.py prints."""
    script, log = ROOT / "tests/apps/harnesses/inspect_eval.py", ROOT / "tests/data/logs/made/lesions.eval"
    return json.loads(run(environment, script, log).splitlines()[-1])


def test_logs_of_inspect_are_read_by_its_own_reader(environment):
    assert "skipped" not in run(
        environment, "-m", "pytest", "--rootdir", ROOT, ROOT / "tests/data/logs/test_inspect.py"
    )


def test_inspect_shows_the_numbers_of_dualread_evaluate(found):
    rows = pl.DataFrame(found["rows"]).filter(pl.col("confidence").is_not_null())
    rows = rows.with_columns(pl.col("correct").eq("C").cast(pl.Int64))
    own, donors = rows.filter(~pl.col("is_donor")), rows.filter(pl.col("is_donor"))
    pairs = donors.select(
        sample_id="pair", donor_image_id="image_id", donor_confidence="confidence", donor_correct="correct"
    )
    table = own.with_columns(sample_id=pl.col("pair"))
    rows = evaluate(table, pairs, replicates=2000).metrics.filter(subset="all")
    expected = {row["metric"]: row for row in rows.to_dicts()}
    for name in ("auroc", "natural_ccg_auc", "squared_calibration_error"):
        for shown, column in ((name, "estimate"), (f"{name}_low", "low"), (f"{name}_high", "high")):
            assert found["eval"][shown] == pytest.approx(expected[name][column]), shown
    for name in ("ece15", "ece15_noise_floor"):
        assert found["eval"][name] == pytest.approx(expected[name]["estimate"])


def test_a_reply_without_a_confidence_is_not_scored(found):
    assert found["eval"]["unscored"] == 1


def test_a_log_of_inspect_is_scored_anew(found):
    # All four answers of lesions.eval have the same grade when epochs are reduced by their mode: no AUROC.
    assert found["scored again"]["auroc"] is None
    # Confidences .9, .7, .6, .8 of the first epochs against correct answers: (.1 + .3 + .4 + .2) / 4
    assert found["scored again"]["ece15"] == pytest.approx(0.25)
