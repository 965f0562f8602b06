import pytest

from dualread.evaluation.join import Joined, join
from tests.evaluation.cells import control_cell


@pytest.fixture(scope="session")
def evaluated() -> Joined:
    """A cell with all control conditions, joined."""
    questions, donors, grades, predictions = control_cell()
    return join(where="slake/test", manifest=questions, pairs=donors, graded=grades, predictions=predictions)
