"""Groups of answers as a figure; the table is in test_marks.py."""

from dualread.reporting.figures import subgroups
from dualread.schema.tables import FigureLayout
from tests.reporting.figures.answers import labeled
from tests.reporting.tables import groups


def test_the_figure_has_a_page_per_column_and_a_line_per_group_with_an_interval():
    rows = groups.table(*groups.ROWS, groups.row("psr", "x", "auroc", 0.6, by="site"))
    layout = FigureLayout(
        study="mine",
        backbones=labeled(tiny="Tiny"),
        methods=labeled(psr="PSR", base="Base"),
        datasets=labeled(slake="SLAKE"),
    )
    drawing = subgroups.draw({"subgroups": rows}, layout)
    assert len(drawing.further) == 1
    drawn = drawing.values.filter(metric="auroc").select("by", "label", "estimate", "low", "high_retrained")
    assert drawn.rows() == [
        ("sex", "PSR: f", 0.7, 0.7 - 0.05, 0.7 + 0.1),
        ("sex", "PSR: m", 0.5, 0.5 - 0.05, 0.5 + 0.1),
        ("sex", "Base: f", 0.9, 0.9 - 0.05, 0.9 + 0.1),
        ("site", "PSR: x", 0.6, 0.6 - 0.05, 0.6 + 0.1),
    ]
