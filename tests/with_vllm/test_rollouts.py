"""vLLM samples for a training, with the weights of each step; what it has kept of earlier ones ends the training."""

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from dualread.training._reference import FLOAT32
from dualread.training.trainer import SECONDS
from tests.with_vllm.conftest import ROOT

PROGRAM = Path(__file__).with_name("trained.py")
RIGHT = ("plain", "again", "apart", "asleep", "lora", "corrected", "dcpo", "vl_calibration", "state_signal", "resumed")
WRONG = ("stale", "stale head", "stale vision", "stale prefixes", "stale images", "causal image tokens")

# Planted in how vLLM draws, and a word of what ends the training in its first step.
DRAWN = {
    **{f"temperature {value}": f"temperature: {value}" for value in (0.0, 0.7, 2.0)},
    **{"top_p 0.5": "top_p: 0.5", "top_k 5": "top_k: 5", "one seed": "seed: 1"},
    **{"cut short": "max_completion_tokens: 3", "failing": "RuntimeError: planted"},
}
CASES = (*RIGHT, "bfloat16", *WRONG, *DRAWN, "sampler")


def run(command, folder, *cases, expected=0):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [*map(str, command), str(PROGRAM), str(folder), *cases]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == expected, done.stderr[-5000:]


@pytest.fixture(scope="module")
def folder(vllm_python, tmp_path_factory):
    """What `trained.py` writes about all cases, each a training of six steps."""
    folder = tmp_path_factory.mktemp("trained")
    run([vllm_python], folder, "killed", expected=-signal.SIGKILL)
    run([vllm_python], folder, *CASES)
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in CASES}


def of(result, name):
    return [row["value"] for row in result["log"] if row["name"] == name]


@pytest.mark.parametrize("name", [name for name in RIGHT if name != "again"])
def test_rollouts_are_those_of_single_row_passes_of_the_policy_in_every_step(found, name):
    result = found[name]
    differences = of(result, "rollout_difference")
    assert len(differences) == 6
    assert max(differences) < 1e-5
    assert max(result["differences"]) < 1e-4  # of single tokens, the largest
    assert len(result["differences"]) == (3 if name == "resumed" else 6)
    # The policy has moved, so that equality is worth something, and all completions of a step differ.
    assert max(of(result, "gradient_norm")) > 0
    assert all(len({tuple(ids) for ids in of_step}) == 6 for of_step in result["completions"])


def test_the_same_seed_gives_the_same_bytes(found, folder):
    def without_seconds(name):
        return [row for row in found[name]["log"] if row["name"] != SECONDS]

    assert without_seconds("plain") == without_seconds("again")
    assert found["plain"]["completions"] == found["again"]["completions"]
    weights = [(folder / f"{name} out/model.safetensors").read_bytes() for name in ("plain", "again")]
    assert weights[0] == weights[1]


def test_two_engines_in_processes_of_their_own_sample_what_one_would(found):
    """They get the weights as a file. Here they are on CPUs; `rollout_gpus` puts each on a GPU."""
    assert found["apart"]["completions"] == found["plain"]["completions"]


def test_an_engine_that_sleeps_between_steps_samples_what_one_would_that_does_not(found):
    assert found["asleep"]["completions"] == found["plain"]["completions"]


def test_on_a_gpu_vllm_is_told_its_share_of_the_memory_and_that_it_will_sleep(vllm_python, folder):
    run([vllm_python], folder, "on a GPU")
    assert json.loads((folder / "on a GPU.json").read_text()) == {
        **{"gpu_memory_utilization": 0.25, "enable_sleep_mode": True, "max_num_seqs": 5},
        **{"enforce_eager": False, "enable_prefix_caching": True},
    }


def test_a_training_killed_between_sampling_and_step_resumes_and_ends_with_the_same_bytes(found, folder):
    assert not (folder / "killed out").exists()
    assert found["resumed"]["completions"] == found["plain"]["completions"][3:]
    weights = [(folder / f"{name} out/model.safetensors").read_bytes() for name in ("plain", "resumed")]
    assert weights[0] == weights[1]


def test_the_correction_is_logged_and_is_one_where_both_agree(found):
    assert of(found["corrected"], "importance_ratio") == pytest.approx([1.0] * 6, abs=1e-5)
    assert "importance_ratio" not in {row["name"] for row in found["plain"]["log"]}


def test_in_bfloat16_the_difference_is_rounding(found):
    differences = of(found["bfloat16"], "rollout_difference")
    assert min(differences) > 1e-4
    assert max(differences) < 0.01


@pytest.mark.parametrize("name", WRONG)
def test_other_weights_caches_or_attention_end_the_training(found, name):
    """Step 1 has the rate 0, so that step 3 is the first one with other weights; attention is wrong from the start."""
    result = found[name]
    assert "log" not in result
    step = 1 if name == "causal image tokens" else 3
    assert result["error"].startswith(
        f"TrainingError: training: in step {step}, the log-probabilities of the rollouts "
    )
    said = float(result["error"].split(" by ")[1].split()[0])
    assert said > 10 * FLOAT32
    assert result["differences"][-1] > said  # of single-row passes, the largest one and not the mean
    assert all(difference < 1e-4 for difference in result["differences"][:-1])


@pytest.mark.parametrize("name", DRAWN)
def test_vllm_is_asked_by_what_it_drew(found, name):
    assert found[name]["error"].startswith("TrainingError: training: in step 1, ")
    assert DRAWN[name] in found[name]["error"]


def test_tokens_of_another_distribution_are_found_although_vllm_was_told_the_right_one(found):
    assert "are not drawn from the policy" in found["sampler"]["error"]
    assert max(found["sampler"]["differences"]) < 1e-4


@pytest.mark.parametrize("family", ["qwen3_vl", "gemma3"])
def test_weights_that_are_pushed_are_those_that_vllm_reads_from_the_checkpoint(vllm_python, folder, family):
    run([vllm_python], folder, f"weights of {family}")
    digests = json.loads((folder / f"weights of {family}.json").read_text())
    assert digests["pushed"] == digests["read"]
    assert len(set(digests["pushed"].values()) & set(digests["before"].values())) < 0.1 * len(digests["pushed"])


LAUNCH = "-m accelerate.commands.launch --multi_gpu --num_machines 1 --mixed_precision no --dynamo_backend no"


def by_two(python, folder, case):
    run([python, *LAUNCH.split(), "--main_process_port", "0", "--num_processes", "2"], folder, case)
    return [json.loads((folder / f"{case}-{process}.json").read_text()) for process in (0, 1)]


@pytest.mark.parametrize(
    ("case", "alone"), [("by two", "plain"), ("by two full", "dcpo"), ("by two optimizer", "plain")]
)
def test_two_processes_sample_what_one_would(vllm_python, found, folder, case, alone):
    """If each holds a part of the model, its engine has all of it."""
    both = by_two(vllm_python, folder, case)
    for step in range(3):
        together = [*both[0]["completions"][step], *both[1]["completions"][step]]
        assert together == found[alone]["completions"][step]
    assert [len(result["differences"]) for result in both] == [6, 6]
    assert max(max(result["differences"]) for result in both) < 1e-4
    assert max(of(both[0], "rollout_difference")) < 1e-5
    assert np.allclose(of(both[0], "reward"), of(found[alone], "reward"), rtol=0.05)


def test_a_stale_weight_ends_a_sharded_training(vllm_python, folder):
    for result in by_two(vllm_python, folder, "by two stale"):
        assert result["error"].startswith("TrainingError: training: in step 3, the log-probabilities of the rollouts ")
