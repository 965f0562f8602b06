"""Check a study's configuration: every key known, every name found, and everything that no schema can say.

The caller reads the files of the study. A key whose value is null is as if it were not there, so that a study laid over
another one can leave entries out.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from dualread import plugins
from dualread.errors import ConfigError, did_you_mean
from dualread.models import prompts
from dualread.study.checks import contradictions, missing_checkpoints, missing_files, unknown_references
from dualread.study.selection import nothing_left, select, unknown_seeds

# Explanations of a missing entry, and of a value that was meant as text.
_NULL = ' Its value is null, as YAML reads null, Null, ~ and an empty value; text has to be in quotes, as in "Null".'
_QUOTES = "Text that YAML reads as something else (Null, Yes, No, on, off, true, false, numbers) has to be in quotes."
_SHOWN = 10  # problems listed at once; a renamed section would otherwise print a page


def resolve(
    config: Mapping[str, Any], schema: Mapping[str, Any], *, source: str = "config", root: Path | None = None
) -> dict[str, Any]:
    """Return `config` without its null entries and without what its `only` leaves out, after every check.

    Args:
        config: All files of the study, merged.
        schema: The JSON schema of a study.
        source: The files' names, for messages.
        root: Where relative folders start. Without it, checkpoints need not be in their folders yet.

    Raises:
        ConfigError: Something is unknown, missing or out of range. Each problem has a line: where, what, the value,
            what was expected.
    """
    try:
        study: dict[str, Any] = without_nulls(config)
    except RecursionError as error:
        raise ConfigError(f"{source}: an entry holds itself (an alias, `*name`). Write it out.") from error
    nulls = frozenset(_nulls(config))
    errors = sorted(Draft202012Validator(schema).iter_errors(study), key=lambda error: list(map(str, error.path)))
    _refuse((_describe(error, nulls=nulls) for error in errors), source)
    _refuse(_unknown_plugins(study), source)
    _refuse(_bad_settings(study, nulls), source)
    _refuse(unknown_references(study), source)
    _refuse(_unknown_prompts(study), source)
    _refuse(contradictions(study), source)
    _refuse(unknown_seeds(study), source)
    only = study.get("only", {})
    study = select(study)
    _refuse(nothing_left(study, only), source)
    _refuse(unknown_references(study), source)  # nothing may point to what is gone
    _refuse(missing_checkpoints(study), source)
    if root is not None:
        _refuse(missing_files(study, root), source)
    return study


def without_nulls(value: Any) -> Any:
    """Return a copy of `value` in which no mapping, at any depth, has a null value."""
    if isinstance(value, Mapping):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value


def _nulls(value: Any, inside: str = "") -> Iterator[str]:
    """Yield the dotted name of every entry that is null."""
    if isinstance(value, Mapping):
        for key, member in value.items():
            if member is None:
                yield f"{inside}{key}"
            yield from _nulls(member, f"{inside}{key}.")


def training_settings(actor: Mapping[str, Any], backbone: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an actor is trained with on a backbone: its own settings, those of the backbone laid over them.

    Of two limits on the prompt the larger counts: an actor with a prompt of its own may need more room than others.
    """
    both = (actor["settings"], backbone.get("training", {}))
    limits = [settings["max_prompt_tokens"] for settings in both if "max_prompt_tokens" in settings]
    return {**both[0], **both[1], **({"max_prompt_tokens": max(limits)} if limits else {})}


