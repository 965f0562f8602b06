"""One line per problem of a config: where, what is wrong, the value, what was expected, what to do.

Sections and the settings of plugins are checked by pydantic, and described in the words of those who write a study.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pydantic

from dualread.errors import did_you_mean
from dualread.schema.base import FORMS, Section

_NULL = ' Its value is null, as YAML reads null, Null, ~ and an empty value; text has to be in quotes, as in "Null".'
_QUOTES = "Text that YAML reads as something else (Null, Yes, No, on, off, true, false, numbers) has to be in quotes."

_POWER = re.compile(r"([-+]?[0-9]+)(\.[0-9]*)?[eE]([-+]?)([0-9]{1,2})")  # in YAML, a number has both point and sign

_TYPES = {
    **{"dict_type": "mapping", "model_type": "mapping", "mapping_type": "mapping"},
    **{"list_type": "list", "tuple_type": "list"},
    **{"string_type": "text", "int_type": "integer", "float_type": "number", "bool_type": "boolean"},
}
_BOUNDS = {
    "greater_than_equal": "is less than the minimum of {ge}",
    "less_than_equal": "is greater than the maximum of {le}",
    "greater_than": "is less than or equal to the minimum of {gt}",
    "less_than": "is greater than or equal to the maximum of {lt}",
}
_Path = tuple[str | int, ...]


def problems_of(
    error: pydantic.ValidationError, config: Any, nulls: Collection[str], declared: type[Section], inside: str = ""
) -> Iterator[str]:
    """Yield a line per problem that pydantic found in `config`, which contradicts what is `declared`, sorted by place.

    `inside` is the dotted name of `config` in the whole one, whose entries `nulls` are null, and count as missing.
    """
    problems = [(_path(details, config), details) for details in error.errors(include_url=False)]
    for path, details in sorted(problems, key=lambda problem: list(map(str, problem[0]))):
        yield _of_one(path, details, nulls, declared, inside)


def _of_one(
    path: _Path, details: Mapping[str, Any], nulls: Collection[str], declared: type[Section], inside: str
) -> str:
    where = ".".join(map(str, (inside, *path) if inside else path)) or "the study"
    value, context = details["input"], details.get("ctx", {})
    if (kind := details["type"]) in _TYPES:
        wanted = _TYPES[kind]
        quotes = f" {_QUOTES}" if wanted == "text" and not isinstance(value, Mapping | list) else ""
        return f"{where}: {value!r} is not of type {wanted}. Correct the value.{quotes}{_exponent(value, wanted)}"
    if kind in _BOUNDS:
        return f"{where}: {value!r} {_BOUNDS[kind].format(**context)}. Correct the value."
    match kind:
        case "extra_forbidden":
            known = [field.alias or key for key, field in _section(path[:-1], declared).model_fields.items()]
            meant = did_you_mean(path[-1], known)
            return f"{where}: unknown key. Known: {', '.join(sorted(known)) or 'none'}.{meant}"
        case "missing":
            fields = _section(path[:-1], declared).model_fields
            required = [field.alias or key for key, field in fields.items() if field.is_required()]
            return f"{where}: missing.{_NULL if where in nulls else ''} Expected: {', '.join(required)}."
        case "literal_error":
            known = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
            return f"{where}: {value!r} is not allowed. Known: {', '.join(known)}.{did_you_mean(value, known)}"
        case "string_pattern_mismatch":
            pattern = context["pattern"]
            meant = did_you_mean(value, [form for form in [str(value).lower()] if re.fullmatch(pattern, form)])
            form = f"{pattern} ({FORMS[pattern]})" if pattern in FORMS else pattern
            return f"{where}: {value!r} is not of the form {form}. Correct the value.{meant}"
        case "value_error":
            return f"{where}: {context['error']}"
        case _:
            return f"{where}: {value!r}: {details['msg']}. Correct the value."


def _path(details: Mapping[str, Any], config: Any) -> _Path:
    """Return where a problem is; a key that is not allowed is a problem of the mapping that holds it."""
    # Besides the keys of the config, pydantic's own location names alternatives of a type.
    location = details["loc"]
    if location and location[-1] == "[key]":
        location = location[:-2]
    path: list[str | int] = []
    for part in location:
        held = config if isinstance(config, Mapping) else dict(enumerate(config)) if isinstance(config, list) else {}
        if key := [key for key in held if key == part or str(key) == part]:
            path.append(part)
            config = held[key[0]]
    is_absent = details["type"] == "missing"
    return (*path, *location[-1:]) if is_absent else tuple(path)


def _section(path: _Path, declared: type[Section]) -> type[Section]:
    """Return the declaration of the section at `path` inside of what `declared` declares."""
    kind: Any = declared
    for key in path:
        is_section = isinstance(kind, type) and issubclass(kind, Section)
        kind = _without_wrappers(kind.model_fields[str(key)].annotation if is_section else get_args(kind)[-1])
    return kind


def _without_wrappers(kind: Any) -> Any:
    """Return what `Annotated[kind, ...]`, `kind | None`, or a name or a `kind`, is about."""
    if hasattr(kind, "__metadata__"):
        return _without_wrappers(get_args(kind)[0])
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        kinds = [_without_wrappers(part) for part in get_args(kind)]
        return next((part for part in kinds if isinstance(part, type) and issubclass(part, Section)), kinds[0])
    return kind


def _exponent(value: object, kind: str) -> str:
    """Return how to write a number that YAML reads as text, because its power of ten lacks the point or the sign."""
    power = _POWER.fullmatch(value) if isinstance(value, str) else None
    if power is None or kind not in ("number", "integer") or (kind == "integer" and not float(power[0]).is_integer()):
        return ""
    digits, fraction, sign, exponent = power.groups()
    meant = f"{digits}{fraction or '.0'}e{sign or '+'}{exponent}"
    if kind == "integer":
        meant = f"{float(meant):.0f}"
    return f" YAML reads {value} as text; write {meant}."
