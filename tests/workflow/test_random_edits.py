"""After a random edit of the library, no job whose key stayed the same would write other bytes."""

import pytest

from tests.workflow.faults import copy
from tests.workflow.random_edits import Edit, check, outcomes

pytestmark = pytest.mark.long


def test_five_edits(micro, tmp_path):
    """`make test-edits` makes 200."""
    total = check(copy(micro, tmp_path / "checkout").folder, "micro", n_edits=5, seed=0)
    assert total["keyed"] > 0
    assert total["computed"] > 0


def test_an_edit_that_no_key_notices_is_found(micro, tmp_path):
    """The check can fail: modules of `store/` are in no key, and this one changes all seeds."""
    folder = copy(micro, tmp_path / "checkout").folder
    package = folder / "lib/dualread"
    (package / "store/sneaky.py").write_text(
        "import sys\n\nsys.modules['dualread.seeding'].generator.__globals__['derive_seed'] = lambda *names: 7\n"
    )
    text = (package / "seeding.py").read_text()
    with outcomes(folder, "micro") as outcome:
        found = outcome(Edit("seeding.py", 1, "an import", f"{text}\n\nimport dualread.store.sneaky\n"))
    assert found["wrong"], found
