import polars as pl
import pytest

from dualread.figures import reliability
from dualread.figures._drawing import COLORS, house_style
from dualread.figures._reliability import diagram
from tests.figures.answers import LAYOUT, of_all
from tests.figures.answers import answers as of_run


def answers(confidence, correct):
    return pl.DataFrame(
        {"confidence": confidence, "correct": correct}, schema={"confidence": pl.Float64, "correct": bool}
    )


# .2 and .25 are in [3/15, 4/15), 1.0 and .95 in [14/15, 1]
ANSWERS = answers([0.2, 0.25, 1.0, 0.95], [False, True, True, True])


def test_every_bin_is_listed_and_empty_ones_have_no_share():
    values = diagram({"mine": ANSWERS}).values
    assert values["bin"].to_list() == list(range(15))
    filled = values.filter(pl.col("n") > 0)
    assert filled.rows() == [
        ("mine", 3, 3 / 15, 4 / 15, 2, pytest.approx(0.225), 0.5),
        ("mine", 14, 14 / 15, 1.0, 2, pytest.approx(0.975), 1.0),
    ]
    assert values["share_correct"].null_count() == values["mean_confidence"].null_count() == 13


def test_what_is_drawn_is_what_is_listed():
    figure = diagram({"mine": ANSWERS}).figure
    shares, counts = figure.axes
    assert shares.get_title() == "mine\nn = 4, ECE-15 0.150"  # (2 |.5 - .225| + 2 |1 - .975|) / 4
    assert [(bar.get_x(), bar.get_height()) for bar in shares.patches] == [(3 / 15, 0.5), (14 / 15, 1.0)]
    line, dots = shares.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0, 1], [0, 1])
    assert (list(dots.get_xdata()), list(dots.get_ydata())) == (pytest.approx([0.225, 0.975]), [0.5, 1.0])
    assert [bar.get_height() for bar in counts.patches] == [2 if k in (3, 14) else 0 for k in range(15)]
    assert [text.get_text() for text in counts.texts] == ["2", "2"]


def test_gray_tells_bars_from_dots():
    figure = diagram({"mine": ANSWERS}).figure
    bar, dots = figure.axes[0].patches[0], figure.axes[0].lines[1]
    red, green, blue, _ = bar.get_facecolor()
    assert 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
    assert dots.get_color() == COLORS[-1] == "#000000"


@pytest.mark.parametrize(("n", "shape"), [(1, (1, 1)), (2, (1, 2)), (3, (2, 2))])
def test_every_method_has_a_panel(n, shape):
    with house_style():
        figure = diagram({f"m{k}": ANSWERS for k in range(n)}).figure
        figure.draw_without_rendering()
    assert len(figure.axes) == 2 * shape[0] * shape[1]
    shown = [axes.get_title().splitlines()[0] for axes in figure.axes if axes.get_title()]
    assert sorted(shown) == [f"m{k}" for k in range(n)]
    assert sum(axes.axison for axes in figure.axes) == 2 * n


def test_a_name_is_not_a_formula():
    figure = diagram({"a$_b$": ANSWERS}).figure
    figure.draw_without_rendering()
    assert figure.axes[0].get_title().startswith("a$_b$\n")


def test_the_order_of_rows_changes_nothing():
    assert diagram({"mine": ANSWERS}).values.equals(diagram({"mine": ANSWERS.reverse()}).values)


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
    titles = [axes.get_title(loc="left") for axes in drawing.figure.axes]
    assert titles.count("PSR: pooled ECE-15 0.425, n = 4") == 1
    assert titles.count("GRPO (RLVR): pooled ECE-15 0.000, n = 2") == 2


def test_a_column_a_backbone_a_row_a_method_and_the_masses_below():
    figure = reliability.draw(of_all(*SEEDS), LAYOUT).figure
    grid = [figure.axes[start : start + 2] for start in range(0, len(figure.axes), 2)]  # room, shares, masses; twice
    assert [axes.get_title() for axes in grid[0]] == ["Tiny", "Other"]
    names = [[axes.get_title(loc="left").split(":")[0] for axes in row] for row in (grid[1], grid[4])]
    assert names == [["GRPO (RLVR)"] * 2, ["PSR"] * 2]
    shares, masses = grid[4][0], grid[5][0]
    assert [bar.get_height() for bar in shares.patches] == [0.5, 1.0, 0.0]
    heights = {round(bar.get_x() * 15): bar.get_height() for bar in masses.patches if bar.get_height()}
    assert heights == {3: 0.5, 13: 0.25, 14: 0.25}
    assert {axes.get_xlim() for row in grid for axes in row} == {(0, 1)}  # supports can be compared


def test_nothing_is_cut_and_no_panel_overlaps_another():
    with house_style():
        figure = reliability.draw(of_all(*SEEDS), LAYOUT).figure
        figure.draw_without_rendering()
    page = figure.bbox
    boxes = [axes.get_tightbbox() for axes in figure.axes if axes.axison]
    for box in [*boxes, figure.texts[0].get_window_extent()]:
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
    assert not [1 for k, one in enumerate(boxes) for other in boxes[k + 1 :] if one.overlaps(other)]


def test_every_data_set_has_a_page():
    other = of_all()["answers"].with_columns(dataset=pl.lit("rad"))
    layout = {**LAYOUT, "datasets": [*LAYOUT["datasets"], {"name": "rad", "label": "VQA-RAD"}]}
    drawing = reliability.draw({"answers": pl.concat([of_all(*SEEDS)["answers"], other])}, layout)
    assert [page.get_suptitle() for page in (drawing.figure, *drawing.further)] == ["SLAKE-test", "VQA-RAD"]
    assert drawing.values.group_by("dataset", maintain_order=True).len().rows() == [("slake", 60), ("rad", 60)]


def test_the_order_of_answers_changes_no_value():
    tables = of_all(*SEEDS)
    turned = {"answers": tables["answers"].reverse()}
    assert reliability.draw(tables, LAYOUT).values.equals(reliability.draw(turned, LAYOUT).values)
