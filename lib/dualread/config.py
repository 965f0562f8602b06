"""Check a study's configuration: every key known, every name found, and everything that no schema can say.

The caller reads the files of the study. A key whose value is null is as if it were not there, so that a study laid over
another one can leave entries out.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from dualread import plugins
from dualread.errors import ConfigError

_SHOWN = 10  # problems listed at once; a renamed section would otherwise print a page


def resolve(
    config: Mapping[str, Any], schema: Mapping[str, Any], *, source: str = "config", root: Path | None = None
) -> dict[str, Any]:
    """Return `config` without its null entries, after every check of this module.

    Args:
        config: All files of the study, merged.
        schema: The JSON schema of a study.
        source: The files' names, for messages.
        root: Where relative folders start; without it, no folder is looked for.

    Raises:
        ConfigError: Something is unknown, missing or out of range. Each problem has a line: where, what, the value,
            what was expected.
    """
    study: dict[str, Any] = without_nulls(config)
    errors = Draft202012Validator(schema).iter_errors(study)
    _refuse((_describe(error) for error in sorted(errors, key=lambda error: list(map(str, error.path)))), source)
    _refuse(_unknown_plugins(study), source)
    _refuse(_bad_settings(study), source)
    _refuse(_unknown_references(study), source)
    _refuse(_contradictions(study), source)
    if root is not None:
        _refuse(_missing_files(study, root), source)
    return study


def without_nulls(value: Any) -> Any:
    """Return a copy of `value` in which no mapping, at any depth, has a null value."""
    if isinstance(value, Mapping):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value


def _refuse(problems: Iterator[str], source: str) -> None:
    if found := list(problems):
        more = [f"... and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        raise ConfigError("\n".join(f"{source}: {line}" for line in found[:_SHOWN] + more))


def _describe(error: ValidationError, prefix: str = "") -> str:
    """Say what breaks the schema the way every other message does; rare kinds keep jsonschema's own words."""
    where = ".".join(filter(None, (prefix, *map(str, error.absolute_path))))
    inside = f"{where}." if where else ""
    schema: Any = error.schema
    rule: Any = error.validator_value
    match error.validator:
        case "additionalProperties" if isinstance(error.instance, Mapping) and rule is False:
            known = schema.get("properties", {})
            unknown = [str(key) for key in error.instance if key not in known]
            keys = ", ".join(f"{inside}{key}" for key in unknown)
            return f"{keys}: unknown key{'s' * (len(unknown) > 1)}. Known: {', '.join(sorted(known)) or 'none'}."
        case "required":
            missing = next(key for key in rule if error.message.startswith(f"{key!r} "))
            return f"{inside}{missing}: missing. Expected: {', '.join(rule)}."
        case "dependentRequired":
            return f"{where}: {error.message}. Give both or neither."
        case "type":
            kind = {"object": "mapping", "array": "list", "string": "text"}.get(rule, rule)
            return f"{where}: {error.instance!r} is not of type {kind}. Correct the value."
        case "oneOf" if error.context:
            # A complaint about a part of the value comes from the alternative that was meant.
            inside_out = [inner for inner in error.context if inner.instance is not error.instance]
            return _describe((inside_out or error.context)[0], prefix)
        case "enum":
            return f"{where}: {error.instance!r} is not allowed. Known: {', '.join(map(str, rule))}."
        case "pattern":
            return f"{where}: {error.instance!r} is not of the form {rule}. Correct the value."
        case _:
            return f"{where or 'the study'}: {error.message}. Correct the value."


def _unknown_plugins(config: Mapping[str, Any]) -> Iterator[str]:
    for where, family, name in _named_plugins(config):
        if name not in (known := plugins.known(family)):
            yield f"{where}: {name!r}: no such plugin in lib/dualread/{family}. Known: {', '.join(known) or 'none'}."


