"""What a job is told; and one that outlived its run does not write where a later run makes something else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dualread.errors import ArtifactError
from dualread.store.job import PLANNED_NAME, check_planned, parse_job, shown, write_planned
from dualread.store.key import Action
from dualread.store.manifest import Manifest

OUTPUT = Path("results/small/actors/17")
TRAINED = Action(stage="train", code="c" * 64, spec={"steps": 3}, inputs={"base": "1"}, packages={"torch": "2"})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_what_no_run_has_planned_and_what_is_planned_alike_is_shown():
    check_planned(OUTPUT, TRAINED)
    write_planned(Path("results/small"), {str(OUTPUT): TRAINED.recipe})
    check_planned(OUTPUT, TRAINED)
    # Inputs, and packages of another environment, are not known when a run is planned.
    check_planned(OUTPUT, replace(TRAINED, inputs={"base": "2"}, packages={}))


@pytest.mark.parametrize("edit", [{"spec": {"steps": 6}}, {"code": "d" * 64}, {"stage": "copy"}])
def test_what_a_later_run_makes_otherwise_is_not_shown(edit):
    write_planned(Path("results/small"), {str(OUTPUT): replace(TRAINED, **edit).recipe})
    with pytest.raises(ArtifactError, match=rf"^{OUTPUT}: a later run .* kept in the store \({TRAINED.key[:8]}\)"):
        check_planned(OUTPUT, TRAINED)


def test_runs_of_other_targets_are_kept():
    write_planned(Path("results/small"), {str(OUTPUT): "1"})
    write_planned(Path("results/small"), {"results/small/other": "2"})
    with pytest.raises(ArtifactError):
        check_planned(OUTPUT, TRAINED)
    write_planned(Path("results/small"), {str(OUTPUT): TRAINED.recipe})
    check_planned(OUTPUT, TRAINED)


@pytest.mark.parametrize("is_ours", [True, False])
def test_what_was_shown_while_a_later_run_began_is_taken_back(is_ours):
    """Unless that run has already put its own in its place."""
    manifest = OUTPUT / "MANIFEST.json"
    later = replace(TRAINED, spec={"steps": 6})

    def fill():
        OUTPUT.mkdir(parents=True)
        manifest.write_bytes(Manifest(action=TRAINED if is_ours else later, files={}).to_bytes())
        write_planned(Path("results/small"), {str(OUTPUT): later.recipe})

    with pytest.raises(ArtifactError, match="a later run makes something else here"), shown(OUTPUT, TRAINED):
        fill()
    assert manifest.exists() is not is_ours


def test_half_a_file_stops_no_job():
    Path("results/small").mkdir(parents=True)
    Path("results/small", PLANNED_NAME).write_text('{"')
    check_planned(OUTPUT, TRAINED)


def test_inputs_of_an_entry_override_those_of_the_job():
    job = {"store": "s", "inputs": {"a": "1", "b": "2"}, "entries": [{"spec": {}, "inputs": {"b": "3"}, "output": "o"}]}
    _, (entry,) = parse_job(json.dumps(job))
    assert {name: str(path) for name, path in entry.inputs.items()} == {"a": "1", "b": "3"}
