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


def shows_at(page, file, width):
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    page.open(file.as_uri())
    page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


@pytest.fixture(params=[320, 400, 1200, 1920])
def wide(request, file, page):
    shows_at(page, file, request.param)
    return page


def test_the_page_scrolls_in_one_direction_only(wide):
    assert wide.value("document.documentElement.scrollWidth <= innerWidth")
    assert wide.complaints == []


def test_a_caption_is_as_wide_as_what_is_seen_of_its_table(wide):
    """A wide table scrolls in a box of its own, and a scrollbar of the page takes room from it."""
    cut = "[...document.querySelectorAll('.scroll')].filter((box) => [...box.querySelectorAll('caption span')].some("
    cut += "(span) => span.getBoundingClientRect().right > box.getBoundingClientRect().right + 1)).length"
    assert wide.value(cut) == 0


def test_links_of_the_contents_can_be_hit(wide):
    assert wide.value("Math.min(...[...document.querySelectorAll('nav a')].map((a) => a.offsetHeight))") >= 24


def test_a_click_on_a_head_sorts_and_another_one_turns_the_order(file, page):
    page.open(file.as_uri())
    table = "[...document.querySelectorAll('table.grid')].find((one) => one.caption.textContent.startsWith('Seconds'))"
    rows = f"[...{table}.tBodies[0].rows].map((row) => row.cells[1].textContent)"
    button = f"{table}.tHead.rows[0].cells[1].querySelector('button')"
    before = page.value(rows)
    for direction, order in (("descending", -1), ("ascending", 1)):
        page.value(f"{button}.click()")
        assert page.value(f"{table}.tHead.rows[0].cells[1].getAttribute('aria-sort')") == direction
        assert page.value(rows) == sorted(before, key=lambda text: order * float(text.replace(",", "")))
    assert page.complaints == []
    assert ("button", "Seconds") in {pair for pair in page.named() if pair[0] == "button"}


def test_without_scripts_there_is_nothing_to_click(file, page):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.call("Page.navigate", url=file.as_uri())
    names = set()
    while ("heading", "Results") not in names:
        names = page.named()
    assert not [name for role, name in names if role == "button"]
