"""A stage's spec, from the mapping that keys and manifests hold to the dataclass that its `compute` takes."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from dualread.errors import ConfigError, did_you_mean
from dualread.store.digest import canonical_json

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def spec_of(compute: Callable, spec: Mapping[str, Any], stage: str) -> Any:
    """Return `spec` as what the annotation of `compute` asks for; as it is where that is no dataclass.

    Raises:
        ConfigError: See `typed`.
    """
    kind = get_type_hints(compute).get("spec")
    return typed(kind, spec, stage) if isinstance(kind, type) and is_dataclass(kind) else spec


def typed(kind: type, spec: Mapping[str, Any], stage: str) -> Any:
    """Return `spec` as the dataclass `kind`; nothing is converted, and every field is known.

    Raises:
        ConfigError: A field is missing, unknown or of another type. The message names it with its value.
    """
    from pydantic import ValidationError  # a result that the store has does not need it

    try:
        return _adapter(kind).validate_json(b"[" + canonical_json(spec) + b"]")[0]
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
    *inside, last = problem["loc"][1:] or ("spec",)
    where = ".".join(map(str, [stage, "spec", *inside, last]))
    value, meant = f"{problem['input']!r}: ", ""
    if problem["type"].startswith("missing"):
        value, found = "", "is missing"
    elif problem["type"] == "unexpected_keyword_argument":
        found, meant = (
            "there is no such field",
            did_you_mean(last, [] if inside else [one.name for one in fields(kind)]),
        )
    else:
        found = f"{problem['msg'][0].lower()}{problem['msg'][1:]}"
    raise ConfigError(f"{where}: {value}{found}. Expected the fields of {kind.__module__}.{kind.__name__}.{meant}")


@cache
def _adapter(kind: type) -> "TypeAdapter":
    from pydantic import ConfigDict, TypeAdapter

    # A list, because pydantic refuses a configuration from outside for a dataclass itself; those inside inherit it.
    accepted: Any = list[kind]
    return TypeAdapter(accepted, config=ConfigDict(strict=True, extra="forbid"))
