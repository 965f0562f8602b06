import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from dualread.reporting.figures import reliability
from dualread.reporting.figures.reliability_diagram import diagram
from dualread.schema.tables import Labeled
from tests.reporting.figures.answers import LAYOUT, of_all
from tests.reporting.figures.answers import answers as of_run
from tests.specs import changed


def answers(confidence, correct, images=None):
    images = images or [f"image {k}" for k in range(len(confidence))]
    types = {"cluster_id": pl.String, "confidence": pl.Float64, "correct": bool}
    return pl.DataFrame({"cluster_id": images, "confidence": confidence, "correct": correct}, schema=types)


# .2 and .25 are in [3/15, 4/15), 1.0 and .95 in [14/15, 1]
ANSWERS = answers([0.2, 0.25, 1.0, 0.95], [False, True, True, True])


def test_every_bin_is_listed_and_empty_ones_have_no_share():
    values = diagram({"mine": ANSWERS}).values
    assert values["bin"].to_list() == list(range(15))
    filled = values.filter(pl.col("n") > 0)
    assert filled.drop("low", "high").rows() == [
        ("mine", 3, 3 / 15, 4 / 15, 2, 2, pytest.approx(0.225), 0.5),
        ("mine", 14, 14 / 15, 1.0, 2, 2, pytest.approx(0.975), 1.0),
    ]
    for column in ("share_correct", "mean_confidence", "low", "high"):
        assert values[column].null_count() == 13


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (3, 10), (50, 50), (17, 1061)])
def test_the_interval_is_that_of_scipy_where_every_answer_has_its_own_image(right, n):
    frame = answers([0.5] * n, [k < right for k in range(n)])
    (row,) = diagram({"mine": frame}).values.filter(pl.col("n") > 0).iter_rows(named=True)
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert (row["low"], row["high"]) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_answers_on_one_image_are_one_observation_of_the_interval():
    # 4 of 8 answers are right, on 2 images: the interval of 1 of 2 above, not that of 4 of 8
    frame = answers([0.5] * 8, [True, False] * 4, images=["a", "a", "a", "a", "b", "b", "b", "b"])
    (row,) = diagram({"mine": frame}).values.filter(pl.col("n") > 0).iter_rows(named=True)
    assert (row["n"], row["n_clusters"], row["share_correct"]) == (8, 2, 0.5)
    assert (row["low"], row["high"]) == (pytest.approx(0.5 - 0.405469, abs=2e-6), pytest.approx(0.905469, abs=2e-6))


def whiskers(axes):
    return [tuple(segment[:, 1]) for of_bins in axes.collections for segment in of_bins.get_segments()]


def test_bins_of_few_images_are_drawn_weaker_than_others():
    sure = answers([0.5] * 10, [True] * 9 + [False])
    unsure = answers([0.9] * 30, [True] * 30, images=[f"image {k % 9}" for k in range(30)])
    axes = diagram({"mine": pl.concat([sure, unsure])}).figure.axes[0]
    luminance = {}
    for bar in axes.patches:
        red, green, blue, _ = bar.get_facecolor()
        luminance[round(bar.get_height(), 2)] = 0.299 * red + 0.587 * green + 0.114 * blue
    assert luminance[1.0] == pytest.approx(1)  # nine images: white, with an outline
    assert luminance[0.9] < 0.7
    fills = {tuple(line.get_ydata()): line.get_markerfacecolor() for line in axes.lines[1:]}
    assert fills == {(0.9,): "#000000", (1.0,): "white"}


