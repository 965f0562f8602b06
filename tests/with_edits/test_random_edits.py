"""200 random edits of the library: after none, a job whose key stayed the same would write other bytes."""

import pytest

from tests.workflow.faults import copy
from tests.workflow.random_edits import check


@pytest.mark.parametrize("seed", range(1, 21))
def test_ten_edits(micro, tmp_path, seed):
    total = check(copy(micro, tmp_path / "checkout").folder, "micro", n_edits=10, seed=seed)
    print(total)
    assert total["edits"] == 10
