"""What Snakemake is told about the jobs of one rule."""

import json
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dualread.study.jobs import RuleJobs

MAIN = SimpleNamespace(is_main_process=True, output_settings=SimpleNamespace(dryrun=False))
MADE = "results/small/graded/test"
READ = "results/small/manifests/test/MANIFEST.json"


def jobs(*, environment=None, inputs=None):
    """Grades: of one entry, and of a second one that reads the first."""
    first = {"spec": {"contract": "single"}, "inputs": inputs or {}, "output": MADE}
    second = {"spec": {"contract": "dual"}, "inputs": {"other": f"{MADE}/MANIFEST.json"}, "output": f"{MADE}/dual"}
    return RuleJobs(
        workflow=MAIN,
        stage="grade",
        describe=lambda wildcards: ({"manifest": READ}, [first, second]),
        environment=environment,
        store="results/store",
        results="results/small",
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_job_reads_artifacts_that_it_does_not_make_itself_and_raw_data_is_no_input():
    assert jobs(inputs={"official": "official.json", "again": READ}).inputs({}) == [READ]


def test_a_job_file_holds_the_whole_job_and_is_written_again_if_it_is_damaged():
    job = jobs().params["job"]
    path = Path(job({}))
    whole = path.read_text()
    assert path.parent == Path("results/small/jobs/grade")
    assert json.loads(whole)["store"] == "results/store"
    assert [entry["output"] for entry in json.loads(whole)["entries"]] == [MADE, f"{MADE}/dual"]
    path.write_text("{")
    assert jobs().params["job"]({}) == str(path)  # of the next plan
    assert path.read_text() == whole
    assert jobs(inputs={"official": "official.json"}).params["job"]({}) != str(path)  # named after its text


def test_the_job_that_was_planned_last_has_the_newest_file():
    first, second = (Path(each.params["job"]({})) for each in (jobs(), jobs(inputs={"official": "official.json"})))
    for file in (first, second):
        os.utime(file, (1, 1))
    assert jobs().params["job"]({}) == str(first)  # the edit is taken back
    assert first.stat().st_mtime > second.stat().st_mtime


def test_packages_of_another_environment_are_not_planned():
    code, packages = jobs().params["planned"]({})
    assert (len(code), len(packages)) == (64, 64)
    assert jobs(environment="results/environments/vllm-0/READY").params["planned"]({}) == [code, "-"]


def test_the_command_of_a_job():
    rest = "grade {params.job} --planned {params.planned} --log {log:q}"
    here = shlex.quote(sys.executable)
    assert jobs().command(Path("lib"), on_gpus=False) == f"{here} -m dualread.store.run {rest}"
    elsewhere = jobs(environment="results/environments/vllm-0/READY").command(Path("my lib"), on_gpus=True)
    python = "PYTHONPATH='my lib' DUALREAD_FORKSERVER= results/environments/vllm-0/bin/python"
    assert elsewhere == f"{python} -m dualread.store.run {rest} --gpus {{resources.gpu}}"


def test_a_description_is_asked_for_once_per_job():
    asked = []
    described = replace(jobs(), describe=lambda wildcards: asked.append(dict(wildcards)) or ({}, [])).described
    for seed in (17, 29, 17):
        described({"seed": seed, "actor": "rlvr"})
    assert asked == [{"seed": 17, "actor": "rlvr"}, {"seed": 29, "actor": "rlvr"}]
