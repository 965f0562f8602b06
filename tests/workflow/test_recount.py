"""Every cell of every table of the smoke study, and of the micro study's main table, against a second computation."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.workflow.faults import MICRO
from tests.workflow.recount import cells, data_table, donors
from tests.workflow.recount.judge import judge, of_points
from tests.workflow.recount.resampling import implausible
from tests.workflow.recount.study import Study
from tests.workflow.recount.values import Values


@pytest.fixture(scope="module")
def results(study) -> Path:
    return study.folder / "results/smoke"


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


@pytest.mark.rest
def test_a_changed_digit_in_a_table_is_found(results, tmp_path):
    for folder in (folder for folder in results.iterdir() if folder.name != "tables"):
        (tmp_path / folder.name).symlink_to(folder)
    shutil.copytree(results / "tables", tmp_path / "tables")
    path = tmp_path / "tables/main/main.csv"
    path.chmod(0o644)
    lines = path.read_text().splitlines(keepends=True)
    (k, line) = next((k, line) for k, line in enumerate(lines) if ",rlvr,auroc," in line)
    backbone, dataset = line.split(",")[1:3]
    fields = line.split(",")
    fields[6] = str(float(fields[6]) + 1e-6)
    lines[k] = ",".join(fields)
    path.write_text("".join(lines))
    (found,) = of_points("main", Values(study=Study(results=tmp_path)))
    assert found.startswith(f"main {backbone}/{dataset}/all/rlvr/auroc: mean ")


def test_an_interval_of_other_percentiles_is_not_plausible():
    generator = np.random.default_rng(0)
    stored, own = generator.normal(size=10_000), generator.normal(size=2_000)
    assert implausible(*np.percentile(stored, (2.5, 97.5)), 0, 10_000, own, alpha=1e-6) == []
    found = implausible(*np.percentile(stored, (5, 95)), 0, 10_000, own, alpha=1e-6)
    assert [line.split()[0] for line in found] == ["low", "high"]
