"""The smoke study with vLLM's overlay: answers are generated in the environment that the workflow's rule makes."""

import json
from pathlib import Path

import polars as pl

from tests.workflow.checkout import Checkout

TARGET = "results/smoke/generations/qwen3-vl-tiny/base/0/slake/test/original/MANIFEST.json"
# The smoke study's data sets whose test questions are also asked about another image.
WITH_DONORS = ("slake", "vqa_rad", "path_vqa", "vqa_med_2019")
STUDY = "workflow/studies/smoke.yaml workflow/studies/vllm_cpu.yaml"


def test_a_trained_base_answers_through_vllm(vllm_python, tmp_path):
    checkout = Checkout.create(tmp_path)
    (tmp_path / "results/environments").symlink_to(vllm_python.parents[2])
    run = checkout.snakemake(TARGET, study=STUDY)
    assert run.returncode == 0, run.text
    made = {path for stage, path in run.entries("computed") if stage == "generate"}
    shards = {"slake/validation/original"}
    shards |= {f"{dataset}/test/original" for dataset in (*WITH_DONORS, "pmc_vqa", "omnimedvqa", "rexvqa")}
    shards |= {f"{dataset}/test/donor" for dataset in WITH_DONORS}
    folder = "qwen3-vl-tiny/base/0"
    assert made == {f"generations/{folder}/{shard}" for shard in shards} | {
        f"views/{folder}/{shard}/stated_integer" for shard in shards
    }
    packages = json.loads((tmp_path / TARGET).read_text())["packages"]
    assert packages["vllm-cpu"] == "0.32.0"
    assert checkout.snakemake(TARGET, study=STUDY).did_nothing()
    # With another engine the answers are generated again; vLLM's environment is not needed for that.
    other = checkout.snakemake("-n", TARGET, study="workflow/studies/smoke.yaml")
    assert other.jobs() == {"generate_base": 1}


ACTOR = "results/smoke/actors/qwen3-vl-tiny/rlvr/17"


def test_an_actor_is_trained_with_rollouts_by_vllm(vllm_python, tmp_path):
    checkout = Checkout.create(tmp_path)
    (tmp_path / "results/environments").symlink_to(vllm_python.parents[2])
    (tmp_path / "rollouts.yaml").write_text("backbones: {qwen3-vl-tiny: {training: {rollouts: vllm}}}\n")
    study = f"{STUDY} rollouts.yaml"
    run = checkout.snakemake(f"{ACTOR}/MANIFEST.json", study=study)
    assert run.returncode == 0, run.text
    made = {path for stage, path in run.entries("computed") if stage in ("train_actor", "probe_checkpoint")}
    assert made == {"actors/qwen3-vl-tiny/rlvr/17", "training_facts/qwen3-vl-tiny/base/0"}
    manifest = json.loads((tmp_path / ACTOR / "MANIFEST.json").read_text())
    assert (manifest["packages"]["vllm-cpu"], manifest["packages"]["trl"]) == ("0.32.0", "1.16.0")
    log = pl.read_parquet(tmp_path / ACTOR / "train_log.parquet")
    assert log.filter(pl.col("name") == "rollout_difference")["value"].max() < 1e-4
    assert checkout.snakemake(f"{ACTOR}/MANIFEST.json", study=study).did_nothing()


FEATURES = "results/smoke/features/qwen3-vl-tiny/rlvr/17/slake/test/original/MANIFEST.json"
IN_BFLOAT16 = """
backbones: {qwen3-vl-tiny: {settings: {dtype: bfloat16}, training: {rollouts: vllm}}}
generation: {settings: {eager: true}}
replay: {from: generation}
"""


def test_in_bfloat16_vllm_samples_for_a_training_and_keeps_the_states_of_its_answers(vllm_python, tmp_path):
    """Models of ordinary size are in bfloat16, which numpy does not know."""
    checkout = Checkout.create(tmp_path)
    (tmp_path / "results/environments").symlink_to(vllm_python.parents[2])
    (tmp_path / "in_bfloat16.yaml").write_text(IN_BFLOAT16)
    run = checkout.snakemake(FEATURES, study=f"{STUDY} in_bfloat16.yaml")
    assert run.returncode == 0, run.text
    log = pl.read_parquet(tmp_path / ACTOR / "train_log.parquet")
    assert 1e-4 < log.filter(pl.col("name") == "rollout_difference")["value"].max() < 2e-2
    index = pl.read_parquet(tmp_path / Path(FEATURES).with_name("features.parquet"))
    assert 0 < index["log_prob_mean_difference"].max() < 0.1
