"""Selections laid over a study: which actors of which backbones and seeds are in the graph, by dry runs."""

import shutil
from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.rest

SELECTIONS = "workflow/selections"
# The smoke study: two seeds of the first backbone, one of the second; the base has seed 0.
TINY = {("qwen3-vl-tiny", 17), ("qwen3-vl-tiny", 29), ("medgemma-tiny", 17)}
TRAINED = {"rlvr", "rlcr", "dcpo", "vl_calibration"}
ALL = {(backbone, actor, seed) for backbone, seed in TINY for actor in TRAINED}
BASES = {("qwen3-vl-tiny", "base", 0), ("medgemma-tiny", "base", 0)}
SMOKE = {
    "one_seed": BASES | {run for run in ALL if run[2] == 17},
    "rlvr": BASES | {run for run in ALL if run[1] == "rlvr"},
    "dualread": BASES | {run for run in ALL if run[1] == "rlvr"},
    "slake": BASES | ALL,
    "qwen3-vl-tiny": {run for run in BASES | ALL if run[0] == "qwen3-vl-tiny"},
    "medgemma-tiny": {run for run in BASES | ALL if run[0] == "medgemma-tiny"},
}
PAPER = ("qwen3-vl-2b", "medgemma-1.5-4b")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the repository, which dry runs do not change."""
    return Checkout.create(tmp_path_factory.mktemp("selections"))


def test_every_selection_is_tested(checkout):
    assert {path.stem for path in (checkout.folder / SELECTIONS).glob("*.yaml")} == SMOKE.keys() | set(PAPER)


@pytest.mark.parametrize("selection", SMOKE)
def test_only_selected_jobs_are_in_the_graph(checkout, selection):
    run = checkout.snakemake("-n", "--quiet=host", study=f"workflow/studies/smoke.yaml {SELECTIONS}/{selection}.yaml")
    assert run.returncode == 0, run.text
    assert run.actors() == SMOKE[selection]
    # With actors or methods chosen, the base is there to start from and is not asked.
    assert ("generate_base" in run.jobs()) == (selection not in ("rlvr", "dualread"))


@pytest.mark.parametrize("selection", PAPER)
def test_a_backbone_of_the_paper(checkout, selection):
    chosen = " ".join(f"{SELECTIONS}/{name}.yaml" for name in (selection, "one_seed", "rlvr"))
    study = f"workflow/studies/paper.yaml {chosen}"
    run = checkout.snakemake("-n", "--quiet=host", "tables/cascade.tex", study=study)
    assert run.actors() == {(selection, "base", 0)} | {(selection, "rlvr", 17)}


def test_selected_jobs_are_those_of_the_whole_study(tmp_path):
    """Their descriptions, with paths and specs, are identical, so that one run finds the results of the other."""
    fresh = Checkout.create(tmp_path)

    def jobs(study: str) -> set[Path]:
        assert fresh.snakemake("-n", study=study).returncode == 0
        return {path.relative_to(tmp_path) for path in tmp_path.glob("results/smoke/dry_run/jobs/*/*.json")}

    chosen = jobs(f"workflow/studies/smoke.yaml {SELECTIONS}/rlvr.yaml {SELECTIONS}/one_seed.yaml")
    shutil.rmtree(tmp_path / "results")
    whole = jobs("workflow/studies/smoke.yaml")
    # What is about several runs, and about the tables, is another job.
    of_several = {
        "export_answers",
        "collect_metrics",
        "compare_methods",
        "measure_difficulty",
        "build_table",
        "preview_tables",
        "draw_figure",
    }
    assert {path.parent.name for path in chosen - whole} == of_several
    assert {"train_actor", "generate", "replay", "fit_readers", "compute_metrics"} <= {
        path.parent.name for path in chosen & whole
    }
