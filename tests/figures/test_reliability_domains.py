import polars as pl

from dualread.figures import reliability_domains
from tests.figures.answers import LAYOUT, of_all


def test_every_data_set_has_a_page_on_the_same_axis():
    answers = of_all()["answers"]
    layout = {**LAYOUT, "datasets": [{"name": name, "label": name.upper()} for name in ("rad", "path")]}
    tables = {"answers": pl.concat([answers.with_columns(dataset=pl.lit(name)) for name in ("path", "rad")])}
    drawing = reliability_domains.draw(tables, layout)
    pages = (drawing.figure, *drawing.further)
    assert [page.get_suptitle() for page in pages] == ["RAD", "PATH"]  # in the layout's order
    assert {axes.get_xlim() for page in pages for axes in page.axes} == {(0, 1)}
    assert len({page.get_size_inches().tobytes() for page in pages}) == 1
    assert drawing.values.group_by("dataset", maintain_order=True).len().rows() == [("rad", 60), ("path", 60)]
