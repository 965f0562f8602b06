"""The vLLM engine on CPUs against the transformers engine and the replay; stages run in processes, as in the rules."""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dualread.artifacts.tables import read_table
from dualread.models.prompts import file_of
from dualread.schema.answers import Choices
from dualread.schema.base import Prompt
from dualread.schema.columns import CHOICES, FEATURES, GENERATIONS, MANIFEST
from tests import same_names, specs
from tests.hospital import table_of
from tests.specs import changed
from tests.with_vllm.conftest import ROOT, TRANSFORMERS, VLLM, Lab

SAMPLING = specs.decoding(temperature=1.0, top_p=0.95, n_samples=4, max_completion_tokens=12)


def generations(folder: Path) -> pl.DataFrame:
    return read_table(folder / "generations.parquet", GENERATIONS).sort("sample_id", "sample_index")


@pytest.fixture(scope="module")
def greedy(qwen: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("greedy")
    return qwen.make("generate", folder / "answers", qwen.answers(VLLM))


@pytest.fixture(scope="module")
def sampled(qwen: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sampled")
    return qwen.make("generate", folder / "samples", qwen.answers(VLLM, decoding=SAMPLING))


def test_greedy_answers_are_those_of_the_transformers_engine(qwen, greedy, tmp_path):
    ours = generations(greedy)
    theirs = generations(qwen.make("generate", tmp_path / "answers", qwen.answers(TRANSFORMERS)))
    assert ours.height == 128
    columns = ["sample_id", "prompt_sha256", "n_prompt_tokens", "token_ids", "text", "finish_reason"]
    assert ours.select(columns).equals(theirs.select(columns))
    difference = ours["token_log_probs"].explode().to_numpy() - theirs["token_log_probs"].explode().to_numpy()
    assert np.abs(difference).max() < 1e-4
    for given in ("image_id", "prompt_sha256"):  # the answers depend on both: else a lost image would go unnoticed
        differ = ours.group_by(given).agg(pl.col("token_ids").n_unique() > 1)["token_ids"]
        assert differ.sum() > len(differ) / 2


def test_the_replay_reproduces_greedy_answers(qwen, greedy, tmp_path):
    made = qwen.make("replay", tmp_path / "features", qwen.states(), generations=greedy)
    assert read_table(made / "features.parquet", FEATURES)["log_prob_max_difference"].max() < 1e-4


def test_the_model_runner_is_pinned_whatever_the_environment_says(qwen, greedy, tmp_path, monkeypatch):
    """The second runner needs Triton, which the build for CPUs lacks: if it were chosen, no engine would open."""
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1")
    again = qwen.make("generate", tmp_path / "answers", qwen.answers(VLLM))
    assert generations(again).equals(generations(greedy))


TURNS = """[system]
You read images with care.
[user]
Is this a CT scan?
[assistant]
<answer>yes</answer>
[user]
Question: {QUESTION}"""


@pytest.mark.parametrize("prompt", ["shared", "ward.turns"])
def test_lists_of_images_and_earlier_turns_are_shown_as_transformers_shows_them(qwen, tmp_path, prompt):
    for name, text in (("__init__.py", ""), ("turns.txt", TURNS)):
        (tmp_path / "ward").mkdir(exist_ok=True)
        (tmp_path / "ward" / name).write_text(text)
    phantom = specs.phantom("medframeqa", images={"test": 16}, size=48, questions_per_image=2)
    folders = {name: tmp_path / name for name in ("vllm", "transformers", "features")}
    manifest = table_of(tmp_path, phantom, specs.manifest("medframeqa"))
    numbers = read_table(manifest / "manifest.parquet", MANIFEST)["image_files"].list.len()
    assert set(numbers) == {2, 3}
    asked = {"dataset": "medframeqa", "prompt": Prompt(name=prompt, file=file_of(prompt))}
    given = {"manifest": manifest, "shadows": tmp_path}
    for name, engine in (("vllm", VLLM), ("transformers", TRANSFORMERS)):
        qwen.make("generate", folders[name], qwen.answers(engine, **asked), **given)
    ours, theirs = generations(folders["vllm"]), generations(folders["transformers"])
    columns = ["sample_id", "prompt_sha256", "n_prompt_tokens", "token_ids", "text", "finish_reason"]
    assert ours.select(columns).equals(theirs.select(columns))
    shown = ours.group_by("prompt_sha256").agg(pl.col("image_id", "token_log_probs").n_unique())
    assert (shown["image_id"] > 1).any()
    assert shown["token_log_probs"].equals(shown["image_id"])  # what is answered depends on all that is shown
    made = qwen.make("replay", folders["features"], qwen.states(**asked), generations=folders["vllm"], **given)
    assert read_table(made / "features.parquet", FEATURES)["log_prob_max_difference"].max() < 1e-4


@pytest.mark.parametrize("manifests_of", [same_names.two_data_sets, same_names.two_splits])
def test_images_of_the_same_name_are_distinguished_in_one_job(qwen, tmp_path, manifests_of):
    """One engine generates all answers; the answers of each shard are replayed in a separate process."""
    manifests = manifests_of(tmp_path)
    of_shard = {shard: {"dataset": shard[0], "split": shard[1]} for shard in manifests}
    answers = {shard: tmp_path / "answers" / "-".join(shard) for shard in manifests}
    wanted = {answers[shard]: qwen.answers(VLLM, **names) for shard, names in of_shard.items()}
    command = qwen.command("generate", wanted, {answers[shard]: path for shard, path in manifests.items()})
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for shard, names in of_shard.items():
        given = {"manifest": manifests[shard], "generations": answers[shard]}
        made = qwen.make("replay", tmp_path / "features" / "-".join(shard), qwen.states(**names), **given)
        assert read_table(made / "features.parquet", FEATURES)["log_prob_max_difference"].max() < 1e-4


def test_samples_have_raw_log_probs_and_no_forbidden_ids(qwen, sampled, tmp_path):
    spec = qwen.states(decoding=SAMPLING)
    made = qwen.make("replay", tmp_path / "features", spec, generations=sampled)
    assert read_table(made / "features.parquet", FEATURES)["log_prob_max_difference"].max() < 1e-4
    tokens = set(generations(sampled)["token_ids"].explode().to_list())
    assert not tokens & set(qwen.tiny.open().encoder.forbidden)
    assert len(tokens) > 100


def test_samples_depend_on_the_row_and_the_seed(qwen, sampled, tmp_path):
    first = generations(sampled)
    again = generations(qwen.make("generate", tmp_path / "again", qwen.answers(VLLM, decoding=SAMPLING)))
    assert first.equals(again)
    other = generations(qwen.make("generate", tmp_path / "other", qwen.answers(VLLM, decoding=SAMPLING, seed=1)))
    assert first.filter(first["token_ids"] == other["token_ids"]).height < 0.01 * first.height
    assert first.group_by("sample_id").agg(pl.col("token_ids").n_unique())["token_ids"].to_list() == [4] * 128
    assert first["token_ids"].n_unique() > 0.99 * first.height
    fewer = qwen.answers(VLLM, decoding=changed(SAMPLING, n_samples=2))
    kept = generations(qwen.make("generate", tmp_path / "fewer", fewer))
    assert kept["token_ids"].to_list() == first.filter(pl.col("sample_index") < 2)["token_ids"].to_list()


@pytest.mark.parametrize("choices", [Choices(integers=[0, 100]), Choices(words=["Yes", "No"])])
def test_choices_have_the_log_probabilities_of_the_transformers_engine(qwen, greedy, tmp_path, choices):
    found = []
    for name, engine in (("vllm", VLLM), ("transformers", TRANSFORMERS)):
        spec = qwen.answers(engine, choices=choices, decoding=None)
        made = qwen.make("generate", tmp_path / name, spec, generations=greedy)
        found.append(read_table(made / "choices.parquet", CHOICES).sort("sample_id", "choice"))
    ours, theirs = found
    assert ours.height == 128 * (101 if choices.integers else 2)
    assert ours.drop("log_prob").equals(theirs.drop("log_prob"))
    assert np.abs((ours["log_prob"] - theirs["log_prob"]).to_numpy()).max() < 1e-4


def test_a_killed_job_resumes_after_its_last_finished_shard(qwen, tmp_path):
    wanted = {tmp_path / str(n): qwen.answers(VLLM, decoding=SAMPLING, seed=n) for n in range(3)}
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "OMP_NUM_THREADS": "1"}
    command = qwen.command("generate", wanted)
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as job:
        assert "computed in" in next(line for line in job.stderr if str(tmp_path / "0") in line and "comput" in line)
        job.send_signal(signal.SIGKILL)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    words = [line.split(": ")[1].split()[0] for line in done.stderr.splitlines() if line.startswith("[generate]")]
    said = [word for word in words if word in ("hit", "computed")]  # where it takes long, there are lines of progress
    assert said[0] == "hit"
    assert said[-1] == "computed"
    assert len(said) == 3


def test_a_finished_shard_is_found_without_vllm(qwen, greedy, tmp_path):
    (tmp_path / "vllm.py").write_text("raise SystemExit('vllm is imported')")
    found = qwen.run("generate", greedy, qwen.answers(VLLM), shadows=tmp_path)
    assert "hit" in found.stderr
    missed = qwen.run("generate", tmp_path / "answers", qwen.answers(VLLM), shadows=tmp_path)
    assert "vllm is imported" in missed.stderr


def test_two_processes_answer_as_one(qwen):
    program = Path(__file__).with_name("two_processes.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "OMP_NUM_THREADS": "1"}
    command = [str(qwen.vllm_python), str(program), str(qwen.tiny.checkpoint)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "equal\n", done.stderr


def test_more_tokens_than_the_checkpoint_has_positions_are_refused(qwen, tmp_path):
    decoding = changed(SAMPLING, max_completion_tokens=500)
    done = qwen.run("generate", tmp_path / "answers", qwen.answers(VLLM, decoding=decoding))
    assert done.returncode == 1
    assert "but the engine was opened for 512" in done.stderr


def test_the_replay_refuses_gemma_3_with_causal_attention(gemma, tmp_path):
    """On CPUs, vLLM has no bidirectional attention over image tokens, and gives no warning."""
    answers = gemma.make("generate", tmp_path / "answers", gemma.answers(VLLM))
    done = gemma.run("replay", tmp_path / "features", gemma.states(), generations=answers)
    assert done.returncode == 1
    assert "slake/test/original: the replay does not reproduce its generation" in done.stderr
    assert "Worst: slake/test/" in done.stderr
    same = gemma.make("generate", tmp_path / "same", gemma.answers(TRANSFORMERS))
    gemma.make("replay", tmp_path / "their features", gemma.states(), generations=same)
