"""Trackers and samples: what is sent and printed, and that no result depends on it."""

import dataclasses
import sys
import types
from importlib.machinery import ModuleSpec
from typing import get_args

import pytest
from transformers.integrations import integration_utils

from dualread.errors import ConfigError
from dualread.schema.study import Tracker
from dualread.training._arguments import tracking
from dualread.training.grpo import train
from dualread.training.trainer import SECONDS, samples


def test_the_trackers_of_a_study_are_those_that_transformers_knows_and_finds():
    known = set(integration_utils.INTEGRATION_TO_CALLBACK)
    assert set(get_args(Tracker)) == known - {"flyte"}  # which it cannot look for


def test_nothing_is_tracked_unless_somebody_says_so(job, monkeypatch):
    assert tracking("run") == {"report_to": "none"}
    monkeypatch.setenv("DUALREAD_REPORT_TO", "trackio")
    monkeypatch.setattr(integration_utils, "get_available_reporting_integrations", lambda: ["tensorboard"])
    with pytest.raises(
        ConfigError, match=r"'trackio' is not installed in .*\. Installed: tensorboard\. Install it there"
    ):
        train(job("actor"))


def test_samples_are_spread_over_a_step_and_each_is_one_line():
    names, texts = [str(i) for i in range(5)], ["a\nb ", "c", "d", "e", "f"]
    lines = list(samples(9, names, texts, [1.0, 0.5, 1 / 3, 0.0, -1.0]))
    assert lines == [
        "step 10, question 0, reward 1: a b",
        "step 10, question 2, reward 0.333: d",
        "step 10, question 4, reward -1: f",
    ]
    assert list(samples(0, ["x"], ["y"], [0.0])) == ["step 1, question x, reward 0: y"]


@pytest.fixture
def trackio(monkeypatch):
    """A package of this name that notes what it is given."""
    given = []
    space = types.SimpleNamespace(get=lambda: None)
    module = types.SimpleNamespace(
        init=lambda **named: given.append(("init", named)),
        log=lambda metrics, **named: given.append(("log", metrics)),
        finish=lambda: given.append(("finish", None)),
        config={},
        context_vars=types.SimpleNamespace(current_space_id=space),
        __version__="0.30.0",
        __spec__=ModuleSpec("trackio", None),
    )
    monkeypatch.setitem(sys.modules, "trackio", module)
    # trl has looked for it already where another test has trained before.
    monkeypatch.setattr("trl.extras.profiling.trackio", module, raising=False)
    monkeypatch.setattr(integration_utils, "is_trackio_available", lambda: True)
    return given


def test_a_watched_training_gives_the_same_bytes_and_its_log_is_sent(job, trackio, monkeypatch, capsys):
    plain = [row for row in train(job("plain")) if row["name"] != SECONDS]
    assert "question" not in capsys.readouterr().err
    monkeypatch.setenv("DUALREAD_REPORT_TO", "trackio")
    monkeypatch.setenv("DUALREAD_RESULTS", "results/mine")
    monkeypatch.setenv("DUALREAD_SAMPLES_EVERY", "2")
    for name in ("TENSORBOARD_LOGGING_DIR", "WANDB_PROJECT"):
        monkeypatch.setenv(name, "")  # restored, whatever the training sets
        monkeypatch.delenv(name)
    watched = [row for row in train(dataclasses.replace(job("watched"), name="tiny/rlvr/17")) if row["name"] != SECONDS]
    assert watched == plain
    weights = [(job(name).out / "model.safetensors").read_bytes() for name in ("plain", "watched")]
    assert weights[0] == weights[1]
    opened = dict(trackio)["init"]
    assert (opened["project"], opened["name"]) == ("mine", "tiny/rlvr/17")
    sent = [metrics["train/reward"] for kind, metrics in trackio if kind == "log" and "train/reward" in metrics]
    assert sent == [row["value"] for row in plain if row["name"] == "reward"]
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("step ")]
    # Of the four completions of step 1, the first, the second and the last; the reward is a completion's length.
    assert [line.split(",")[0] for line in lines] == ["step 1"] * 3
    assert all(" reward " in line and "question " in line for line in lines)
