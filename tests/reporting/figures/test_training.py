import math

import polars as pl
import pytest

from dualread.errors import ArtifactError, ConfigError
from dualread.reporting.figures import training
from tests.reporting.figures.logs import LAYOUT, LOGS, log
from tests.specs import changed

PANELS = [quantity.name for quantity in training.QUANTITIES]


def drawn(drawing, quantity, seed, column="value"):
    rows = drawing.values.filter(quantity=quantity, seed=seed).sort("step")
    return dict(zip(rows["step"], rows[column], strict=True))


def panel(drawing, quantity):
    return drawing.figure.axes[PANELS.index(quantity)]


@pytest.fixture(scope="module")
def drawing():
    return training.draw(LOGS, LAYOUT)


def test_every_seed_and_the_mean_over_seeds(drawing):
    assert drawn(drawing, "reward", "17") == {1: 0.25, 2: 0.5, 3: 0.75}
    assert drawn(drawing, "reward", "29") == {1: 0.75, 2: 0.5, 3: 0.25}
    assert drawn(drawing, "reward", "mean") == {1: 0.5, 2: 0.5, 3: 0.5}
    assert set(drawing.values["seed"]) == {"17", "29", "mean"}
    assert set(drawing.values["quantity"]) == set(PANELS)  # the learning rate is not among them


def test_missing_and_nan_values_are_gaps_and_the_mean_needs_all_seeds(drawing):
    assert drawn(drawing, "stated_confidence", "17") == {1: 0.5, 2: None, 3: 0.9}
    assert drawn(drawing, "gradient_norm", "29") == {1: 3.0, 2: 2.0, 3: None}
    assert drawn(drawing, "gradient_norm", "mean") == {1: 2.0, 2: 2.0, 3: None}
    confidence = drawn(drawing, "stated_confidence", "mean")
    assert confidence == {1: pytest.approx(0.6), 2: None, 3: pytest.approx(0.9)}
    assert set(drawn(drawing, "valid_format", "mean").values()) == {None}  # in no log: no number at all


def test_the_band_is_one_deviation_to_both_sides_of_the_mean(drawing):
    # step 1: mean (.5 + .7) / 2 = .6, deviation (.1 + .3) / 2 = .2; step 3: .9 and .2
    low, high = (drawn(drawing, "stated_confidence", "mean", column) for column in ("low", "high"))
    assert low == {1: pytest.approx(0.4), 2: None, 3: pytest.approx(0.7)}
    assert high == {1: pytest.approx(0.8), 2: None, 3: pytest.approx(1.1)}
    assert drawing.values.filter(pl.col("seed") != "mean")["low"].null_count() == 2 * 6 * 3
    assert drawing.values.filter(pl.col("quantity") == "reward")["high"].null_count() == 3 * 3


def test_the_lines_are_the_values_that_are_listed(drawing):
    for quantity in PANELS:
        seeds = ("17", "29", "mean")
        for seed, line in zip(seeds, panel(drawing, quantity).lines, strict=True):
            listed = drawn(drawing, quantity, seed)
            assert list(line.get_xdata()) == list(listed)
            shown = [None if math.isnan(value) else value for value in line.get_ydata()]
            assert shown == list(listed.values())
    thin, _, thick = panel(drawing, "reward").lines
    assert thick.get_linewidth() > 2 * thin.get_linewidth()
    assert thin.get_color() == thick.get_color()


def test_a_value_between_two_gaps_gets_a_dot():
    logs = {"train_log/tiny/rlvr/17": log(reward={1: 0.1, 2: math.nan, 3: 0.3, 4: math.nan, 5: 0.5, 6: 0.6})}
    line = panel(training.draw(logs, LAYOUT), "reward").lines[0]
    assert line.get_markevery() == [0, 2]  # steps 1 and 3; 5 and 6 are joined by a line


def test_a_panel_without_a_value_says_so(drawing):
    assert [text.get_text() for text in panel(drawing, "valid_format").texts] == ["not logged"]
    assert not panel(drawing, "reward").texts


def test_missing_logs_and_too_many_actors_are_refused():
    with pytest.raises(ArtifactError, match=r"no train log of tiny/rlvr; found: other\."):
        training.draw({"other": LOGS["train_log/tiny/rlvr/17"]}, LAYOUT)
    twice = pl.concat([log(reward={1: 0.1}), log(reward={1: 0.2})])
    with pytest.raises(ArtifactError, match="train_log/tiny/rlvr/17: reward occurs twice at step 1"):
        training.draw({"train_log/tiny/rlvr/17": twice}, LAYOUT)
    with pytest.raises(ArtifactError, match="train_log/tiny/rlvr/17: columns"):
        training.draw({"train_log/tiny/rlvr/17": twice.drop("step")}, LAYOUT)
    actors = [{"name": str(k), "label": str(k)} for k in range(8)]
    with pytest.raises(ConfigError, match="8 actors, but there are 7 colors"):
        training.draw({}, changed(LAYOUT, actors=actors))
