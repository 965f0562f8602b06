"""Edits, kills and damage at places drawn from a seed: the last run gives the bytes of a run from nothing."""

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout
from tests.workflow.faults import MICRO, assert_same, contents, copy, draw_edits, flip, run, truncate

# Kills a run that hangs; a complete run takes about a minute.
WITH_TIMEOUT = ("timeout", "--signal=KILL", "900")


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_study_killed_at_random_moments_ends_with_the_same_bytes(micro, tmp_path, seed):
    """Kills Snakemake alone, or with all its processes, by any signal; finished artifacts are never recomputed."""
    drawn, runs = random.Random(seed), []
    checkout = Checkout.create(tmp_path)
    for _ in range(3):
        alone = ["--foreground"] * drawn.randint(0, 1)
        signal, seconds = drawn.choice(["KILL", "TERM", "INT"]), drawn.uniform(3, 40)
        # Jobs that outlive Snakemake keep the pipe open that this waits for.
        runs.append(run(checkout, within=["timeout", *alone, f"--signal={signal}", f"{seconds:.1f}"]))
    runs.append(run(checkout, within=WITH_TIMEOUT))
    assert runs[-1].returncode == 0, runs[-1].text
    assert_same(checkout, micro)
    computed = [entry for done in runs for entry in done.entries("computed")]
    assert len(computed) == len(set(computed))
    assert [*checkout.folder.glob("results/store/tmp/*"), *checkout.folder.glob("results/store/partial/*")] == []


def _flip_first(path: Path) -> None:
    path.chmod(0o644)
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def _zero(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(bytes(path.stat().st_size))


def _empty(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"")


def _flip_secretly(path: Path) -> None:
    flip(path, secretly=True)


def _replace(make):
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


DAMAGES = {
    "flipped": flip,
    "flipped, with its old time": _flip_secretly,
    "flipped first byte": _flip_first,
    "zeros": _zero,
    "emptied": _empty,
    "truncated": truncate,
    "deleted": Path.unlink,
    "a link to nowhere": _replace(lambda path: path.symlink_to("nowhere")),
    "a link to itself": _replace(lambda path: path.symlink_to(path.name)),
    "a pipe": _replace(os.mkfifo),
}
LOST = {
    "nothing": (),
    "the tables": ("tables",),
    "what is computed last": ("tables", f"{MICRO}/predictions", f"{MICRO}/metrics", f"{MICRO}/tables"),
    "all results": (MICRO,),
}


def _draw_file(checkout: Checkout, folder: str, drawn: random.Random) -> Path:
    """Draw a kind of file first: most files are images."""
    kinds: dict[str, list[Path]] = {}
    for path in sorted((checkout.folder / folder).rglob("*")):
        if path.is_file() and path.stat().st_size and "logs" not in path.parts:
            kinds.setdefault(path.name if path.suffix == ".json" else path.suffix, []).append(path)
    return drawn.choice(kinds[drawn.choice(sorted(kinds))])


@pytest.mark.parametrize("seed", range(1, 21))
def test_a_study_damaged_at_random_places_ends_with_the_same_bytes(micro, tmp_path, seed):
    """Damages or removes files in results, store, tables and Snakemake's notes; damaged results are reported."""
    drawn = random.Random(seed)
    checkout, done = copy(micro, tmp_path / "checkout"), []
    for _ in range(drawn.randint(1, 3)):
        folder = drawn.choice([MICRO, MICRO, "results/store", "results/store", "tables", ".snakemake/metadata"])
        path, how = _draw_file(checkout, folder, drawn), drawn.choice(sorted(DAMAGES))
        if folder == ".snakemake/metadata" and how.startswith("a "):
            how = "emptied"  # Snakemake itself waits for a pipe
        DAMAGES[how](path)
        done.append((folder, path, how))
    lost = drawn.choice(sorted(LOST))
    for name in LOST[lost]:
        shutil.rmtree(checkout.folder / name)
    found = run(checkout, within=WITH_TIMEOUT)
    faults = "\n".join(f"{path}: {how}" for _, path, how in done)
    assert found.returncode == 0, f"{faults}\nlost: {lost}\n{found.text}"
    assert "Traceback" not in found.text, f"{faults}\nlost: {lost}\n{found.text}"
    assert_same(checkout, micro)
    for folder, path, _ in done:
        artifact = folder == MICRO and "jobs" not in path.parts and path.name not in ("results.lock", "MANIFEST.json")
        if artifact and lost == "nothing":
            assert f"{path.relative_to(checkout.folder)}: " in found.text, f"{faults}\n{found.text}"


@pytest.mark.parametrize("seed", range(1, 8))
def test_runs_after_random_edits_end_with_the_bytes_of_a_run_from_nothing(tmp_path: Path, seed):
    edited, fresh = (Checkout.create(tmp_path / name) for name in ("edited", "fresh"))
    assert run(edited).returncode == 0
    before = contents(edited)
    for edit in draw_edits(seed=seed, number=3):
        edit(edited)
        edit(fresh)
        done = run(edited)
        assert done.returncode == 0, done.text
    assert run(fresh).returncode == 0
    assert_same(edited, fresh)
    assert contents(edited) != before
    assert run(edited).did_nothing()


def _drop_records(checkout: Checkout, drawn: random.Random) -> None:
    for record in sorted(checkout.folder.glob(".snakemake/metadata/*")):
        if drawn.random() < 0.3:
            record.unlink()


@pytest.mark.parametrize("seed", range(1, 9))
def test_edits_between_killed_runs_end_with_the_bytes_of_a_run_from_nothing(micro, tmp_path: Path, seed):
    """Snakemake alone is killed, or with all its jobs; what outlives it goes on beside the next run."""
    drawn = random.Random(seed)
    edited, fresh = copy(micro, tmp_path / "edited"), Checkout.create(tmp_path / "fresh")
    for edit in draw_edits(seed=seed, number=3):
        edit(edited)
        edit(fresh)
        alone = ["--foreground"] * drawn.randint(0, 1)
        signal, seconds = drawn.choice(["KILL", "TERM", "INT", "HUP"]), drawn.uniform(2, 15)
        run(edited, within=["timeout", *alone, f"--signal={signal}", f"{seconds:.1f}"])
        if drawn.random() < 0.5:
            _drop_records(edited, drawn)
    done = run(edited, within=WITH_TIMEOUT)
    assert done.returncode == 0, done.text
    assert run(fresh).returncode == 0
    assert_same(edited, fresh)
    assert run(edited).did_nothing()
