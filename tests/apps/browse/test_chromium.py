"""The page as a browser shows it: its lists, filters and keys."""

import re

import pytest

from dualread.apps.browse.page import collect, render
from tests.apps.browse import study
from tests.reporting.devtools import needs_chromium

pytestmark = needs_chromium


@pytest.fixture
def content(tmp_path):
    return collect(study.write(tmp_path / "mine"), split="test")


@pytest.fixture
def page(tmp_path, content):
    path = tmp_path / "browse.html"
    path.write_text(render(content), encoding="utf-8")
    return path


def shown_by(browser, file, address=""):
    """Return the page in `file` as HTML, and its complaints. `address` follows its own, such as "#verdict=wrong"."""
    with browser.page() as page:
        page.open(file.as_uri() + address)
        return page.dom(), page.complaints


def rows(shown):
    """Return the numbers of the listed questions, and that of the selected one."""
    listed = shown.partition('<div id="list"')[2].partition("<article")[0]
    chosen = re.search(r'id="row-(\d+)" aria-selected="true"', listed)
    return [int(row) for row in re.findall(r'id="row-(\d+)"', listed)], chosen and int(chosen[1])


def press(page, *keys):
    """Make the page press keys after it has loaded. Its policy would refuse the script, so it is replaced."""
    policy = re.compile(r"script-src '[^']+'")
    script = "".join(f'document.dispatchEvent(new KeyboardEvent("keydown", {{key: "{key}"}}));' for key in keys)
    text = policy.sub("script-src 'unsafe-inline'", page.read_text(encoding="utf-8"))
    page.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")


def test_all_questions_are_listed_and_the_first_is_shown(page, browser):
    shown, complaints = shown_by(browser, page)
    assert complaints == []
    assert rows(shown) == ([0, 1, 2], 0)
    assert "3 of 3 questions (test): 2 right, 1 wrong" in shown
    article = shown.partition('<article id="question"')[2].partition("</article>")[0]
    assert article.count("<img") == 2  # the image and the donor's
    numbers = re.findall(r'<tr class="chosen">.*?</tr>', article)
    assert re.findall(r"\d\.\d{3}", numbers[0]) == ["0.900", "0.200", "0.700"]  # on both images, and the drop


def test_texts_of_data_sets_and_models_stay_texts(page, browser):
    shown, complaints = shown_by(browser, page, "#question=mine/test/3")
    assert complaints == []
    assert "<title>mine: questions and confidences</title>" in shown
    assert "&lt;b&gt;bold" in shown


FILTERS = {  # address: questions that are listed
    **{"verdict=wrong": [1], "verdict=right": [0, 2], "low=0.9": [0, 1], "high=0.5": [2], "donor=paired": [0]},
    **{"donor=decisive": [0], "donor=stays": [], "search=LIVER": [2], "order=high": [1, 0, 2], "order=low": [2, 0, 1]},
    "order=drop": [0, 1, 2],  # without a donor there is no drop: these come last
    **{"method=baseline": [0, 1, 2], "method=baseline&verdict=invalid": [2], "method=baseline&verdict=right": [1]},
}


def test_the_address_filters_and_orders(page, browser):
    for address, expected in FILTERS.items():
        shown, _ = shown_by(browser, page, f"#{address}")
        assert rows(shown) == (expected, expected[0] if expected else None), address


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["j"], ([0, 1, 2], 1)),
        (["ArrowDown", "ArrowDown", "ArrowDown"], ([0, 1, 2], 2)),
        (["End", "k"], ([0, 1, 2], 1)),
        (["End", "Home"], ([0, 1, 2], 0)),
        (["w"], ([1], 1)),  # the wrong answer with a confidence of at least .9
        (["w", "a"], ([0, 1, 2], 1)),
    ],
)
def test_keys_move_and_filter(page, browser, keys, expected):
    press(page, *keys)
    shown, complaints = shown_by(browser, page)
    assert complaints == []
    assert rows(shown) == expected


def test_of_reports_the_claims_are_counted(tmp_path, content, browser):
    [run] = content["runs"]
    for answers in run["actors"].values():
        labels = iter([[True, False], [], [None, True, True]])
        answers["original"] = [["told", None, "", [[0, 0, of, "id"] for of in next(labels)]] for _ in range(3)]
    (tmp_path / "reports.html").write_text(render(content), encoding="utf-8")
    shown, complaints = shown_by(browser, tmp_path / "reports.html")
    assert complaints == []
    assert "3 of 3 questions (test): 5 claims: 3 supported, 1 unsupported, 1 without a label" in shown
