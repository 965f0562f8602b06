"""Random edits, with runs that are killed before, between and after them: the bytes are those of a run from nothing."""

import random
from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout
from tests.workflow.faults import assert_same, copy, draw_edits, run

# Kills a run that hangs; a complete run takes about a minute.
WITH_TIMEOUT = ("timeout", "--signal=KILL", "900")


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
