import io

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dualread.errors import ConfigError
from dualread.evaluation.metrics.selective import aurc
from dualread.reporting.figures import risk_coverage
from tests.reporting.figures.answers import LAYOUT, answers, of_all
from tests.specs import changed

# Seed 17 is right, wrong, right in the order of confidence; seed 29 wrong, right, right.
SEEDS = (
    answers([0.9, 0.8, 0.7], [True, False, True], seed=17),
    answers([0.9, 0.8, 0.7], [False, True, True], seed=29),
)


def drawn(drawing, **names):
    return drawing.values.filter(**{"backbone": "tiny", "method": "psr", **names})


def test_the_risk_at_each_coverage_is_the_mean_over_seeds():
    # 17: 0, 1/2, 1/3; 29: 1, 1/2, 1/3
    curve = drawn(risk_coverage.draw(of_all(*SEEDS), LAYOUT))
    assert curve["risk"].to_list() == pytest.approx([1 / 2, 1 / 2, 1 / 3])
    assert curve["coverage"].to_list() == pytest.approx([1 / 3, 2 / 3, 1])
    areas = [aurc(seed["confidence"].to_numpy(), seed["correct"].to_numpy()) for seed in SEEDS]
    assert curve["risk"].mean() == pytest.approx(np.mean(areas))


def test_the_lines_are_the_values_that_are_listed_and_none_is_cut():
    drawing = risk_coverage.draw(of_all(*SEEDS, answers([0.5] * 2, [False] * 2, backbone="other")), LAYOUT)
    for axes, backbone in zip(drawing.figure.axes, ("tiny", "other"), strict=True):
        for line, method in zip(axes.lines, ("rlvr", "psr"), strict=True):
            listed = drawn(drawing, backbone=backbone, method=method)
            assert list(line.get_ydata()) == listed["risk"].to_list()
            assert axes.get_ylim()[1] > max(line.get_ydata())
    assert [axes.get_title() for axes in drawing.figure.axes] == ["Tiny", "Other"]
    legend = drawing.figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["GRPO (RLVR)", "PSR"]
    styles = [(line.get_color(), line.get_linestyle()) for line in drawing.figure.axes[0].lines]
    assert len({color for color, _ in styles}) == len({dash for _, dash in styles}) == 2  # gray tells them apart


def test_without_an_error_there_is_an_axis_too():
    assert risk_coverage.draw(of_all(), LAYOUT).figure.axes[0].get_ylim() == (0, 0.05)


def test_more_methods_than_line_styles_are_refused():
    methods = [{"name": str(k), "label": str(k)} for k in range(8)]
    with pytest.raises(ConfigError, match="methods: 8 methods"):
        risk_coverage.draw(of_all(), changed(LAYOUT, methods=methods))


def test_a_long_line_lists_what_a_screen_shows(monkeypatch):
    random = np.random.default_rng(0)
    n = 5_000
    runs = [answers(random.random(n).tolist(), (random.random(n) < 0.7).tolist(), seed=seed) for seed in range(2)]
    thin = risk_coverage.draw(of_all(*runs), LAYOUT)
    monkeypatch.setattr(risk_coverage, "_MOST_DRAWN", n)
    whole = risk_coverage.draw(of_all(*runs), LAYOUT)
    listed, all_points = drawn(thin), drawn(whole)
    assert all_points.height == n
    assert listed.height <= 2_000
    # Every listed point is one of the line's, and each of 500 strips of ten points keeps its ends and extremes.
    assert listed.join(all_points, on=["kept", "coverage", "risk"]).height == listed.height
    strips = [part.with_columns(strip=(pl.col("kept") - 1) // 10) for part in (listed, all_points)]
    ends = [pl.col("risk").min().alias("low"), pl.col("risk").max().alias("high"), pl.col("risk").first()]
    shown = [part.sort("kept").group_by("strip", maintain_order=True).agg(*ends) for part in strips]
    assert shown[0].equals(shown[1])
    pictures = []
    for drawing in (thin, whole):
        drawing.figure.savefig(picture := io.BytesIO(), format="png", dpi=200)
        pictures.append(np.asarray(Image.open(picture)).astype(int))
    assert (abs(pictures[0] - pictures[1]).max(axis=2) > 64).mean() < 0.002  # of the pixels
