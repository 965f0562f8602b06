"""evaluate.html says of anybody's table what its metrics say, and loads nothing."""

import re

import polars as pl
import pytest

from dualread.apps.evaluate import files
from dualread.apps.evaluate.evaluation import evaluate
from dualread.apps.evaluate.page import render
from dualread.apps.evaluate.printed import everything, first
from dualread.apps.evaluate.report import evaluation_report
from dualread.evaluation.explained import COUNTS
from dualread.reporting.pages import digest
from tests.apps.evaluate.tables import ANSWERS, MORE_ANSWERS, MORE_PAIRS, PAIRS, many, write
from tests.reporting.devtools import needs_chromium


@pytest.fixture
def written(tmp_path):
    def write_all(answers=ANSWERS, pairs=None, *, is_drawn=False, **options):
        table = write(tmp_path, "mine.csv", answers)
        donors = None if pairs is None else write(tmp_path, "pairs.csv", pairs)
        found, out = evaluate(table, donors, replicates=50, **options), tmp_path / "out"
        if is_drawn:
            files.write(found, evaluation_report(found), out)
        else:  # to draw the pictures takes seconds
            out.mkdir(exist_ok=True)
            for name in ("reliability", "risk_coverage"):
                (out / f"{name}.png").write_bytes(b"")
            (out / "evaluate.html").write_text(render(evaluation_report(found), out, [""]), encoding="utf-8")
        return found, (out / "evaluate.html").read_text(encoding="utf-8")

    return write_all


def test_the_plot_shows_the_metrics_and_pictures_have_words(written, tmp_path):
    found, html = written(many(["one", "<b>two</b>"]), is_drawn=True)
    drawn = pl.read_csv(tmp_path / "out/forest.csv", infer_schema=False)
    of_auroc = found.metrics.filter(metric="auroc", subset="all")
    assert drawn["method"].to_list() == of_auroc["method"].to_list() == ["<b>two</b>", "one"]
    for name in ("estimate", "low", "high"):
        assert [float(text) for text in drawn[name]] == of_auroc[name].to_list()
    assert set(drawn["above"]) == {"true"}  # all right answers have the higher confidence
    plot = html.partition('<table class="forest">')[2].partition("</table>")[0]
    assert plot.count('<td class="above" data-value="1.000">') == 2
    assert "&lt;b&gt;two&lt;/b&gt;" in plot
    assert "<b>two</b>" not in html
    [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert f"script-src '{digest(script)}'" in html
    assert not re.search(r"https?://|<link|@import|src=\"(?!data:)", html)
    pictures = re.findall(r'<img alt="([^"]*)"', html)
    assert [text.partition(":")[0] for text in pictures] == ["Reliability", "Risk and coverage"]


def test_the_page_says_what_was_found_of_one_method_and_marks_few_donors(written):
    found, html = written(ANSWERS, PAIRS)
    # auroc 3/4, ece15 .4, natural_ccg_auc 1/2 on one own image (see test_report)
    told = dict(re.findall(r"<dt>(\w+): [^<]*</dt><dd><b>([^<]*)</b>", html))
    assert told == {"accuracy": ".500", "auroc": ".750", "ece15": ".400", "aurc": ".333", "natural_ccg_auc": ".500"}
    counts = dict(re.findall(r'<th scope="row" class="left">(\w+)</th><td[^>]*>([^<]*)</td>', html))
    names = ("decisive_pairs", "source_images", "donor_images", "natural_ties")
    assert [counts[name] for name in names] == ["2", "1", "2", "0"]
    row = evaluation_report(found).parts[0].forests[""].filter(metric="natural_ccg_auc").row(0, named=True)
    assert (row["short"], row["above"]) == ("source and donor", False)
    assert '<td class="few" data-value=".500†">' in html
    assert "too few images (2 source and 2 donor) for a verdict" in written(MORE_ANSWERS, MORE_PAIRS)[1]


def test_two_data_sets_have_a_part_each(written):
    text = many(["one"]).splitlines()
    rows = [text[0] + ",dataset", *(f"{row},{name}" for name in ("a", "b") for row in text[1:])]
    _, html = written("\n".join(rows), is_drawn=True)
    assert [name[-1] for name in re.findall(r"<h2[^>]*>mine.csv, (\w): 60 answers, 60 images</h2>", html)] == ["a", "b"]
    assert html.count("<img ") == 4


NO_IMAGE, BY_PATIENT = "sample_id,correct,confidence", "sample_id,patient,correct,confidence"


@pytest.mark.parametrize(
    ("columns", "cluster", "units"),
    [(NO_IMAGE, None, "answers"), (BY_PATIENT, "patient", "patients"), (None, None, "images")],
)
def test_the_page_says_over_what_its_intervals_are(written, columns, cluster, units):
    head, *rows = many(["one", "two"]).splitlines()
    cells = [dict(zip(head.split(","), row.split(","), strict=True)) for row in rows]
    shown = head if columns is None else f"{columns},method"
    lines = [",".join({**row, "patient": row["image_id"]}[name] for name in shown.split(",")) for row in cells]
    found, html = written("\n".join([shown, *lines]), compare=["one"], cluster=cluster)
    said = " ".join(re.sub(r"<style>.*?</style>|<script>.*?</script>|<[^>]*>", " ", html, flags=re.DOTALL).split())
    for words in (f"95% intervals over other {units} ", f"interval over other {units}.", f"on the same {units} "):
        assert words in said
    if units != "images":
        printed = [line.text for line in first(evaluation_report(found))]
        printed += everything(evaluation_report(found))
        assert not re.search("images?\\b", said)  # there are none
        about = [line for line in printed if "image" in line and not line.startswith(tuple(COUNTS))]
        assert not [line for line in about if "column" not in line]


@needs_chromium
@pytest.mark.parametrize("width", [320, 1200])
def test_nothing_scrolls_sideways(written, browser, tmp_path, width):
    written(many(["one", "another method with a long name"]), compare=["one"])
    with browser.page() as page:
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        page.open((tmp_path / "out/evaluate.html").as_uri())
        page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.value("document.documentElement.scrollWidth <= innerWidth")
        wide = "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth + 1).length"
        assert page.value(wide) == 0
        assert page.complaints == []
