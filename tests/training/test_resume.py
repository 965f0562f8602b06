"""A killed training resumes, and its result has the bytes of an uninterrupted one."""

import dataclasses
import json
import os
import types
from pathlib import Path

import pytest

from dualread.progress import STEPS, read_steps
from dualread.training.grpo import train
from dualread.training.job import newest_complete, seal
from dualread.training.trainer import SECONDS

# Two passes of two completions per step, and a reference model: both have to be restored.
SETTINGS = {"steps": 4, "completions_per_pass": 2, "kl_coefficient": 0.1}


class Killed(Exception):
    """Simulates a kill: no later code of the trainer runs."""


def dying(reward, calls):
    """Return the same reward, but simulate a kill after `calls` calls; there is one call per step."""
    left = iter(range(calls))

    def rewarded(*arguments, **columns):
        if next(left, None) is None:
            raise Killed
        return reward.reward(*arguments, **columns)

    return types.SimpleNamespace(**{**vars(reward), "reward": rewarded})


@pytest.fixture(scope="module")
def trained():
    """The results of `straight`, by family."""
    return {}


@pytest.fixture
def straight(tiny, job, trained):
    """Return the log and the weights of an uninterrupted training."""
    if tiny.family not in trained:
        trained[tiny.family] = result(train(job("straight", **SETTINGS)), job("straight"))
    return trained[tiny.family]


def result(log, job):
    return [row for row in log if row["name"] != SECONDS], (job.out / "model.safetensors").read_bytes()


def watched(job, name, folder, **changes):
    """Return a job with checkpoints and a file of its steps, which lies beside their folder."""
    made = job(name, checkpoints=folder, save_every=1, **SETTINGS, **changes)
    return dataclasses.replace(made, steps_file=folder.with_suffix(STEPS))


def kill(job, folder, after):
    folder.mkdir()
    with pytest.raises(Killed):
        train(watched(job, "killed", folder, reward=dying(job("").reward, after)))


def resume(job, folder):
    log = train(watched(job, "resumed", folder))
    assert [row["step"] for row in log if row["name"] == SECONDS] == [1, 2, 3, 4]
    return result(log, job("resumed"))


@pytest.mark.rest
def test_a_resumed_training_ends_with_the_same_bytes(job, straight, tmp_path, capsys):
    kill(job, tmp_path / "kept", after=2)
    steps = read_steps(tmp_path / "kept.steps")
    assert [(one.step, one.of) for one in steps] == [(1, 4), (2, 4)]
    assert resume(job, tmp_path / "kept") == straight
    again = read_steps(tmp_path / "kept.steps")
    assert again[:2] == steps
    said = [(one.step, name, value) for one in again for name, value in one.values.items() if name != SECONDS]
    assert said == [(row["step"], row["name"], row["value"]) for row in straight[0]]
    assert f"resuming from {tmp_path / 'kept' / 'checkpoint-2'}\n" in capsys.readouterr().err


@pytest.mark.rest
def test_a_half_written_checkpoint_is_skipped(job, straight, tmp_path, capsys):
    folder = tmp_path / "kept"
    kill(job, folder, after=3)
    assert sorted(path.name for path in folder.glob("checkpoint-*")) == ["checkpoint-2", "checkpoint-3"]  # two are kept
    (folder / "checkpoint-3" / "sealed-0.json").unlink()
    assert resume(job, folder) == straight
    assert f"resuming from {folder / 'checkpoint-2'}\n" in capsys.readouterr().err


@pytest.mark.rest
def test_a_finished_but_unpublished_training_only_saves_its_actor_again(job, straight, tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    train(job("lost", checkpoints=folder, save_every=1, **SETTINGS))
    assert resume(job, folder) == straight


def checkpoint(folder, *names):
    folder.mkdir(parents=True)
    for name in ("model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json", *names):
        (folder / name).write_text(name)
    seal(folder, 0, len([name for name in names if name.startswith("rng_state")]))
    return folder


def test_the_newest_checkpoint_has_the_most_steps(tmp_path):
    for step in (9, 10):
        checkpoint(tmp_path / f"checkpoint-{step}", "rng_state.pth")
    assert newest_complete(tmp_path, 1) == tmp_path / "checkpoint-10"
    assert newest_complete(tmp_path / "empty", 1) is None


def test_a_checkpoint_needs_the_random_state_of_every_process(tmp_path, capsys):
    both = ("rng_state_0.pth", "rng_state_1.pth")
    whole, cut = (checkpoint(tmp_path / f"checkpoint-{step}", *both) for step in (1, 2))
    seal(whole, 1, 2)
    assert newest_complete(tmp_path, 2) == whole
    assert newest_complete(tmp_path, 1) is None  # two have written it
    assert cut.exists()
    assert newest_complete(tmp_path, 2, remove=True) == whole
    assert whole.exists()
    assert not cut.exists()
    assert f"warning: {cut}: half-written, sealed-1.json is missing." in capsys.readouterr().err
    (whole / both[1]).write_text("another")
    assert newest_complete(tmp_path, 2) is None


def test_a_checkpoint_in_parts_needs_the_part_of_every_process_whatever_their_number(tmp_path):
    parts = [f"__{process}_0.distcp" for process in range(3)]
    names = [*parts, *(f"rng_state_{process}.pth" for process in range(3))]
    folder = checkpoint(tmp_path / "checkpoint-1", *names)
    seal(folder, 1, 3)
    assert newest_complete(tmp_path, None) is None  # the third process was killed
    seal(folder, 2, 3)
    sealed = [json.loads((folder / f"sealed-{process}.json").read_text()) for process in range(3)]
    assert [seal["processes"] for seal in sealed] == [3, 3, 3]
    assert sealed[1]["files"].keys() == {parts[1], names[4]}
    assert sealed[0]["files"].keys() == {path.name for path in folder.iterdir() if "sealed" not in path.name} - {
        *parts[1:],
        *names[4:],
    }
    assert newest_complete(tmp_path, None) == newest_complete(tmp_path, 3) == folder
    (folder / parts[2]).write_text("another")
    assert newest_complete(tmp_path, None) is None


FILES = ["model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json", "rng_state.pth", "sealed-0.json"]


@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_with_a_damaged_file_is_skipped_and_the_file_is_named(tmp_path, name, capsys):
    for damage in (Path.unlink, lambda path: path.write_bytes(b"?"), lambda path: os.truncate(path, 3)):
        folder = checkpoint(tmp_path / "checkpoint-1", "rng_state.pth")
        damage(folder / name)
        assert newest_complete(tmp_path, 1, remove=True) is None
        assert name in capsys.readouterr().err
        assert not folder.exists()