def test_the_drawn_values_are_the_listed_ones():
    figure = diagram({"mine": ANSWERS}).figure
    shares, counts = figure.axes
    assert shares.get_title() == "mine\nn = 4, ECE-15 0.150"  # (2 |.5 - .225| + 2 |1 - .975|) / 4
    assert [(bar.get_x(), bar.get_height()) for bar in shares.patches] == [(3 / 15, 0.5), (14 / 15, 1.0)]
    line, *dots = shares.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0, 1], [0, 1])
    places = [(x, y) for of_bins in dots for x, y in zip(of_bins.get_xdata(), of_bins.get_ydata(), strict=True)]
    assert places == [(pytest.approx(0.225), 0.5), (pytest.approx(0.975), 1.0)]
    filled = diagram({"mine": ANSWERS}).values.filter(pl.col("n") > 0)
    assert whiskers(shares) == filled.select("low", "high").rows()
    assert [bar.get_height() for bar in counts.patches] == [2 if k in (3, 14) else 0 for k in range(15)]
    assert [text.get_text() for text in counts.texts] == ["2", "2"]


def test_a_name_is_not_read_as_a_formula():
    figure = diagram({"a$_b$": ANSWERS}).figure
    figure.draw_without_rendering()
    assert figure.axes[0].get_title().startswith("a$_b$\n")


# Two seeds of one method: 17 has .2 wrong and .9 right, 29 has .2 right and 1.0 wrong.
SEEDS = (of_run([0.2, 0.9], [False, True], seed=17), of_run([0.2, 1.0], [True, False], seed=29))


def test_answers_of_all_seeds_are_pooled_and_the_error_is_called_pooled():
    drawing = reliability.draw(of_all(*SEEDS), LAYOUT)
    cell = drawing.values.filter(backbone="tiny", method="psr")
    assert cell.filter(pl.col("n") > 0).select("bin", "n", "mean_confidence", "share_correct").rows() == [
        (3, 2, pytest.approx(0.2), 0.5),
        (13, 1, 0.9, 1.0),
        (14, 1, 1.0, 0.0),
    ]
    # (2 |.5 - .2| + |1 - .9| + |0 - 1|) / 4 = (.6 + .1 + 1) / 4; the mean over the two seeds would be
    # ((|0 - .2| + |1 - .9|) / 2 + (|1 - .2| + |0 - 1|) / 2) / 2 = .525
    assert cell["pooled_ece"].to_list() == pytest.approx([0.425] * 15)
    (floor,) = set(cell["pooled_floor"])
    titles = [axes.get_title(loc="left") for axes in drawing.figure.axes]
    assert titles.count(f"ECE-15 0.425 ({floor:.3f}), n = 4") == 1
    assert titles.count("ECE-15 0.000 (0.000), n = 2") == 3
    assert "pooled over seeds" in drawing.figure.get_supxlabel()
    assert "one observation per image" in drawing.figure.get_supxlabel()


def test_one_column_per_backbone_one_row_per_method_and_the_number_of_answers_above_each_bin():
    drawing = reliability.draw(of_all(*SEEDS), LAYOUT)
    grid = np.reshape(drawing.figure.axes, (2, 2))
    assert [axes.texts[0].get_text() for axes in grid[0]] == ["Tiny", "Other"]
    assert [axes.get_ylabel() for axes in grid[:, 0]] == ["GRPO (RLVR)", "PSR"]
    shares = grid[1, 0]
    assert [bar.get_height() for bar in shares.patches] == [0.5, 1.0, 0.0]
    numbers = [(int(text.xy[0] * 15), text.get_text()) for text in shares.texts]
    assert numbers == [(3, "2"), (13, "1"), (14, "1")]
    cell = drawing.values.filter(pl.col("n") > 0, backbone="tiny", method="psr")
    assert whiskers(shares) == cell.select("low", "high").rows()
    assert {axes.get_xlim() for axes in grid.flat} == {(0, 1)}  # supports can be compared


def test_every_data_set_has_a_page():
    other = of_all()["answers"].with_columns(dataset=pl.lit("rad"))
    layout = changed(LAYOUT, datasets=[*LAYOUT.datasets, Labeled(name="rad", label="VQA-RAD")])
    drawing = reliability.draw({"answers": pl.concat([of_all(*SEEDS)["answers"], other])}, layout)
    assert [page.get_suptitle() for page in (drawing.figure, *drawing.further)] == ["SLAKE-test", "VQA-RAD"]
    assert drawing.values.group_by("dataset", maintain_order=True).len().rows() == [("slake", 60), ("rad", 60)]
