"""`make test-mutants` takes long and runs each week; every push sees that its lines and tests are still there."""

from pathlib import Path

import dualread
from tests.mutants.mutants import MUTANTS

LIBRARY, TESTS = Path(dualread.__file__).parent, Path(__file__).parent


def test_each_line_is_in_the_library_once_and_each_test_is_there():
    assert len({mutant.what for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert (LIBRARY / mutant.file).read_text().count(mutant.before) == 1, mutant.what
        assert len({test.partition("::")[0] for test in mutant.noticed_by}) >= 1, mutant.what
        for test in mutant.noticed_by:
            file, _, name = test.partition("::")
            assert f"def {name}(" in (TESTS / file).read_text() if name else (TESTS / file).is_file(), test
