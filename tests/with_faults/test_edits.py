"""Random edits with a run after each: the final bytes are those of a run from nothing with the same edits."""

from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout
from tests.workflow.faults import assert_same, contents, draw_edits, run


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