def _refuse(problems: Iterator[str], source: str) -> None:
    if found := list(problems):
        more = [f"... and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        raise ConfigError("\n".join(f"{source}: {line}" for line in found[:_SHOWN] + more))


def _describe(error: ValidationError, prefix: str = "", *, nulls: Collection[str]) -> str:
    """Say what breaks the schema the way every other message does; rare kinds keep jsonschema's own words.

    Args:
        error: What the validator found.
        prefix: The dotted name of what was validated.
        nulls: The dotted names of the study's null entries, which count as missing.
    """
    where = ".".join(filter(None, (prefix, *map(str, error.absolute_path))))
    inside = f"{where}." if where else ""
    schema: Any = error.schema
    rule: Any = error.validator_value
    value: Any = error.instance
    match error.validator:
        case "additionalProperties" if isinstance(value, Mapping) and rule is False:
            known = schema.get("properties", {})
            unknown = [str(key) for key in value if key not in known]
            keys = ", ".join(f"{inside}{key}" for key in unknown)
            meant = "".join(did_you_mean(key, known) for key in unknown)
            return f"{keys}: unknown key{'s' * (len(unknown) > 1)}. Known: {', '.join(sorted(known)) or 'none'}.{meant}"
        case "required":
            missing = next(key for key in rule if error.message.startswith(f"{key!r} "))
            null = _NULL if f"{inside}{missing}" in nulls else ""
            return f"{inside}{missing}: missing.{null} Expected: {', '.join(rule)}."
        case "dependentRequired":
            return f"{where}: {error.message}. Give both or neither."
        case "type":
            kind = {"object": "mapping", "array": "list", "string": "text"}.get(rule, rule)
            quotes = f" {_QUOTES}" if rule == "string" and not isinstance(value, Mapping | list) else ""
            return f"{where}: {value!r} is not of type {kind}. Correct the value.{quotes}"
        case "oneOf" if error.context:
            # A complaint about a part of the value comes from the alternative that was meant.
            inside_out = [inner for inner in error.context if inner.instance is not value]
            return _describe((inside_out or error.context)[0], prefix, nulls=nulls)
        case "enum":
            known = ", ".join(map(str, rule))
            return f"{where}: {value!r} is not allowed. Known: {known}.{did_you_mean(value, rule)}"
        case "pattern":
            meant = did_you_mean(value, [form for form in [str(value).lower()] if re.search(rule, form)])
            form = f"{rule} ({schema['description']})" if "description" in schema else rule
            return f"{where}: {value!r} is not of the form {form}. Correct the value.{meant}"
        case _:
            return f"{where or 'the study'}: {error.message}. Correct the value."


def _unknown_plugins(config: Mapping[str, Any]) -> Iterator[str]:
    for where, family, name in _named_plugins(config):
        if name not in plugins.known(family):
            folder = f"lib/dualread/{plugins.package_of(family).replace('.', '/')}"
            yield f"{where}: {name!r}: no such plugin in {folder}. {plugins.alternatives(family, name)}"


def _named_plugins(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (where, plugin family, plugin name) of every plugin that the configuration names."""
    for name, phantom in config.get("phantoms", {}).items():
        yield f"phantoms.{name}.format", "writers", phantom["format"]
    for name, dataset in config["datasets"].items():
        yield f"datasets.{name}.loader", "datasets", dataset["loader"]
    for name, backbone in config["backbones"].items():
        yield f"backbones.{name}.family", "backbones", backbone["family"]
        if pretrain := backbone["source"].get("pretrain"):
            yield f"backbones.{name}.source.pretrain.pool.name", "corpora", pretrain["pool"]["name"]
    for name, actor in config["actors"].items():
        if "training" in actor:
            yield f"actors.{name}.training", "training", actor["training"]
            yield f"actors.{name}.reward", "rewards", actor["reward"]
    yield "generation.engine", "generation", config["generation"]["engine"]
    for name, method in config["methods"].items():
        yield f"methods.{name}.reader", "readers", method["reader"]
    for name in config["tables"]:
        yield f"tables.{name}", "tables", name
    for name in config.get("figures", {}):
        yield f"figures.{name}", "figures", name


def _unknown_prompts(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield every named prompt that is no file of lib/dualread/models/prompts."""
    known = prompts.names()
    for where, name in _named_prompts(config):
        if name not in known:
            listed = ", ".join(known)
            yield (
                f"{where}: {name!r}: no such file in lib/dualread/models/prompts. Known: {listed}.{did_you_mean(name, known)}"
            )


def _named_prompts(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section in ("datasets", "actors", "conditions", "views"):
        for name, entry in config.get(section, {}).items():
            if "prompt" in entry:
                yield f"{section}.{name}.prompt", entry["prompt"]
    for name, backbone in config["backbones"].items():
        for prompt in backbone["source"].get("pretrain", {}).get("training", {}).get("mixture", {}):
            yield f"backbones.{name}.source.pretrain.training.mixture", prompt


def _bad_settings(config: Mapping[str, Any], nulls: Collection[str]) -> Iterator[str]:
    """Check the settings of every plugin against what it declares."""
    for where, family, name, settings in _settings(config):
        declared = plugins.settings(family, name)
        schema = {
            "type": "object",
            "properties": declared,
            "required": [key for key, rule in declared.items() if not rule.get("optional")],
            "additionalProperties": False,
        }
        for error in Draft202012Validator(schema).iter_errors(settings):
            yield _describe(error, where, nulls=nulls)


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield (where, plugin family, plugin name, settings) of every plugin that can be set."""
    for name, dataset in config["datasets"].items():
        yield f"datasets.{name}.settings", "datasets", dataset["loader"], dataset.get("settings", {})
    for name, backbone in config["backbones"].items():
        yield f"backbones.{name}.settings", "backbones", backbone["family"], backbone["settings"]
        if pool := backbone["source"].get("pretrain", {}).get("pool"):
            where = f"backbones.{name}.source.pretrain.pool.settings"
            yield where, "corpora", pool["name"], pool.get("settings", {})
    for name, actor in config["actors"].items():
        if "training" in actor:
            yield f"actors.{name}.settings", "training", actor["training"], actor["settings"]
            for other, backbone in config["backbones"].items():
                where = f"backbones.{other}.training over actors.{name}.settings"
                yield where, "training", actor["training"], training_settings(actor, backbone)
    generation = config["generation"]
    yield "generation.settings", "generation", generation["engine"], generation.get("settings", {})
    for name, method in config["methods"].items():
        yield f"methods.{name}.settings", "readers", method["reader"], method.get("settings", {})
