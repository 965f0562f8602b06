"""Every cell of every table of the smoke study, and of the micro study's main table, against a second computation."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.workflow.faults import MICRO
from tests.workflow.recount import cells, data_table, definitions, donors
from tests.workflow.recount.judge import judge, of_points
from tests.workflow.recount.resampling import implausible
from tests.workflow.recount.study import Study
from tests.workflow.recount.values import Values


@pytest.fixture(scope="module")
def results(study) -> Path:
    return study.folder / "results/smoke"


@pytest.fixture
def copied(results, tmp_path) -> Callable[[str], Path]:
    """Return a copy of the results in which one folder may be changed; the other folders are links."""

    def copy(changed: str) -> Path:
        for folder in results.iterdir():
            if folder.name == changed:
                shutil.copytree(folder, tmp_path / changed)
            else:
                (tmp_path / folder.name).symlink_to(folder)
        return tmp_path

    return copy


def test_the_main_table_of_the_micro_study_agrees(micro):
    """From images to a table, in a sixth of the time of the smoke study."""
    study = Study(results=micro.folder / MICRO)
    printed = study.printed("tables", "main")
    assert len(printed["printed"].unique()) > 3
    assert of_points("main", Values(study=study)) == []
    assert [*donors.differences(study), *data_table.differences(study)] == []
    tex = (study.results / "tables/main/main.tex").read_text()
    assert cells.not_as_in_latex("main", tex, printed) == []


@pytest.mark.rest
def test_every_cell_agrees(results):
    assert judge(results) == []


@pytest.mark.long  # it tests the second computation, which is edited seldom
def test_a_changed_confidence_is_found_only_in_the_cells_of_its_method(copied):
    copy = copied("predictions")
    path = copy / "predictions/qwen3-vl-tiny/rlvr/29/saplma/predictions.parquet"
    rows = pl.read_parquet(path)
    (place, *_) = rows.with_row_index().filter(dataset="slake", split="test", condition="original")["index"]
    changed = rows.with_columns(
        confidence=pl.when(pl.int_range(pl.len()) == place).then(0.987654321).otherwise("confidence")
    )
    path.chmod(0o644)
    changed.write_parquet(path)
    # Another method may be the best now, and Holm's adjustment may change the printed p-values of others.
    of_others = re.compile(
        r".*: bold |significance \S+(?<!/saplma): (p_holm|printed )|figure forest \S+(?<!/saplma): (p|above)"
    )
    found = [line.split(": ")[0] for line in judge(copy) if not of_others.match(line)]
    # One confidence cannot change without its Brier score, which four tables show.
    assert {name for name in found if "brier" in name} == {
        "ood_acc qwen3-vl-tiny/slake/all/saplma/brier",
        "costs qwen3-vl-tiny/slake/all/saplma/brier",
        "intervals qwen3-vl-tiny/slake/test/brier/saplma",
        "significance qwen3-vl-tiny/significance/slake/test/brier/dualread/saplma",
    }
    of_tables = [name for name in found if not name.startswith("figure")]
    assert all("qwen3-vl-tiny" in name and "saplma" in name and "slake" in name for name in of_tables), of_tables
    figures = [name for name in found if name.startswith("figure")]
    assert figures
    of_method = re.compile(r"figure (\w+ \('slake', 'qwen3-vl-tiny', 'saplma'|forest qwen3-vl-tiny/\w+/saplma$)")
    assert all(of_method.match(name) for name in figures), figures


@pytest.mark.rest
def test_a_changed_digit_in_a_table_is_found(copied):
    copy = copied("tables")
    path = copy / "tables/main/main.csv"
    path.chmod(0o644)
    lines = path.read_text().splitlines(keepends=True)
    (k, line) = next((k, line) for k, line in enumerate(lines) if ",rlvr,auroc," in line)
    backbone, dataset = line.split(",")[1:3]
    fields = line.split(",")
    fields[6] = str(float(fields[6]) + 1e-6)
    lines[k] = ",".join(fields)
    path.write_text("".join(lines))
    (found,) = of_points("main", Values(study=Study(results=copy)))
    assert found.startswith(f"main {backbone}/{dataset}/all/rlvr/auroc: mean ")


def test_bins_are_closed_below_and_the_last_on_both_sides():
    confidence = np.array([0.0, 0.2, 0.4, 1.0])
    members = [inside.tolist() for _, _, inside in definitions.in_bins(confidence)]
    assert [k for k, inside in enumerate(members) if any(inside)] == [0, 3, 6, 14]


def test_errors_of_a_tied_block_are_shared():
    # .9 right; then .5 right and .5 wrong in either order: 0, (0 + .5) / 2, 1 / 3.
    found = definitions.risks(np.array([0.5, 0.9, 0.5]), np.array([True, True, False]))
    assert found == [0.0, 0.25, 1 / 3]


@pytest.mark.parametrize(
    ("value", "signed", "shown"),
    [(0.9518, False, ".952"), (-0.0001, True, ".000"), (0.13, True, "+.130"), (1.0, False, "1.000")],
)
def test_numbers_are_printed_as_in_the_paper(value, signed, shown):
    assert cells.text(value, signed=signed) == shown


def test_an_interval_of_other_percentiles_is_not_plausible():
    generator = np.random.default_rng(0)
    stored, own = generator.normal(size=10_000), generator.normal(size=2_000)
    assert implausible(*np.percentile(stored, (2.5, 97.5)), 0, 10_000, own, alpha=1e-6) == []
    found = implausible(*np.percentile(stored, (5, 95)), 0, 10_000, own, alpha=1e-6)
    assert [line.split()[0] for line in found] == ["low", "high"]
