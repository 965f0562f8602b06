"""Selections laid over a study: which actors of which backbones and seeds are chosen, and which jobs they have."""

from pathlib import Path

import pytest

from dualread.study.files import load
from dualread.study.shards import StudyShards
from tests.workflow.checkout import ROOT, Checkout

pytestmark = pytest.mark.rest

SELECTIONS, STUDIES = "workflow/selections", "workflow/studies"
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


def runs(study: str, *selections: str) -> set[tuple[str, str, int]]:
    files = [ROOT / STUDIES / f"{study}.yaml", *(ROOT / SELECTIONS / f"{name}.yaml" for name in selections)]
    config = load(files, ROOT)
    seeds = StudyShards(config).seeds
    return {(b, actor, seed) for b in config.backbones for actor in config.actors for seed in seeds(b, actor)}


def test_a_selection_chooses_actors_of_backbones_and_seeds():
    found = {path.stem for path in (ROOT / SELECTIONS).glob("*.yaml")}
    assert found == SMOKE.keys() | set(PAPER)
    assert {name: runs("smoke", name) for name in SMOKE} == SMOKE
    for backbone in PAPER:
        assert runs("paper", backbone, "one_seed", "rlvr") == {(backbone, "base", 0), (backbone, "rlvr", 17)}


@pytest.mark.parametrize("selection", ["medgemma-tiny", "dualread"])
def test_only_selected_jobs_are_in_the_graph(dry, selection):
    run = dry(study=f"{STUDIES}/smoke.yaml {SELECTIONS}/{selection}.yaml")
    assert run.returncode == 0, run.text
    assert run.actors() == SMOKE[selection]
    # With methods chosen, the base is there to start from and is not asked.
    assert ("generate_base" in run.jobs()) == (selection == "medgemma-tiny")


def test_selected_jobs_are_those_of_the_whole_study(dry, unedited, tmp_path):
    """Their descriptions, with paths and specs, are identical, so that one run finds the results of the other."""

    def jobs(checkout: Checkout) -> set[Path]:
        return {
            path.relative_to(checkout.folder) for path in checkout.folder.glob("results/smoke/dry_run/jobs/*/*.json")
        }

    assert dry().returncode == 0
    fresh, study = Checkout.create(tmp_path), f"{STUDIES}/smoke.yaml {SELECTIONS}/rlvr.yaml {SELECTIONS}/one_seed.yaml"
    assert fresh.snakemake("-n", study=study).returncode == 0
    chosen, whole = jobs(fresh), jobs(unedited)
    # What is about several runs, and about the tables, is another job.
    of_several = {"export_answers", "collect_metrics", "compare_methods", "measure_difficulty"}
    assert {path.parent.name for path in chosen - whole} == of_several | {
        "build_table",
        "preview_tables",
        "draw_figure",
    }
    assert {"train_actor", "generate", "replay", "fit_readers", "compute_metrics"} <= {
        path.parent.name for path in chosen & whole
    }
