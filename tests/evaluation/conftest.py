import pytest

from dualread.evaluation.join import Evaluated, evaluate
from tests.evaluation.cells import control_cell


@pytest.fixture(scope="session")
def evaluated() -> Evaluated:
    """A cell with all control conditions, joined."""
    questions, donors, grades, predictions = control_cell()
    return evaluate(where="slake/test", manifest=questions, pairs=donors, graded=grades, predictions=predictions)
