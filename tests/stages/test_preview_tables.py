import os
import re
import shutil
import subprocess

import pytest

from dualread.errors import ArtifactError, ConfigError
from dualread.reporting.tables import branches, cascade, controls, costs, data, main
from dualread.schema.tables import PreviewTablesSpec
from dualread.stages import build_table, preview_tables
from tests.reporting.tables.layouts import PAPER_METHODS, data_rows, layout, method, metrics
from tests.reporting.tables.test_hparams import rows_of
from tests.specs import changed

needs_latex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
needs_poppler = pytest.mark.skipif(shutil.which("pdftoppm") is None, reason="pdftoppm is not installed")
TINY_METHODS = [method("psr", label="PSR"), method("odd", label=r"A_b & 5% of $x$ #1 {y} ~ ^ \z <q> é Łódź ß")]


def save(root, **tables):
    for name, tex in tables.items():
        (root / name).mkdir()
        (root / name / f"{name}.tex").write_text(tex, encoding="utf-8")
    return {name: root / name for name in tables}


def preview(inputs, out, latex="pdfTeX"):
    out.mkdir()
    return preview_tables.compute(PreviewTablesSpec(latex=latex, tables=tuple(inputs)), inputs, out)


def small(root, *modules):
    """Tables of two methods and no numbers, in the order of the modules."""
    names = [module.__name__.rpartition(".")[2] for module in modules]
    built = [build_table.build(module, metrics(), layout(TINY_METHODS)).tex for module in modules]
    return save(root, **dict(zip(names, built, strict=True)))


def pages(folder):
    """The text of each page."""
    command = ["pdftotext", "-layout", str(folder / "preview.pdf"), "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\f")[:-1]


def test_without_latex_it_says_so_and_what_to_install(tmp_path):
    line = preview({}, tmp_path / "out", latex=None)
    assert "LaTeX is not installed" in line
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["preview.txt"]
    text = (tmp_path / "out" / "preview.txt").read_text(encoding="utf-8")
    assert "apt-get install texlive-latex-base texlive-latex-recommended texlive-latex-extra" in text


def test_latex_that_went_away_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="pdflatex is not on the PATH"):
        preview({}, tmp_path / "out")


def test_what_latex_writes_stays_in_the_folder_of_the_stage(tmp_path, monkeypatch):
    """There, `store gc` removes what a killed process has left."""
    program = tmp_path / "bin/pdflatex"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "! $PWD"\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    with pytest.raises(ArtifactError, match=re.escape(f"{tmp_path / 'out' / 'scratch-'}")):
        preview({}, tmp_path / "out")


@needs_latex
def test_all_tables_compile_to_the_same_bytes_twice(tmp_path):
    odd = method("odd", label=r"A_b & 5% of $x$ #1 {y} ~ ^ \z <q> é")
    tables = {
        "main": build_table.build(main, metrics(), layout([*PAPER_METHODS, odd])).tex,
        "cascade": build_table.build(cascade, metrics(), layout([odd])).tex,
        "controls": build_table.build(controls, metrics(), layout([odd])).tex,
        "hparams": rows_of({})[0].tex,
        "costs": build_table.build(costs, metrics(), layout([changed(odd, cost=r"$2t+\rho+\tau$")])).tex,
        "data": build_table.build(data, data_rows(), layout([odd])).tex,
    }
    inputs = save(tmp_path, **tables)
    assert preview(inputs, tmp_path / "one") == "read 6 tables, wrote preview.pdf"
    preview(inputs, tmp_path / "other")
    one, other = ((tmp_path / name / "preview.pdf").read_bytes() for name in ("one", "other"))
    assert (
        tmp_path / "one" / "preview.txt"
    ).read_text() == "preview.pdf shows main, cascade, controls, hparams, costs, data; made by pdfTeX.\n"
    assert one.startswith(b"%PDF")
    assert one == other


@needs_latex
@needs_poppler
def test_tables_are_in_the_order_of_the_spec_and_small_ones_share_a_page(tmp_path):
    preview(small(tmp_path, main, cascade, branches, costs), tmp_path / "out")
    (page,) = pages(tmp_path / "out")
    captions = [page.index(of) for of in ("Table 1: Reliability", "Table 2: Component", "Table 4: Cost")]
    assert captions == sorted(captions)
    assert "Table 3: Calibration" in next(line for line in page.splitlines() if "Table 2: Component" in line)  # beside


@needs_latex
def test_a_table_that_latex_refuses_is_quoted(tmp_path):
    inputs = save(tmp_path, broken=r"\nosuchcommand")
    with pytest.raises(ArtifactError, match="Undefined control sequence"):
        preview(inputs, tmp_path / "out")


@needs_latex
def test_a_table_that_is_larger_than_a_page_is_named(tmp_path):
    many = layout([method(f"m{k}") for k in range(120)])
    inputs = save(tmp_path, main=build_table.build(main, metrics(), many).tex)
    said = r"main is \d+ pt too high for its page: let it show less \(config.yaml: tables.main\)"
    assert re.search(said, preview(inputs, tmp_path / "out"))
    assert re.search(said, (tmp_path / "out/preview.txt").read_text())
