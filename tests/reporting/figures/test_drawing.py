import re
import zlib

import matplotlib.layout_engine
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from PIL import Image

from dualread.reporting.figures import reliability, reliability_diagram, reliability_domains, risk_coverage, training
from dualread.reporting.figures.drawing import LONGEST_SIDE, Drawing, house_style, save
from dualread.reporting.figures.reliability_diagram import diagram
from tests.reporting import forests
from tests.reporting.figures import cases, logs
from tests.reporting.figures.answers import LAYOUT, answers, labeled, of_all
from tests.specs import changed


def saved(folder, pages):
    with house_style():
        first, *further = [draw() for draw in pages]
        save(Drawing(figure=first, values=pl.DataFrame({"a": [1]}), further=further), folder, "mine", title="t")
    with Image.open(folder / "mine.png") as picture:
        return picture.convert("RGB")


def page(color, size=(2.0, 1.0)):
    return lambda: Figure(figsize=size, facecolor=color)


def test_pages_stand_beside_each_other_where_that_is_closer_to_the_shape_of_a_screen(tmp_path):
    pixels = np.asarray(saved(tmp_path, [page("red", (1.0, 1.5)), page("lime", (1.0, 1.5))]))
    assert pixels.shape == (300, 400, 3)  # 200 dots per inch
    assert (pixels[150, 100].tolist(), pixels[150, 300].tolist()) == ([255, 0, 0], [0, 255, 0])
    pixels = np.asarray(saved(tmp_path, [page("red"), page("lime")]))
    assert pixels.shape == (400, 400, 3)  # 1 : 1 is closer to 1.6 than 4 : 1 is
    assert (pixels[100, 200].tolist(), pixels[300, 200].tolist()) == ([255, 0, 0], [0, 255, 0])


def test_a_place_without_a_page_is_white(tmp_path):
    pixels = np.asarray(saved(tmp_path, [page(color, (1.0, 1.0)) for color in ("red", "lime", "blue")]))
    assert pixels.shape == (400, 400, 3)
    assert pixels[300, 100].tolist() == [0, 0, 255]
    assert pixels[300, 300].tolist() == [255, 255, 255]


@pytest.mark.parametrize("n", [1, 7])
def test_no_side_of_the_picture_is_longer_than_the_limit(tmp_path, n):
    picture = saved(tmp_path, [page("red", (7.1, 8.9))] * n)
    assert max(picture.size) <= LONGEST_SIDE


RUN = answers([0.2, 0.7, 0.9], [False, True, True])
DRAWINGS = {
    "diagram": lambda: diagram({"mine": RUN}),
    "reliability": lambda: reliability.draw(of_all(RUN), LAYOUT),
    "risk_coverage": lambda: risk_coverage.draw(of_all(RUN), LAYOUT),
    "training": lambda: training.draw(logs.LOGS, logs.LAYOUT),
}


@pytest.mark.parametrize("name", ["diagram", "training"])
def test_letters_are_embedded_as_outlines_and_never_as_type_3_fonts(tmp_path, name):
    with house_style():
        save(DRAWINGS[name](), tmp_path, "mine", title="t")
    pdf = (tmp_path / "mine.pdf").read_bytes()
    objects = pdf + b"".join(_unpacked(pdf))
    subtypes = set(re.findall(rb"/Subtype\s*/(Type0|Type1|TrueType|CIDFontType\d|Type3)", objects))
    assert subtypes == {b"Type0", b"CIDFontType2"}  # TrueType outlines, addressed by glyph
    assert b"/FontFile2" in objects


def _unpacked(pdf):
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            yield zlib.decompress(stream)
        except zlib.error:
            continue  # not compressed


def test_the_layout_engine_runs_once_for_both_files(tmp_path, monkeypatch):
    solved = []
    solve = matplotlib.layout_engine.ConstrainedLayoutEngine.execute

    def counted(engine, figure):
        solved.append(figure)
        return solve(engine, figure)

    monkeypatch.setattr(matplotlib.layout_engine.ConstrainedLayoutEngine, "execute", counted)
    with house_style():
        for draw in DRAWINGS.values():
            drawing = draw()
            before = len(solved)
            has_engine = drawing.figure.get_layout_engine() is not None
            save(drawing, tmp_path, "mine", title="t")
            assert len(solved) - before == has_engine
    assert solved


def many(layout, label, **kinds):
    """The layout with so many entries of each kind, under such labels."""
    names = {kind: labeled(**{f"m{k}": f"{label} {k}" for k in range(n)}) for kind, n in kinds.items()}
    return changed(layout, backbones=layout.backbones[:1], **names)


def of_all_in(layout, *runs):
    rows = [answers(*runs, method=m.name, dataset=d.name) for m in layout.methods for d in layout.datasets]
    return {"answers": pl.concat(rows)}


def long_legend():
    layout = many(LAYOUT, "A method of five agents, with a vote among their stated confidences", methods=7)
    return risk_coverage.draw(of_all_in(layout, [0.5, 0.7], [True, False]), layout)


def full_page():
    layout = many(LAYOUT, "Entry number", methods=5, datasets=4)
    confidence = [k / 15 for k in range(15)] * 100 + [0.5] * 1000
    return reliability_domains.draw(of_all_in(layout, confidence, [True] * len(confidence)), layout)


def long_forest():
    layout = many(cases.FOREST, "A method with a rather long name, number", methods=20)
    layout = changed(layout, methods=[*layout.methods, *cases.FOREST.methods])
    rows = [of for m in layout.methods[:20] for of in (forests.own(m.name, 0.7), forests.minus(m.name, "q", 0.5))]
    return cases.forest_of([*cases.ROWS, *rows], layout=layout)


PAGES = {
    **{"reliability": DRAWINGS["reliability"], "a full page": full_page},
    **{"a long legend": long_legend, "a long forest": long_forest},
    **{name: lambda name=name: cases.CASES[name](None) for name in ("robustness", "layers", "training signals")},
}


def is_apart(figure, boxes):
    """Assert that nothing reaches out of the page, and that nothing overlaps another."""
    page = figure.bbox
    for box in boxes:
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
    assert not [1 for k, one in enumerate(boxes) for other in boxes[k + 1 :] if one.overlaps(other)]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_and_nothing_overlaps(name, monkeypatch):
    monkeypatch.setattr(reliability_diagram, "ece_noise_floor", lambda *_: 0.012)  # slow, and always so wide in print
    with house_style():
        figure = PAGES[name]().figure
        figure.draw_without_rendering()
    is_apart(figure, [axes.get_tightbbox() for axes in figure.axes])
    is_apart(figure, [text.get_window_extent() for text in (*figure.texts, *figure.legends)])


def test_no_example_is_cut(tmp_path):
    image = tmp_path / "image.png"
    Image.new("RGB", (8, 6), "gray").save(image)
    with house_style():
        figure = cases.examples(image).figure
        figure.draw_without_rendering()
    for part in (part for row in figure.subfigs for part in row.subfigs):
        is_apart(figure, [axes.get_tightbbox() for axes in part.axes])
