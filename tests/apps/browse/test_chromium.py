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


def test_two_thousand_questions_are_listed(tmp_path, content, browser):
    def repeated(columns):
        return {name: values * 700 if isinstance(values, list) else values for name, values in columns.items()}

    content["questions"] = [
        {**question, "id": f"{question['id']}-{k}"} for k in range(700) for question in content["questions"]
    ]
    for run in content["runs"]:
        run["actors"] = {name: repeated(actor) for name, actor in run["actors"].items()}
        run["methods"] = {name: repeated(method) for name, method in run["methods"].items()}
    page = tmp_path / "many.html"
    page.write_text(render(content), encoding="utf-8")
    shown, complaints = shown_by(browser, page)
    assert complaints == []
    assert len(rows(shown)[0]) == 2100


def contrast(one, other):
    """The contrast of two colors as "rgb(r, g, b)", by WCAG 2.2."""

    def luminance(color):
        parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_selected_row_can_be_read(page, browser, scheme):
    with browser.page() as shown:
        shown.open(page.as_uri())
        assert shown.value(
            "document.activeElement === document.body"
        )  # a page that opens leaves the focus where it was
        shown.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        shown.open(page.as_uri())
        row = "document.querySelector('[aria-selected=true]')"
        ground = shown.value(f"getComputedStyle({row}).backgroundColor")
        for part in ("small", "span"):
            color = shown.value(f"getComputedStyle({row}.querySelector('{part}')).color")
            assert contrast(color, ground) >= 4.5, part


def test_without_scripts_the_form_is_not_shown(page, browser):
    with browser.page() as shown:
        shown.call("Emulation.setScriptExecutionDisabled", value=True)
        shown.call("Page.navigate", url=page.as_uri())
        names = set()
        while not [name for _, name in names if "needs JavaScript" in name]:
            names = shown.named()
        assert not {role for role, _ in names} & {"combobox", "button", "spinbutton", "searchbox"}


@pytest.mark.parametrize("width", [320, 1200])
def test_no_word_is_broken_and_the_page_scrolls_in_one_direction_only(tmp_path, content, browser, width):
    content["labels"]["actors"] = {name: "vl_calibration" for run in content["runs"] for name in run["actors"]}
    page = tmp_path / "browse.html"
    page.write_text(render(content), encoding="utf-8")
    broken = (
        "(() => { const cells = [...document.querySelectorAll('.table th, .table td')]; return cells.filter((cell) =>"
    )
    broken += " [...cell.childNodes].some((node) => { if (node.data !== 'vl_calibration') return false;"
    broken += " const range = document.createRange(); range.selectNode(node);"
    broken += " return range.getClientRects().length > 1; })).length; })()"
    with browser.page() as shown:
        shown.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        shown.open(page.as_uri())
        assert shown.value("document.body.textContent.includes('vl_calibration')")
        assert shown.value(broken) == 0
        assert shown.value("document.documentElement.scrollWidth <= innerWidth")
