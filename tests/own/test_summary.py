"""`print` of an evaluation: one screen."""

import numpy as np
import polars as pl

import dualread
from dualread.own.summary import summary


def test_values_and_intervals_are_those_of_the_metrics():
    # Four answers, two right: accuracy .5. Right ones have .9 and .4, wrong ones .6 and .1: of the four pairs, the
    # right one is ahead in (.9, .6), (.9, .1), (.4, .1), so AUROC is .75. Brier: (.01 + .36 + .36 + .01) / 4 = .185.
    table = {"correct": [1, 1, 0, 0], "confidence": [0.9, 0.4, 0.6, 0.1]}
    head, row, *rest = str(dualread.evaluate(table, replicates=0)).splitlines()
    assert head.split() == ["n", "accuracy", "AUROC", "Brier", "ECE-15"]
    assert row.split()[1:3] == ["4", ".500"]
    assert ".750" in row
    assert ".185" in row
    assert rest[0].startswith("95% intervals")


def test_many_methods_fit_one_screen():
    rng = np.random.default_rng(0)
    rows = {f"confidence_a_method_with_a_long_name_{k}": rng.random(40) for k in range(30)}
    found = dualread.evaluate({**rows, "sample_id": range(40), "correct": [0, 1] * 20}, replicates=20)
    lines = str(found).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    assert "... and 14 more methods" in lines


def test_an_undefined_value_is_a_dash_and_other_tables_are_named():
    metrics = pl.DataFrame(
        {
            **{"dataset": ["d", "d"], "method": ["m", "m"], "subset": ["all", "all"]},
            **{"metric": ["accuracy", "auroc"], "estimate": [1.0, None], "low": [0.97, None], "high": [1.0, None]},
            **{"n": [9, 9], "n_clusters": [3, 3], "reason": [None, "one class"]},
        },
        schema_overrides={"estimate": pl.Float64},
    )
    text = summary(metrics, ["warning: x"], more=["differences"])
    assert text.splitlines()[0] == "d:"
    assert text.splitlines()[2].split() == ["m", "9", "1.000", ".970-1.000"]
    assert "there are also .differences" in text
    assert "1 warnings in .warnings, the first: warning: x" in text
