"""`snakemake --report` in Chromium: two tables, which need no model, in the order of the study, with captions."""

import zipfile

import pytest

from tests.reporting.devtools import needs_chromium
from tests.workflow.checkout import Checkout

pytestmark = [pytest.mark.rest, needs_chromium]
TABLES = ("tables/hparams.tex", "tables/data.tex")


def click(page, place):
    page.wait(f"{place} != null")
    page.value(f"{place}.click()")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    checkout = Checkout.create(tmp_path_factory.mktemp("reported"))
    for options in ((), ("--report=shown.zip",)):
        run = checkout.snakemake(*TABLES, *options)
        assert run.returncode == 0, run.text
    zipfile.ZipFile(checkout.folder / "shown.zip").extractall(checkout.folder)
    return checkout.folder / "shown/report.html"


def test_a_study_of_two_tables_shows_both(packed, browser):
    with browser.page() as page:
        page.open(packed.as_uri())
        click(page, "[...document.querySelectorAll('a')].find(a => a.innerText.trim() === 'Results')")
        page.wait("document.querySelectorAll('tbody tr').length === 2")
        rows = page.value("[...document.querySelectorAll('tbody tr')].map(row => row.innerText.trim())")
        assert [name for _, name in sorted(row.split() for row in rows)] == ["hparams", "data"]
        click(page, "document.querySelector('tbody tr a')")
        page.wait("document.querySelector('iframe') != null")
        assert page.value("document.querySelector('iframe').src").endswith(".html")
        assert not any("Error" in complaint for complaint in page.complaints)


def test_a_page_is_the_table_with_its_caption(packed, browser):
    (file,) = packed.parent.glob("data/raw/*/data.html")
    with browser.page() as page:
        page.open(file.as_uri())
        assert page.value("document.querySelector('caption').innerText").startswith("Data of study smoke")
        assert page.value("document.characterSet") == "UTF-8"
        for width in (400, 1200, 1920):
            page.picture(width, 800)
            assert page.value("document.querySelector('caption span').getBoundingClientRect().right") <= width
