"""A killed training goes on where it was, and ends with the bytes of one that was never killed."""

import os
import types
from pathlib import Path

import pytest

from dualread.models.training._checkpoints import newest_complete, remove_incomplete, seal
from dualread.models.training.grpo import train
from dualread.models.training.trainer import SECONDS

# Two passes of two completions a step, and a reference model, so that both have to be found again.
SETTINGS = {"steps": 4, "completions_per_pass": 2, "kl_coefficient": 0.1}


class Killed(Exception):
    """What a kill looks like to the trainer: nothing after it runs."""


def dying(reward, calls):
    """The same reward, in a process that dies after `calls` of them; there is one a step."""
    left = iter(range(calls))

    def rewarded(*arguments, **columns):
        if next(left, None) is None:
            raise Killed
        return reward.reward(*arguments, **columns)

    return types.SimpleNamespace(reward=rewarded, terms=reward.terms)


@pytest.fixture
def straight(job):
    """The log and the weights of a training without a kill."""
    return result(train(job("straight", **SETTINGS)), job("straight"))


def result(log, job):
    return [row for row in log if row["name"] != SECONDS], (job.out / "model.safetensors").read_bytes()


def kill(job, folder, after):
    folder.mkdir()
    with pytest.raises(Killed):
        train(job("killed", reward=dying(job("").reward, after), checkpoints=folder, save_every=1, **SETTINGS))


def resume(job, folder):
    log = train(job("resumed", checkpoints=folder, save_every=1, **SETTINGS))
    assert [row["step"] for row in log if row["name"] == SECONDS] == [1, 2, 3, 4]
    return result(log, job("resumed"))


def test_a_resumed_training_ends_with_the_same_bytes(job, straight, tmp_path, capsys):
    kill(job, tmp_path / "kept", after=2)
    assert resume(job, tmp_path / "kept") == straight
    assert f"going on from {tmp_path / 'kept' / 'checkpoint-2'}\n" in capsys.readouterr().err


def test_a_half_written_checkpoint_is_passed_over(job, straight, tmp_path, capsys):
    folder = tmp_path / "kept"
    kill(job, folder, after=3)
    assert sorted(path.name for path in folder.glob("checkpoint-*")) == ["checkpoint-2", "checkpoint-3"]  # two are kept
    (folder / "checkpoint-3" / "sealed-0.json").unlink()
    assert resume(job, folder) == straight
    assert f"going on from {folder / 'checkpoint-2'}\n" in capsys.readouterr().err


def test_a_training_that_was_finished_and_not_published_only_saves_its_actor_again(job, straight, tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    train(job("lost", checkpoints=folder, save_every=1, **SETTINGS))
    assert resume(job, folder) == straight


def test_nothing_is_saved_where_nothing_is_asked_for(job, tmp_path):
    train(job("actor", steps=2))
    train(job("actor", steps=2, save_every=1))  # and no folder that outlives a kill
    assert list(tmp_path.rglob("checkpoint-*")) == []


def checkpoint(folder, *names):
    folder.mkdir(parents=True)
    for name in ("model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json", *names):
        (folder / name).write_text(name)
    seal(folder, 0)
    return folder


def test_the_newest_is_that_of_most_steps(tmp_path):
    for step in (9, 10):
        checkpoint(tmp_path / f"checkpoint-{step}", "rng_state.pth")
    assert newest_complete(tmp_path, 1) == tmp_path / "checkpoint-10"
    assert newest_complete(tmp_path / "empty", 1) is None


def test_every_process_must_have_written_its_random_numbers(tmp_path, capsys):
    both = ("rng_state_0.pth", "rng_state_1.pth")
    whole, cut = (checkpoint(tmp_path / f"checkpoint-{step}", *both) for step in (1, 2))
    seal(whole, 1)
    assert newest_complete(tmp_path, 2) == whole
    remove_incomplete(tmp_path, 2)
    assert whole.exists()
    assert not cut.exists()
    assert f"warning: {cut}: half-written, sealed-1.json is missing." in capsys.readouterr().err
    (whole / both[1]).write_text("another")
    assert newest_complete(tmp_path, 2) is None


FILES = ["model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json", "rng_state.pth", "sealed-0.json"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_bytes(b"?"), lambda path: os.truncate(path, 3)]
)
def test_a_checkpoint_with_a_damaged_file_does_not_count_and_the_file_is_named(tmp_path, name, damage, capsys):
    folder = checkpoint(tmp_path / "checkpoint-1", "rng_state.pth")
    damage(folder / name)
    assert newest_complete(tmp_path, 1) is None
    remove_incomplete(tmp_path, 1)
    assert name in capsys.readouterr().err
    assert not folder.exists()
