"""Any value anywhere in a config is accepted, or refused with the name of its place."""

import copy
import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dualread.errors import ConfigError
from dualread.study.config import resolve
from tests.drawn import anything, attempt, examples, few

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
wrong = st.one_of(
    anything, st.sampled_from([[], {}, {1: 2}, [[1]], "nan", math.nan, -1, 10**400, "../x", {"null": None}, b"x", True])
)


def places(value, at=()):
    yield at
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(member, (*at, key))


PLACES = [at for at in places(CONFIG) if at]


@pytest.mark.parametrize("section", sorted(CONFIG))
def test_a_section_of_another_type_is_refused(section):
    for value in (3, [], [[1]], True, math.nan):
        with pytest.raises(ConfigError, match=rf"^study\.yaml: {section}"):
            resolve({**CONFIG, section: value}, source="study.yaml")


@settings(few, max_examples=examples(150))
@given(st.sampled_from(PLACES), wrong)
def test_any_value_anywhere_in_a_config_is_accepted_or_refused(at, value):
    config = copy.deepcopy(CONFIG)
    inner = config
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    _, error = attempt(lambda: resolve(config, source="study.yaml"), ConfigError)
    assert error is None or str(error).startswith("study.yaml: ")


@few
@given(anything)
def test_a_value_that_is_no_config_is_refused(value):
    with pytest.raises(ConfigError, match=r"^study\.yaml: "):
        resolve(value, source="study.yaml")
