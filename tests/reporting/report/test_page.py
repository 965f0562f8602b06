import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest
from PIL import Image

from dualread.apps import main as cli
from dualread.artifacts.tables import from_rows
from dualread.errors import ArtifactError
from dualread.reporting.forest import VALUES
from dualread.reporting.pages import digest
from dualread.reporting.report.page import render
from dualread.reporting.report.provenance import stage_costs
from dualread.schema.columns import CONTRASTS
from tests.reporting.report import study
from tests.reporting.tables.layouts import TINY, layout, method


@pytest.fixture
def maker(tmp_path):
    return study.finished(tmp_path)


def page(maker):
    return render(maker.study, maker.store, beside=maker.study)


def without_addresses(html):
    return re.sub(r'(href|src)="data:[^"]*"', r'\1=""', html)


class _Outline(HTMLParser):
    """Headings by level, ids, internal links, pictures, and all references to files."""

    def __init__(self, html):
        super().__init__()
        self.levels, self.ids, self.targets, self.pictures, self.files, self.open = [], [], [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag in ("h1", "h2", "h3"):
            self.levels.append(int(tag[1]))
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "img":
            self.pictures.append(values)
        address = values.get("href") or values.get("src") or ""
        if address.startswith("#"):
            self.targets.append(address[1:])
        elif address and not address.startswith("data:"):
            self.files.append(address)
        if tag not in ("meta", "img", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_self_contained(maker):
    html = page(maker)
    outline = _Outline(html)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert set(outline.targets) <= set(outline.ids)
    assert outline.levels[0] == 1
    assert all(after - before <= 1 for before, after in zip(outline.levels, outline.levels[1:], strict=False))
    assert outline.files == ["figures/training/training.pdf"]
    assert "default-src 'none'" in html
    [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)  # it sorts tables; the policy forbids others
    assert f"script-src '{digest(script)}'" in html
    assert not re.search(r"https?://|<script [^>]|<link|@import|url\(", without_addresses(html))


def test_two_calls_write_the_same_bytes(maker):
    assert page(maker) == page(maker)


def test_tables_are_in_the_order_of_the_config(maker):
    assert re.findall(r'<article id="table-(\w+)"', page(maker)) == ["calib", "main", "mine"]


def test_the_main_table_comes_first_where_no_order_is_known(maker):
    (maker.study / "tables/preview/MANIFEST.json").unlink()
    assert re.findall(r'<article id="table-(\w+)"', page(maker)) == ["main", "calib", "mine"]


@pytest.mark.parametrize(("size", "shape"), [((300, 600), "tall"), ((3000, 1500), "wide"), ((1400, 1800), None)])
def test_a_picture_that_would_be_too_small_to_read_scrolls(maker, size, shape):
    picture = Image.new("L", size)
    files = {"training.png": picture.save, "training.pdf": "%PDF", "training.csv": "a\n1\n"}
    maker.make("draw_figure", "figures/training", files, spec={"layout": {"study": "mine"}})
    expected = f'<div class="picture {shape}" role="region"' if shape else '<div class="picture">'
    assert expected in page(maker)


def test_the_page_opens_with_what_was_found_and_counts_follow(maker):
    rows = [
        contrast(),
        contrast(estimate=0.8, method="dualread", contrast="all", baseline="rlvr", p=0.001, p_holm=0.001),
    ]
    methods = [method("rlvr", label="GRPO", readers=["verbalized"]), method("dualread", label="<DualRead>")]
    spec = {"layout": layout(methods, TINY).to_spec()}
    files = study.table_files("significance", study.MINE)
    maker.make("build_table", "tables/significance", files, spec=spec)
    table = from_rows(rows, CONTRASTS)
    maker.make("compare_methods", "contrasts", {"contrasts.parquet": table.write_parquet})
    html = page(maker)
    opening = (
        "AUROC of &lt;DualRead&gt; on SLAKE-test, Tiny, against the stated confidence GRPO: significantly above 1."
    )
    places = [html.index(text) for text in ("<h1>", opening, '<dl class="facts">', "printed cells</strong>")]
    assert places == sorted(places)
    assert "tests no method" not in html


def contrast(**columns):
    """A row of a contrasts table; by default DualRead's own AUROC."""
    return {
        "study": "mine", "backbone": "tiny", "contrast": None, "dataset": "slake", "split": "test", "metric": "auroc",
        "method": "dualread", "baseline": None, "estimate": 0.9, "seed_std": None, "n_seeds": 1, "low": None,
        "high": None, "p": None, "p_holm": None, "n": 5, "n_clusters": 2, "n_undefined": 0, "short": None,
        "reason": None, **columns,
    }  # fmt: skip


def test_a_study_opens_with_its_forest_plot(maker):
    drawn = {
        "study": "mine", "backbone": "tiny", "metric": "auroc", "method": "dualread", "label": "<DualRead>",
        "role": "method", "estimate": 0.9, "low": 0.85, "high": 0.95, "n_seeds": 1, "above": True,
    }  # fmt: skip
    null = {**drawn, "method": "q", "label": "Question prior", "role": "null", "estimate": 0.6, "above": None}
    values = pl.DataFrame([drawn, null], schema=VALUES)
    picture = Image.new("L", (30, 60))
    files = {"forest.png": picture.save, "forest.pdf": "%PDF", "forest.csv": values.write_csv}
    maker.make("draw_figure", "figures/forest", files, spec={"layout": {"study": "mine"}})
    html = page(maker)
    table = html.partition('<table class="forest">')[2].partition("</table>")[0]
    assert html.index('<table class="forest">') < html.index('<dl class="facts">')
    assert "<caption>tiny, one run</caption>" in table
    assert '<th scope="row">&lt;DualRead&gt;</th><td class="above" data-value=".900">' in table
    assert '<span class="unseen">[.850, .950]; above the bar</span>' in table  # for those who see no plot
    assert "Question prior (null)" in table


def test_a_table_may_have_the_name_of_a_section(maker):
    for name in ("data", "costs", "results", "found"):
        maker.make("build_table", f"tables/{name}", study.table_files(name, study.MINE))
    ids = _Outline(page(maker)).ids
    assert len(ids) == len(set(ids))


def test_one_undefined_cell_is_one(maker):
    assert "<summary>Why 1 cell is undefined</summary>" in page(maker)


def test_a_study_without_tests_of_differences_opens_with_that(maker):
    html = page(maker)
    place = html.index("This study tests no method against the stated confidence")
    assert place < html.index('<dl class="facts">')


def test_undefined_and_underpowered_cells_are_counted_with_reasons(maker):
    html = page(maker)
    # main.csv: two cells of estimates, one without a value, one with a dagger; the other tables hold none
    assert "2 cells, 1 undefined, 1 underpowered." in html
    assert "<li>1 × seed 17: one class only</li>" in html
    assert "<strong>2 printed cells</strong>" in html
    assert "<strong>0 images for fitting that have another role</strong>" in html
    assert "1\u202f033 official rows were left out" in html


def test_markup_in_a_cell_or_a_file_is_shown_as_text(maker):
    html = page(maker)
    assert "&lt;b&gt;5&lt;/b&gt;" in html
    assert "q_lang is &lt;en&gt;" in html


def test_a_table_without_its_html_is_named_with_what_to_do(maker):
    maker.make("build_table", "tables/old", {"old.tex": "made by an earlier version", "old.csv": "a\n"})
    with pytest.raises(ArtifactError, match=r"old\.html: cannot be read.*run snakemake again"):
        page(maker)


def test_further_floats_of_a_table_are_folded(maker):
    two = replace(study.MINE, floats=[*study.MINE.floats, *study.MINE.floats])
    maker.make("build_table", "tables/two", study.table_files("two", two))
    assert "<summary>1 more table of two</summary>" in page(maker)


def test_files_can_be_downloaded_from_the_page(maker):
    html = page(maker)
    for name in ("tables/main/main.tex", "tables/main/main.csv", "figures/training/training.csv"):
        assert base64.b64encode((maker.study / name).read_bytes()).decode() in html
    (picture,) = _Outline(html).pictures
    assert (
        base64.b64decode(picture["src"].partition(",")[2])
        == (maker.study / "figures/training/training.png").read_bytes()
    )
    assert (picture["width"], picture["height"]) == ("300", "600")
    assert picture["alt"].endswith("Actors: GRPO (RLVR).")


def test_keys_runs_versions_and_machines_are_those_of_the_store(maker):
    html = page(maker)
    # build_manifest, probe_checkpoint, generate, collect_metrics, three tables, one figure, data, leakage; the preview
    # is no result
    assert "<summary>All 10 artifacts</summary>" in html
    assert html.count("c" * 64) == 4  # the digest of the code beside each table and figure
    assert '<th scope="row" class="left">Qwen3VL-2B</th><td class="left">17</td>' in html
    assert '<th scope="row" class="left">polars</th><td class="left">2.1.0</td><td class="right">10</td>' in html
    assert "node-1" in html
    assert "2026-01-02 03:04" in html


def test_costs_are_summed_by_stage(maker):
    costs = stage_costs(maker.study, maker.store)
    assert costs.row(0, named=True) == {
        "stage": "generate", "entries": 1, "seconds": 30.0, "longest": 30.0, "peak_memory_mb": 100.0, "size_mb": 0.0,
    }  # fmt: skip
    assert dict(costs.select("stage", "entries").iter_rows())["build_table"] == 3
    assert sum(costs["seconds"]) == 30.0 + 10  # ten others took a second each
    assert '<td class="right">40.0</td>' in page(maker)


def test_entries_that_are_missing_from_the_store_are_counted(maker):
    assert "not in this store" not in page(maker)
    study.forget(maker, "generate")
    html = page(maker)
    assert "1 of them are not in this store" in html
    assert "<strong>8 artifacts</strong>" in html  # the manifest behind it cannot be reached


def test_entries_that_two_runs_wrote_differently_are_counted(maker):
    key = next(maker.store.stored_keys())
    (maker.store.root / "differences.jsonl").write_text(
        f'{{"key": "{key}"}}\n{{"key": "another"}}\n{{"key": "{key}"}}\n'
    )
    assert " 1 were written with different bytes" in page(maker)


def test_the_comparison_with_the_paper_is_shown_if_there_is_one(maker):
    assert "This study was not compared" in page(maker)
    study.compare(maker)
    html = page(maker)
    assert "Cells of the paper by verdict: far: 1; not measured: 1." in html
    assert '<td class="right">-0.15' in html


def test_a_study_without_audits_says_so(maker):
    for name in ("data", "leakage"):
        (maker.study / name / "MANIFEST.json").unlink()
    html = page(maker)
    assert "<strong>Leakage not checked</strong>" in html
    assert "has no summary of its data" in html


def test_a_folder_without_results_says_what_to_run(maker, tmp_path, capsys):
    with pytest.raises(ArtifactError, match=r"no finished table in it\. .*snakemake --cores 8"):
        render(tmp_path / "nowhere", maker.store, beside=tmp_path)
    assert cli.main(["report", str(tmp_path / "nowhere")]) == 1
    assert capsys.readouterr().err.startswith("dualread report: ")


def test_a_missing_file_is_named(maker):
    (maker.study / "tables/main/main.csv").unlink()
    with pytest.raises(ArtifactError, match=r"main\.csv: cannot be read \(No such file or directory\)\. Delete "):
        page(maker)


def test_the_command_writes_the_page_to_the_given_path(maker, tmp_path, capsys):
    out = tmp_path / "elsewhere/page.html"
    assert cli.main(["report", str(maker.study), "--store", str(maker.store.root), "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith(f"wrote {out} (")
    assert _Outline(out.read_text()).files == ["../results/mine/figures/training/training.pdf"]


def test_the_facts_of_a_checkpoint_are_shown(maker):
    html = without_addresses(page(maker))
    [row] = re.findall(r'<tr><th scope="row" class="left">Qwen3VL-2B</th><td class="left">prompt.*?</tr>', html)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert cells == ["prompt", "for every prompt", "in one pass", "1\u202f180 of 1\u202f200", "1", "28 of 64", "made"]


def test_a_study_whose_facts_were_lost_says_so(maker):
    [file] = maker.store.root.glob("??/*/facts.json")
    file.unlink()
    with pytest.raises(ArtifactError, match=r"facts\.json cannot be read .* Run `dualread verify`"):
        page(maker)
