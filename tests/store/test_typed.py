from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from dualread.errors import ConfigError
from dualread.specs.wire import as_mapping
from dualread.store.typed import spec_of, typed


@dataclass(frozen=True, kw_only=True)
class Method:
    module: str
    parents: "Mapping[str, Method]"


@dataclass(frozen=True, kw_only=True)
class Spec:
    seed: int
    share: float
    method: Method
    names: tuple[str, ...]
    settings: Mapping[str, Any]
    limit: int | None = None


def spec(**changes):
    parent = Method(module="readers.psr", parents={})
    method = Method(module="readers.dualread", parents={"pre": parent})
    given = {"seed": 17, "share": 1.0, "method": method, "names": ("a", "b"), "settings": {"l2": None, "hidden": [8]}}
    return Spec(**given | changes)


def test_a_spec_without_its_empty_fields_is_a_mapping_that_json_can_hold():
    assert as_mapping(spec()) == {
        "seed": 17,
        "share": 1.0,
        "method": {"module": "readers.dualread", "parents": {"pre": {"module": "readers.psr", "parents": {}}}},
        "names": ["a", "b"],
        "settings": {"l2": None, "hidden": [8]},  # the plugin's own, so they stay as they are
    }
    assert as_mapping(spec(limit=3))["limit"] == 3


@pytest.mark.parametrize("limit", [None, 3])
def test_a_mapping_becomes_the_spec_that_it_was_written_from(limit):
    assert typed(Spec, as_mapping(spec(limit=limit)), "stage") == spec(limit=limit)


@pytest.mark.parametrize(
    ("changes", "where", "value"),
    [
        ({"seed": "17"}, "stage.spec.seed", "'17'"),
        ({"seed": 17.5}, "stage.spec.seed", "17.5"),
        ({"names": "ab"}, "stage.spec.names", "'ab'"),
        ({"sed": 17}, "stage.spec.sed", "Did you mean 'seed'?"),
        ({"method": {"module": "m", "parents": {"pre": {"parents": {}}}}}, "parents.pre.module", "is missing"),
    ],
)
def test_another_field_or_type_is_refused_with_its_place_and_value(changes, where, value):
    with pytest.raises(ConfigError) as refused:
        typed(Spec, as_mapping(spec()) | changes, "stage")
    assert where in str(refused.value)
    assert value in str(refused.value)


def test_a_missing_field_is_named():
    given = as_mapping(spec())
    del given["seed"]
    with pytest.raises(ConfigError, match=r"stage\.spec\.seed: is missing"):
        typed(Spec, given, "stage")


def test_the_signature_of_a_stage_says_what_it_gets():
    def compute(spec: Spec, inputs: Mapping[str, Any], out: Any) -> str: ...

    def untyped(spec, inputs, out): ...

    assert spec_of(compute, as_mapping(spec()), "stage") == spec()
    assert spec_of(untyped, {"seed": 17}, "stage") == {"seed": 17}
