"""What the settings of a study mean, in words and as JSON schema; read from what stands below each field."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from dualread import plugins
from dualread.schema.base import FORMS, NAME, Section, settings_class
from dualread.schema.study import Config

_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
_WORDS = {"string": "text", "array": "list", "object": "mapping"}


def meanings(section: type[Section]) -> dict[str, str]:
    """Return what each field of a section means, by name: the text below it, also of the classes it is derived from."""
    texts: dict[str, str] = {}
    for kind in reversed(section.__mro__):
        if issubclass(kind, Section):
            body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
            texts |= _texts_below(body)
    return texts


def _texts_below(section: ast.AST) -> dict[str, str]:
    texts, body = {}, section.body if isinstance(section, ast.ClassDef) else []
    for field, statement in pairwise(body):
        match field, statement:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name.rstrip("_")] = " ".join(text.split())  # `from_` is the field of the key `from`
    return texts


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a study's YAML file, with the meaning of each key, for editors that complete keys."""
    return _explained(Config.model_json_schema(), meanings(Config))


def settings() -> Iterator[tuple[str, str, str]]:
    """Yield each key of a study in the order of the declarations: its place, what may stand there, its meaning.

    In a place, `<name>` stands for the name of an entry: "datasets.<name>.label".
    """
    schema = json_schema()
    yield from _keys(schema, schema["$defs"], "")


def plugin_settings() -> Iterator[tuple[str, str, str]]:
    """Yield each setting of each plugin: `plugins.<family>.{<plugin>,<plugin>}.<setting>`, and the same as `settings`.

    A setting that several plugins of a family have in common stands there once.
    """
    for family in plugins.FAMILIES:
        owners: dict[tuple[str, str, str], list[str]] = {}
        for name in plugins.known(family):
            section = settings_class(family, name)
            statement = plugins.class_statement(family, name, "Settings")
            texts = {} if statement is None else {**meanings(section.__mro__[1]), **_texts_below(statement)}
            schema = _explained(section.model_json_schema(), texts)
            for row in _keys(schema, schema.get("$defs", {}), ""):
                owners.setdefault(row, []).append(name)
        for (setting, kind, meaning), names in owners.items():
            owner = names[0] if len(names) == 1 else f"{{{','.join(names)}}}"
            yield f"plugins.{family}.{owner}.{setting}", kind, meaning


def _explained(schema: dict[str, Any], of_all: Mapping[str, str]) -> dict[str, Any]:
    """Add to each key of a JSON schema what it means, and return the schema; `of_all` has what its own keys mean."""
    sections = {section.__name__: section for section in _derived(Section)}
    parts = [(schema, of_all), *((part, meanings(sections[name])) for name, part in schema.get("$defs", {}).items())]
    for part, texts in parts:
        for key, text in texts.items():
            part["properties"][key]["description"] = text
    return schema


def _derived(section: type[Section]) -> Iterator[type[Section]]:
    yield section
    for kind in section.__subclasses__():
        yield from _derived(kind)


def _keys(part: Mapping[str, Any], known: Mapping[str, Any], inside: str) -> Iterator[tuple[str, str, str]]:
    for key, value in part.get("properties", {}).items():
        place, sections = f"{inside}{key}", []
        required = ", required" if key in part.get("required", ()) else ""
        yield place, _words(value, known, place, sections) + required, value.get("description", "")
        for where, section in sections:
            yield from _keys(section, known, f"{where}.")


def _words(value: Mapping[str, Any], known: Mapping[str, Any], place: str, sections: list[tuple[str, Any]]) -> str:
    """Return what may stand in a place; append the sections below it, with their places, to `sections`."""
    if "$ref" in value:
        sections.append((place, known[value["$ref"].rpartition("/")[2]]))
        return "section"
    if kinds := value.get("anyOf") or value.get("oneOf"):
        words = [_words(kind, known, place, sections) for kind in kinds if kind.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if listed := value.get("enum") or ([value["const"]] if "const" in value else None):
        return " or ".join(f"`{value}`".replace("True", "true") for value in listed)
    kind = value.get("type", "any value")
    if kind == "array":
        if of_each := value.get("prefixItems"):
            return f"list of {len(of_each)}: {_words(of_each[0], known, place, sections)}"
        return f"list of {_words(value.get('items', {}), known, place, sections)}"
    inner = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")][0]
    if kind == "object" and isinstance(inner, Mapping):
        words = _words(inner, known, f"{place}.<name>", sections)
        return "sections by name" if words == "section" else f"mapping to {words}"
    if value.get("pattern") == NAME:
        return "name"
    bounds = [f"{words} {value[bound]:,}" for bound, words in _BOUNDS.items() if bound in value]
    form = [FORMS[value["pattern"]]] if value.get("pattern") in FORMS else []
    return ", ".join([_WORDS.get(kind, kind), *form, *bounds])
