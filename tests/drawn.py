"""Random input for the tests of bad input (test_any_*), which expect a defined result or a clear error."""

import math

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st


def examples(number: int) -> int:
    """Return how many examples to draw: `number`, or in the profile "quick" (conftest.py) the same share of it."""
    return math.ceil(number * settings().max_examples / 100)


few = settings(max_examples=examples(60), derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])

texts = st.text(st.characters(), max_size=40)  # with surrogates and control characters
numbers = st.one_of(
    st.floats(), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, 1 + 1e-9, 5e-324, 0.5])
)
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


def attempt(function, *kinds):
    """Return (result, None), or (None, error) if `function` raises an error of one of these kinds."""
    try:
        return function(), None
    except kinds as error:
        return None, error
