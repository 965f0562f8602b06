"""The resources that the cluster profile requests, by dry runs without SLURM (make test-slurm starts a real one)."""

import os
import re
import subprocess
import sys

import pytest
import yaml

from dualread.study.config import resolve
from dualread.study.costs import COSTS
from dualread.study.files import merged, read
from dualread.study.work import STAGES, cluster_resources
from tests.workflow.checkout import ROOT, Checkout

pytestmark = pytest.mark.rest

PROFILE = "workflow/profiles/slurm"
WITH_A_MODEL = {"pretrain_base", "probe_checkpoint", "train_actor", "generate", "group_answers", "replay"}
_JOB = re.compile(r"^rule (\w+):\n(?:    .*\n)*?    resources: (.*)$", re.MULTILINE)
# A dry run prints local rules as it prints others; Snakemake knows them when it has read all rules.
_WITH_LOCAL_RULES = """
import sys
from snakemake.cli import main
from snakemake.workflow import Workflow
Workflow.check_localrules = lambda self: print("local rules:", *self._localrules)
main(sys.argv[1:])
"""


@pytest.fixture
def fresh(tmp_path):
    return Checkout.create(tmp_path)


def jobs(checkout, *files, target="all"):
    """[(whether it is submitted, rule, {resource: text})] of a dry run."""
    options = ["-n", f"--workflow-profile={PROFILE}", "--quiet=host", "--configfile", *files, "--", target]
    run = subprocess.run(
        [sys.executable, "-c", _WITH_LOCAL_RULES, *options],
        cwd=checkout.folder,
        env={**os.environ, "PYTHONPATH": str(checkout.folder / "lib"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    local = re.search(r"^local rules: (.+)$", run.stdout, re.MULTILINE)[1].split()
    return [
        (rule not in local, rule, dict(pair.split("=", 1) for pair in resources.split(", ")))
        for rule, resources in _JOB.findall(run.stdout + run.stderr)
        if rule != target
    ]


def stage_of(rule):
    return next((stage for stage in settings()["set-resources"] if re.fullmatch(rf"{stage}(_\w+)?", rule)), None)


def settings():
    return yaml.safe_load((ROOT / PROFILE / "config.yaml").read_text())


def test_every_stage_that_is_submitted_gets_its_resources_and_only_models_get_gpus(fresh):
    found = jobs(fresh, "workflow/studies/smoke.yaml")
    given = {stage: {} for stage in settings()["set-resources"]}
    planned = cluster_resources(
        resolve(merged([ROOT / "workflow/studies/smoke.yaml"], ROOT)), root=fresh.folder, results=fresh.folder / "none"
    )
    for is_submitted, rule, resources in found:
        stage = stage_of(rule)
        assert is_submitted == (stage is not None), rule  # the others take moments, and run where Snakemake runs
        of_profile = settings()["set-resources"].get(stage, {})
        wanted = {**settings()["default-resources"], **(planned.get(stage, {}) if is_submitted else {}), **of_profile}
        assert {name: resources[name] for name in wanted} == {name: str(value) for name, value in wanted.items()}, rule
        assert ("gpu" in resources) == (stage in WITH_A_MODEL), rule
        assert (resources["slurm_partition"] == "gpu") == (stage in WITH_A_MODEL), rule
        given[stage] = resources
    asked_elsewhere = {"measure_subgroups", "group_answers"}  # not by this study
    assert {stage for stage, resources in given.items() if stage and not resources} == asked_elsewhere
    partitions = {name: entry["slurm_partition"] for name, entry in settings()["set-resources"].items()}
    assert {name for name, partition in partitions.items() if partition == "gpu"} == WITH_A_MODEL
    entries = set(partitions)
    assert entries <= {*STAGES, "build_manifest", "check_leakage", "compare_methods"}
    of_default = {"grade", "train_actor"}  # a training's memory is computed
    assert set(read(COSTS)["machine_mb"]) == entries - of_default


def test_a_training_gets_a_gpu_for_each_of_its_processes(fresh):
    run = fresh.snakemake("-n", f"--workflow-profile={PROFILE}", "--quiet=host", study="workflow/studies/paper.yaml")
    found = re.findall(
        r"^    wildcards: backbone=(\S+), actor=\S+, seed=\d+\n    priority: \d+\n    resources: .* gpu=(\d+)",
        run.text,
        re.M,
    )
    trained = {(backbone, int(n)) for backbone, n in found}
    # paper.yaml: processes: 4 and 8; one GPU for every other model
    assert trained == {("qwen3-vl-2b", 4), ("qwen3-vl-2b", 1), ("medgemma-1.5-4b", 8), ("medgemma-1.5-4b", 1)}


def test_the_profile_runs_the_same_jobs_as_the_default():
    default = yaml.safe_load((ROOT / "workflow/profiles/default/config.yaml").read_text())
    names = default.keys() - {"retries", "keep-going"}
    assert {name: settings()[name] for name in names} == {name: default[name] for name in names}
