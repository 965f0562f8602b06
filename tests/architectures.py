"""With which architectures tests run; not in `tests.tiny`, which vLLM's environment imports without pytest."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.tiny import FAMILIES

# Tests of models and trainings with this mark run with each architecture, and the others with the first one.
both = pytest.mark.parametrize("tiny", FAMILIES, indirect=True)


def others_in_rest(values: Sequence[str], n_often: int = 1) -> list[Any]:
    """Return parameters of which the first `n_often` run in `make test`, and the others in `make test-rest`."""
    return [*values[:n_often], *(pytest.param(value, marks=pytest.mark.rest) for value in values[n_often:])]


# Where the code is the same for all architectures.
SECOND_IN_REST = others_in_rest(FAMILIES)
second_in_rest = pytest.mark.parametrize("tiny", SECOND_IN_REST, indirect=True)


@pytest.hookimpl(tryfirst=True)
def one_architecture(metafunc: pytest.Metafunc) -> None:
    """Choose the first architecture for a test that takes `tiny` and names none."""
    named = any("tiny" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "tiny" in metafunc.fixturenames and not named:
        metafunc.definition.add_marker(pytest.mark.parametrize("tiny", FAMILIES[:1], indirect=True))
