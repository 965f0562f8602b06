"""The report as a browser shows it."""

import io

import numpy as np
import pytest
from PIL import Image

from dualread.reporting.report.page import render
from tests.reporting.devtools import needs_chromium
from tests.reporting.report import study

pytestmark = needs_chromium


@pytest.fixture
def file(tmp_path):
    maker = study.finished(tmp_path)
    path = maker.study / "report.html"
    path.write_text(render(maker.study, maker.store, beside=maker.study), encoding="utf-8")
    return path


@pytest.fixture
def page(browser):
    with browser.page() as empty:
        yield empty


def test_a_browser_shows_tables_and_figures_without_an_error(file, page):
    page.open(file.as_uri())
    shown = page.dom()
    assert page.complaints == []
    assert shown.count("<h1>Study mine</h1>") == 1
    for name in ("main", "calib", "mine"):
        article = shown.partition(f'<article id="table-{name}"')[2].partition("</article>")[0]
        assert "<tbody>" in article
    assert "<b>.952</b><sub>±.004</sub>" in shown  # DualRead in distribution, as the paper prints it
    assert '<img alt="Training curves of the actors' in shown


def test_the_policy_refuses_a_request(file, page):
    """So the test above would see any request that the page makes."""
    file.write_text(file.read_text().replace("<body>", '<body><img alt="" src="file:///nowhere.png">'))
    page.open(file.as_uri())
    assert any("Content Security Policy" in line for line in page.complaints)


@pytest.mark.parametrize("width", [1400, 500])
def test_a_picture_of_it_is_not_blank(file, page, width):
    page.open(file.as_uri())
    picture = page.picture(width, 1600)
    assert page.complaints == []
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("L"))
    assert pixels.shape == (1600, width)
    written = (pixels < 128).mean(axis=1) > 0  # rows with dark pixels
    assert written[:200].any()
    assert written.mean() > 0.3
