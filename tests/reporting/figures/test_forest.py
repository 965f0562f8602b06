import pytest
from matplotlib.colors import to_hex

from dualread.artifacts.tables import from_rows
from dualread.reporting.figures import forest
from dualread.reporting.figures.drawing import COLORS, house_style
from dualread.schema.columns import CONTRASTS, DIFFICULTY
from dualread.schema.tables import FigureLayout
from tests.reporting import forests
from tests.reporting.figures.answers import labeled
from tests.reporting.forests import LABELS, minus, own

LAYOUT = FigureLayout(
    study="s",
    backbones=labeled(tiny="Tiny", other="Other"),
    methods=labeled(**LABELS),
    datasets=labeled(slake="SLAKE-test"),
)
CCG = "natural_ccg_auc"
ROWS = [
    *forests.VALUES,
    *forests.TESTS,
    *(own(method, 0.6, CCG) for method in LABELS),
    *(minus(method, null, 0.9, metric=CCG) for method in "ab" for null in ("q", "qa")),
    *({**row, "backbone": "other"} for row in (*forests.VALUES, *forests.TESTS)),
    own("a", 0.1, "brier"),
    {**own("a", 0.2), "dataset": "elsewhere"},
]


def draw(rows=ROWS, limit=0.9, layout=LAYOUT):
    tables = {"contrasts": from_rows(rows, CONTRASTS)}
    if limit is not None:
        row = {name: value for name, value in own(None, limit).items() if name in DIFFICULTY.columns}
        known = [{**row, "actor": "rlvr", "reading": reading} for reading in ("own", "exchanged")]
        tables["difficulty"] = from_rows(known, DIFFICULTY)
    with house_style():
        return forest.draw(tables, layout)


def dots(axes):
    """Return {place of a method: (value, whether its dot is filled)}."""
    found = [line for line in axes.lines if line.get_marker() == "o"]
    return {line.get_ydata()[0]: (line.get_xdata()[0], line.get_markerfacecolor() != "white") for line in found}


def test_what_is_drawn_is_what_is_listed():
    drawing = draw()
    assert len(drawing.further) == 1
    left, right = drawing.figure.axes
    assert (left.get_title(), right.get_title()) == ("AUROC", "Natural CCG-AUC")
    assert dots(left) == {0: (0.8, True), 1: (0.75, False)}
    assert dots(right) == {0: (0.6, False), 1: (0.6, False)}
    assert [text.get_text() for text in left.get_yticklabels()] == ["Method A", "Method B"]
    lines = [(line.get_xdata()[0], line.get_linestyle()) for line in left.lines if line.get_marker() != "o"]
    assert lines == [(0.5, "-"), (0.6, "-"), (0.65, "-"), (0.9, ":")]  # chance, two nulls, what an image can tell
    bands = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in left.patches]
    assert bands == [(pytest.approx(0.5), pytest.approx(0.7)), (pytest.approx(0.55), pytest.approx(0.75))]
    listed = drawing.values.filter(backbone="tiny", metric="auroc", role="method")
    assert listed.select("method", "estimate", "low", "high", "above").rows() == [
        ("a", 0.8, pytest.approx(0.7), pytest.approx(0.9), True),
        ("b", 0.75, pytest.approx(0.65), pytest.approx(0.85), False),
    ]
    assert set(drawing.values["metric"]) == {"auroc", CCG}


def test_a_backbone_without_pairs_has_one_panel():
    page = draw().further[0]
    assert [axes.get_title() for axes in page.axes] == ["AUROC"]


def test_the_words_say_what_is_there_and_no_more():
    whole, bare = draw().figure, draw(forests.VALUES[:2], limit=None).figure
    words = {figure: [text.get_text() for text in figure.legends[0].get_texts()] for figure in (whole, bare)}
    assert words[whole] == [
        *("above both nulls", "not shown to be", "Question (null)", "Question and answer (null)"),
        "True difficulty of the image",
    ]
    assert words[bare] == ["interval above .5", "not shown to be"]
    assert whole.legends[0].get_title().get_text() == "Tiny, SLAKE-test, one run"
    assert "Holm" in whole.get_supxlabel()
    assert "Holm" not in bare.get_supxlabel()
    assert "retrained" not in whole.get_supxlabel()
    seeds = [own("a", 0.8, n_seeds=3, low_retrained=0.6, high_retrained=0.95)]
    again = draw(seeds, limit=None).figure
    assert again.legends[0].get_title().get_text() == "Tiny, SLAKE-test, mean over 3 seeds"
    assert "retrained" in again.get_supxlabel()


def test_few_images_are_pale_and_an_undefined_value_has_no_dot():
    (axes, *_) = draw([own("a", 0.8, short="donor"), own("b", None)], limit=None).figure.axes
    assert list(dots(axes)) == [0]
    (dot,) = (line for line in axes.lines if line.get_marker() == "o")
    assert to_hex(dot.get_color()) != COLORS[0].lower()
    assert [text.get_text() for text in axes.texts] == ["†", "undefined"]
