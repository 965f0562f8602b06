"""The resources that the cluster profile requests, by dry runs without SLURM (make test-slurm starts a real one)."""

import re

import pytest
import yaml

from tests.workflow.checkout import ROOT, Checkout

pytestmark = pytest.mark.rest

PROFILE = "workflow/profiles/slurm"
WITH_A_MODEL = {"pretrain_base", "probe_checkpoint", "train_actor", "generate", "replay"}
_JOB = re.compile(r"^(localrule|rule) (\w+):\n(?:    .*\n)*?    resources: (.*)$", re.MULTILINE)


@pytest.fixture
def fresh(tmp_path):
    return Checkout.create(tmp_path)


def jobs(checkout, *files, target="tables/main.tex"):
    """[("rule" or "localrule", name, {resource: text})] of a dry run."""
    run = checkout.snakemake("-n", f"--workflow-profile={PROFILE}", "--quiet=host", target, study=" ".join(files))
    assert run.returncode == 0, run.text
    return [
        (kind, rule, dict(pair.split("=", 1) for pair in resources.split(", ")))
        for kind, rule, resources in _JOB.findall(run.text)
    ]


def stage_of(rule):
    return next((stage for stage in settings()["set-resources"] if re.fullmatch(rf"{stage}(_\w+)?", rule)), None)


def settings():
    return yaml.safe_load((ROOT / PROFILE / "config.yaml").read_text())


def test_every_stage_that_is_submitted_gets_its_resources_and_only_models_get_gpus(fresh):
    found = jobs(fresh, "workflow/studies/smoke.yaml")
    given = {stage: {} for stage in settings()["set-resources"]}
    for kind, rule, resources in found:
        stage = stage_of(rule)
        assert (kind == "rule") == (stage is not None), rule  # the others take moments, and run where Snakemake runs
        wanted = {**settings()["default-resources"], **settings()["set-resources"].get(stage, {})}
        assert {name: resources[name] for name in wanted} == {name: str(value) for name, value in wanted.items()}, rule
        assert ("gpu" in resources) == (stage in WITH_A_MODEL), rule
        assert (resources["slurm_partition"] == "gpu") == (stage in WITH_A_MODEL), rule
        given[stage] = resources
    asked_elsewhere = {"compare_methods"}  # not by the main table
    assert {stage for stage, resources in given.items() if stage and not resources} == asked_elsewhere


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
