import base64
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

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
from dualread.schema.columns import DIFFICULTY
from tests.golden import check
from tests.reporting.report import study, test_controls
from tests.reporting.tables import contrasts
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


def words_of(html):
    """The page as lines of text, without keys and the tables that `build_table` wrote; a bar between cells of a row."""
    body = re.sub(r"<(style|script)>.*?</\1>|<table>.*?</table>", "", html, flags=re.DOTALL)
    body = re.sub(r'<li class="(\w+)">', r"(\1) ", body)
    body = re.sub(r"</t[hd]>(?!</tr>)", " | ", re.sub(r"\s*\n\s*", " ", body))
    lines = re.split(r"</(?:tr|p|li|ul|h\d|dt|dd|caption|summary|title)>", body)
    texts = (" ".join(re.sub(r"<[^>]*>", " ", line).split()) for line in lines)
    return re.sub(r"\b[0-9a-f]{16,}\b", "KEY", unescape("\n".join(text for text in texts if text)))


def with_everything(maker):
    """Add tests of differences, a forest plot, controls, given answers, folded floats, a comparison, and damages."""
    methods = [method("rlvr", label="GRPO", readers=["verbalized"]), method("dualread", label="<DualRead>")]
    without = {"low": None, "high": None, "n_seeds": 1, "n": 5, "n_clusters": 2}
    tested = {"contrast": "all", "baseline": "rlvr", "p": 0.001, "p_holm": 0.001, "p_holm_at_most": None}
    rows = [contrasts.row("dualread", "auroc", 0.9), contrasts.row("dualread", "auroc", 0.8, **tested)]
    table = contrasts.table(*({**row, **without} for row in rows))
    two = study.table_files("significance", replace(study.MINE, floats=[*study.MINE.floats, *study.MINE.floats]))
    spec = {"layout": layout(methods, TINY).to_spec()}
    given = {"backbone": "tiny", "actor": "given", "seed": 0, "left_out": {"psr": "no states", "per": "no states"}}
    answers = maker.make("read_answers", "generations/given", {"g.txt": "x"}, spec=given)
    maker.make("build_table", "tables/significance", two, spec=spec, inputs=[answers])
    maker.make("compare_methods", "contrasts", {"contrasts.parquet": table.write_parquet})
    drawn = {
        "study": "mine", "backbone": "tiny", "metric": "auroc", "method": "dualread", "label": "<DualRead>",
        "role": "method", "estimate": 0.9, "low": 0.85, "high": 0.95, "n_seeds": 1, "above": True,
    }  # fmt: skip
    null = {**drawn, "method": "q", "label": "Question prior", "role": "null", "estimate": 0.6, "above": None}
    limit = {**drawn, "method": None, "label": "True difficulty of the image", "role": "limit", "above": None}
    values = pl.DataFrame([drawn, null, limit], schema=VALUES)
    files = {"forest.png": Image.new("L", (30, 60)).save, "forest.pdf": "%PDF", "forest.csv": values.write_csv}
    maker.make("draw_figure", "figures/forest", files, spec={"layout": {"study": "mine"}})
    difficulty = from_rows(test_controls.rows(), DIFFICULTY)
    maker.make("measure_difficulty", "difficulty/rlvr", {"difficulty.parquet": difficulty.write_parquet})
    # One role in two splits is no leakage, and neither are two sets that are only reported.
    roles = [("fit", "fit", 4, 0), ("fit", "test", 3, 1), ("test", "ood", 2, 1234)]
    counts = pl.DataFrame(roles, schema=["role", "other_role", "n_images", "n_near"], orient="row")
    pair = {"image": "a", "role": "fit", "other_image": "b", "other_role": "test"}
    pair |= {"kind": "near", "difference": 0.01234}
    pairs = pl.DataFrame([pair] * 201)
    files = {"leakage.parquet": counts.write_parquet, "near_duplicates.parquet": pairs.write_parquet}
    maker.make("check_leakage", "leakage", files, code="d" * 64)
    study.compare(maker)
    study.forget(maker, "collect_metrics")
    key = next(maker.store.stored_keys())
    (maker.store.root / "differences.jsonl").write_text(f'{{"key": "{key}"}}\n{{"key": "a"}}\n{{"key": "{key}"}}\n')


def without_audits(maker):
    """Remove the audits and the order of the tables: the main one then comes first."""
    for name in ("data", "leakage", "tables/preview"):
        (maker.study / name / "MANIFEST.json").unlink()


def test_the_words_of_the_page(tmp_path):
    found = {}
    for name, change in {
        "as it is": None,
        "with everything": with_everything,
        "without audits": without_audits,
    }.items():
        maker = study.finished(tmp_path / name)
        if change is not None:
            change(maker)
        found[name] = words_of(page(maker))
        assert found[name] == words_of(page(maker))
    check(Path(__file__).with_name("page.txt"), found)


@pytest.mark.parametrize(("size", "shape"), [((300, 600), "tall"), ((3000, 1500), "wide"), ((1400, 1800), None)])
def test_a_picture_that_would_be_too_small_to_read_scrolls(maker, size, shape):
    picture = Image.new("L", size)
    files = {"training.png": picture.save, "training.pdf": "%PDF", "training.csv": "a\n1\n"}
    maker.make("draw_figure", "figures/training", files, spec={"layout": {"study": "mine"}})
    expected = f'<div class="picture {shape}" role="region"' if shape else '<div class="picture">'
    assert expected in page(maker)


def test_a_table_may_have_the_name_of_a_section(maker):
    for name in ("data", "costs", "results", "found"):
        maker.make("build_table", f"tables/{name}", study.table_files(name, study.MINE))
    ids = _Outline(page(maker)).ids
    assert len(ids) == len(set(ids))


def test_a_table_without_its_html_is_named_with_what_to_do(maker):
    maker.make("build_table", "tables/old", {"old.tex": "made by an earlier version", "old.csv": "a\n"})
    with pytest.raises(ArtifactError, match=r"old\.html: cannot be read.*run snakemake again"):
        page(maker)


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


def test_costs_are_summed_by_stage(maker):
    costs = stage_costs(maker.study, maker.store)
    assert costs.row(0, named=True) == {
        "stage": "generate", "entries": 1, "seconds": 30.0, "longest": 30.0, "peak_memory_mb": 100.0, "size_mb": 0.0,
    }  # fmt: skip
    assert dict(costs.select("stage", "entries").iter_rows())["build_table"] == 3
    assert sum(costs["seconds"]) == 30.0 + 10  # ten others took a second each
    assert '<td class="right">40.0</td>' in page(maker)


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


def test_a_study_whose_facts_were_lost_says_so(maker):
    [file] = maker.store.root.glob("??/*/facts.json")
    file.unlink()
    with pytest.raises(ArtifactError, match=r"facts\.json cannot be read .* Run `dualread verify`"):
        page(maker)
