"""Options with which a reader and its actor are loaded."""

import argparse

import pytest

from dualread.apps.score import arguments, scorer


def test_windows_are_given_as_numbers_between_colons_and_commas(monkeypatch):
    parser = argparse.ArgumentParser()
    arguments.add_arguments(parser)
    given = ["--reader", "mine"]
    asked = []
    monkeypatch.setattr(scorer.Scorer, "load", lambda **how: asked.append(how["ct_windows"]))
    for more in ([], ["--ct-windows=-1024:1024,-135:215,0:80"]):
        arguments.load(parser.parse_args(given + more), batch_size=1)
    assert asked == [None, [[-1024, 1024], [-135, 215], [0, 80]]]
    with pytest.raises(SystemExit):
        parser.parse_args([*given, "--ct-windows=medgemma"])
