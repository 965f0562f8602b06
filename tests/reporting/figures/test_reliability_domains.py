import polars as pl

from dualread.reporting.figures import reliability_domains
from dualread.schema.tables import Labeled
from tests.reporting.figures.answers import LAYOUT, of_all
from tests.specs import changed


def test_every_backbone_has_a_page_with_a_column_per_data_set_on_the_same_axis():
    answers = of_all()["answers"]
    layout = changed(LAYOUT, datasets=[Labeled(name=name, label=name.upper()) for name in ("rad", "path")])
    tables = {"answers": pl.concat([answers.with_columns(dataset=pl.lit(name)) for name in ("path", "rad")])}
    drawing = reliability_domains.draw(tables, layout)
    pages = (drawing.figure, *drawing.further)
    assert [page.get_suptitle() for page in pages] == ["Tiny", "Other"]
    for page in pages:
        assert [axes.texts[0].get_text() for axes in page.axes[:2]] == ["RAD", "PATH"]  # in the layout's order
    assert {axes.get_xlim() for page in pages for axes in page.axes} == {(0, 1)}
    assert len({page.get_size_inches().tobytes() for page in pages}) == 1
    rows = drawing.values.group_by("backbone", "dataset", maintain_order=True).len().rows()
    assert rows == [("tiny", "rad", 30), ("tiny", "path", 30), ("other", "rad", 30), ("other", "path", 30)]