def _named_plugins(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (where, plugin family, plugin name) of every plugin that the configuration names."""
    for name, dataset in config["datasets"].items():
        yield f"datasets.{name}.loader", "datasets", dataset["loader"]
    for name, backbone in config["backbones"].items():
        yield f"backbones.{name}.family", "backbones", backbone["family"]
        if pretrain := backbone["source"].get("pretrain"):
            yield f"backbones.{name}.source.pretrain.pool.name", "pools", pretrain["pool"]["name"]
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


def _bad_settings(config: Mapping[str, Any]) -> Iterator[str]:
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
            yield _describe(error, where)


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield (where, plugin family, plugin name, settings) of every plugin that can be set."""
    for name, dataset in config["datasets"].items():
        yield f"datasets.{name}.settings", "datasets", dataset["loader"], dataset.get("settings", {})
    for name, backbone in config["backbones"].items():
        yield f"backbones.{name}.settings", "backbones", backbone["family"], backbone["settings"]
        if pool := backbone["source"].get("pretrain", {}).get("pool"):
            where = f"backbones.{name}.source.pretrain.pool.settings"
            yield where, "pools", pool["name"], pool.get("settings", {})
    for name, actor in config["actors"].items():
        if "training" in actor:
            yield f"actors.{name}.settings", "training", actor["training"], actor["settings"]
    generation = config["generation"]
    yield "generation.settings", "generation", generation["engine"], generation.get("settings", {})
    for name, method in config["methods"].items():
        yield f"methods.{name}.settings", "readers", method["reader"], method.get("settings", {})


def _unknown_references(config: Mapping[str, Any]) -> Iterator[str]:
    for where, section, name in _references(config):
        if name not in (known := config.get(section, {})):
            yield f"{where}: {name!r} is not in {section}. Known: {', '.join(known) or 'none'}."


def _references(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (where, section, name) of every name that must be an entry of another section."""
    for name, dataset in config["datasets"].items():
        if phantom := dataset["source"].get("phantom"):
            yield f"datasets.{name}.source.phantom", "phantoms", phantom
    for name, backbone in config["backbones"].items():
        if dataset := backbone["source"].get("pretrain", {}).get("pool", {}).get("dataset"):
            yield f"backbones.{name}.source.pretrain.pool.dataset", "datasets", dataset
    for name, method in config["methods"].items():
        yield f"methods.{name}.actor", "actors", method["actor"]
        for role, parent in method.get("parents", {}).items():
            yield f"methods.{name}.parents.{role}", "methods", parent
        for view in method.get("views", []):
            yield f"methods.{name}.views", "views", view
    for name, condition in config["conditions"].items():
        if "completions" in condition:
            yield f"conditions.{name}.completions", "conditions", condition["completions"]
        for section in ("datasets", "actors"):
            for entry in condition.get(section, []):
                yield f"conditions.{name}.{section}", section, entry
    for name, actor in config["actors"].items():
        for backbone in actor.get("checkpoints", {}):
            yield f"actors.{name}.checkpoints", "backbones", backbone
    for name, table in config["tables"].items():
        for method in table["methods"]:
            yield f"tables.{name}.methods", "methods", method
        for dataset in table.get("datasets", []):
            yield f"tables.{name}.datasets", "datasets", dataset
    for name, figure in config.get("figures", {}).items():
        for actor in figure["actors"]:
            yield f"figures.{name}.actors", "actors", actor


def _contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    in_distribution = [name for name, dataset in config["datasets"].items() if dataset.get("id")]
    if len(in_distribution) != 1:
        yield f"datasets: {len(in_distribution)} have `id: true` ({in_distribution}). Expected exactly one."
    for name, dataset in config["datasets"].items():
        yield from _dataset_contradictions(f"datasets.{name}", dataset)
    for name, backbone in config["backbones"].items():
        if len({"hub", "pretrain"} & set(backbone["source"])) != 1:
            yield f"backbones.{name}.source: {sorted(backbone['source'])}. Expected either `pretrain` or `hub`."
    bases = [name for name, actor in config["actors"].items() if not {"training", "checkpoints"} & set(actor)]
    if len(bases) != 1:
        yield f"actors: {len(bases)} have neither `training` nor `checkpoints` ({bases}). Expected one: the base."
    for name, actor in config["actors"].items():
        yield from _checkpoint_contradictions(f"actors.{name}", actor, config)
    for name, condition in config["conditions"].items():
        if (other := condition.get("completions")) and "completions" in config["conditions"][other]:
            yield f"conditions.{name}.completions: {other!r} has no completions of its own. Name one that has."
    for name, table in config["tables"].items():
        if not set(table.get("datasets", in_distribution)) >= set(in_distribution):
            yield f"tables.{name}.datasets: {table['datasets']}. Add the in-distribution {in_distribution[0]!r}."
    for name, figure in config.get("figures", {}).items():
        if untrained := sorted(actor for actor in figure["actors"] if "training" not in config["actors"][actor]):
            yield f"figures.{name}.actors: {untrained} have no `training`, so no train log of it. Leave them out."
    yield from _method_contradictions(config["methods"])


def _checkpoint_contradictions(where: str, actor: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    if "checkpoints" not in actor:
        return
    if "training" in actor:
        yield f"{where}: has `training` and `checkpoints`. Expected one of them; a study removes a key with null."
    wanted = {(backbone, str(seed)) for backbone in config["backbones"] for seed in config["seeds"]}
    given = {(backbone, str(seed)) for backbone, of in actor["checkpoints"].items() for seed in of}
    if missing := sorted(wanted - given):
        yield f"{where}.checkpoints: none for {missing}. Give one for each backbone and seed, or remove these."


def _dataset_contradictions(where: str, dataset: Mapping[str, Any]) -> Iterator[str]:
    splits = dataset["splits"]
    if dataset.get("id") and set(splits) != {"train", "validation", "test"}:
        yield f"{where}.splits: {splits}. The in-distribution data set needs train, validation and test."
    if set(dataset["roles"]) != set(splits):
        yield f"{where}.roles: has {sorted(dataset['roles'])}. Expected one entry for each of {sorted(splits)}."
    for split, roles in dataset["roles"].items():
        # Rounded, because 0.7 + 0.1 + 0.2 is not 1 in binary.
        if isinstance(roles, Mapping) and round(sum(roles.values()), 9) != 1:
            yield f"{where}.roles.{split}: the fractions add up to {sum(roles.values()):g}, expected 1."
    if absent := sorted(set(dataset.get("pairing", {}).get("splits", [])) - set(splits)):
        yield f"{where}.pairing.splits: {absent} not among the splits {splits}. Add them there or remove them here."
    if "phantom" in dataset["source"] and len(dataset["source"]) > 1:
        others = sorted(set(dataset["source"]) - {"phantom"})
        yield f"{where}.source: a phantom and {others}. Expected one or the other; a study removes a key with null."


def _missing_files(config: Mapping[str, Any], root: Path) -> Iterator[str]:
    """Yield what is not there. Snakemake would take a job that cannot be described for one that need not run."""
    for name, dataset in config["datasets"].items():
        source = dataset["source"]
        if "folder" in source and "hub" not in source and not (root / source["folder"]).is_dir():
            yield (
                f"datasets.{name}.source.folder: {source['folder']!r}: no such folder under {root}."
                " Put the official files there, or add `hub` and `revision`."
            )
    for name, actor in config["actors"].items():
        for backbone, of in actor.get("checkpoints", {}).items():
            for seed, source in of.items():
                if "folder" in source and not (root / source["folder"]).is_dir():
                    where = f"actors.{name}.checkpoints.{backbone}.{seed}.folder"
                    yield f"{where}: {source['folder']!r}: no such folder under {root}. Put the checkpoint there."
    known = sorted(path.stem for path in (root / "lib/dualread/prompts").glob("*.txt"))
    for where, name in _named_prompts(config):
        if name not in known:
            yield f"{where}: {name!r}: no such file in lib/dualread/prompts. Known: {', '.join(known)}."


def _named_prompts(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section in ("datasets", "actors", "conditions", "views"):
        for name, entry in config.get(section, {}).items():
            if "prompt" in entry:
                yield f"{section}.{name}.prompt", entry["prompt"]


def _method_contradictions(methods: Mapping[str, Any]) -> Iterator[str]:
    order = list(methods)
    for name, method in methods.items():
        when, listed = plugins.declared("readers", method["reader"], "VIEWS"), method.get("views", [])
        if (when is None) != (not listed):
            expected = "none" if when is None else "at least one"
            yield f"methods.{name}.views: {listed}; the reader {method['reader']!r} reads {expected}."
        for role, parent in method.get("parents", {}).items():
            if order.index(parent) >= order.index(name):
                yield f"methods.{name}.parents.{role}: {parent!r} comes later. List a parent before its children."
            if methods[parent]["actor"] != method["actor"]:
                actors = f"{methods[parent]['actor']!r}, {name!r} reads {method['actor']!r}"
                yield f"methods.{name}.parents.{role}: {parent!r} reads {actors}. Expected the same actor."
