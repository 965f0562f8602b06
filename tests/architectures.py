"""With which architectures tests run; not in `tests.tiny`, which vLLM's environment imports without pytest."""

import pytest

from tests.tiny import FAMILIES

# Tests of models and trainings with this mark run with each architecture, and the others with the first one.
both = pytest.mark.parametrize("tiny", FAMILIES, indirect=True)
# Where the code is the same for all, the second one is tried in `make test-rest`.
SECOND_IN_REST = (FAMILIES[0], pytest.param(FAMILIES[1], marks=pytest.mark.rest))
second_in_rest = pytest.mark.parametrize("tiny", SECOND_IN_REST, indirect=True)


@pytest.hookimpl(tryfirst=True)
def one_architecture(metafunc: pytest.Metafunc) -> None:
    """Choose the first architecture for a test that takes `tiny` and names none."""
    named = any("tiny" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "tiny" in metafunc.fixturenames and not named:
        metafunc.definition.add_marker(pytest.mark.parametrize("tiny", FAMILIES[:1], indirect=True))
