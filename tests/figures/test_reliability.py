import polars as pl
import pytest

from dualread.figures._drawing import COLORS, house_style
from dualread.figures._reliability import diagram


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
