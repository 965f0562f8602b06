"""Check a study's configuration, and return it as a typed `Config`.

The caller reads the files of the study. A key whose value is null counts as absent, so that a study can leave out
entries of the study that it is laid over.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pydantic

from dualread import limits, plugins
from dualread.errors import ConfigError, did_you_mean
from dualread.models import prompts
from dualread.schema.answers import name_and_settings
from dualread.schema.base import settings_class
from dualread.schema.data import plugin_and_settings
from dualread.schema.study import Config
from dualread.study import messages
from dualread.study.checks import claim_contradictions, contradictions, missing_checkpoints, missing_files
from dualread.study.references import unknown_references, value_at
from dualread.study.selection import nothing_left, select, unknown_seeds, without_states
from dualread.training.settings import training_settings

_SHOWN = 10  # problems listed at once; a renamed section would otherwise print a page
# By section: where its entries name a plugin, of which family, and where its settings are.
_PLUGINS = {
    "phantoms": {"format": ("writers", None)},
    "datasets": {"loader": ("datasets", "settings")},
    "backbones": {
        "source.pretrain.architecture.name": ("architectures", None),
        "source.pretrain.pool.name": ("corpora", "source.pretrain.pool.settings"),
    },
    "actors": {"training": ("training", "settings"), "reward": ("rewards", None), "contract": ("contracts", None)},
    "conditions": {"contract": ("contracts", None)},
    "views": {"measure.name": ("measures", "measure.settings"), "groups.grader": ("graders", None)},
    "methods": {"reader": ("readers", "settings")},
}


def resolve(
    config: Mapping[str, Any],
    *,
    source: str = "config",
    root: Path | None = None,
    given: Mapping[str, Any] | None = None,
    with_plugins: bool = True,
) -> Config:
    """Return the study that `config`, all files merged, describes, without what its `only` leaves out, after every
    check.

    Messages name the files as `source`, and --config for what is `given`. Without the folder that relative ones start
    from, `root`, folders of checkpoints are not looked for. `with_plugins` runs the classes `Settings` of plugins, also
    of other packages, to check their settings: not for a study that a file of somebody else names.
    """
    try:
        return _resolved(config, source, root, with_plugins)
    except ConfigError as error:
        if not given:
            raise
        raise ConfigError(_blaming_the_command_line(str(error), source, given)) from error


def _blaming_the_command_line(problems: str, source: str, overrides: Mapping[str, Any]) -> str:
    """Return the lines of a refusal, where those about entries that follow --config name it and not the files."""
    lines, blamed = [], False
    for line in problems.splitlines():
        problem = line.removeprefix(f"{source}: ")
        where = problem.rpartition(" over ")[2]  # a backbone's training over an actor's settings
        if is_given := problem != line and where.startswith(tuple(f"{key}{end}" for key in overrides for end in ".:")):
            blamed = True
        lines.append(f"--config: {problem}" if is_given else line)
    advice = "--config turns values inside of others into text. Write them into a file, and give it with --configfile."
    return "\n".join([*lines, *([advice] if blamed else [])])


def _resolved(config: Mapping[str, Any], source: str, root: Path | None, with_plugins: bool) -> Config:
    try:
        if (n := entries(config, {})) > limits.YAML_ENTRIES:
            raise ConfigError(
                f"{source}: aliases (`*name`) stand for {n:.0e} entries, expected {limits.YAML_ENTRIES:.0e}."
            )
        entered = without_nulls(config)
    except RecursionError as error:
        raise ConfigError(f"{source}: an entry holds itself (an alias, `*name`). Write it out.") from error
    nulls = frozenset(_nulls(config))
    try:
        study = Config.model_validate(entered)
    except pydantic.ValidationError as error:
        raise _refusal(messages.problems_of(error, entered, nulls, Config), source) from error
    _refuse(_unknown_plugins(study), source)
    if with_plugins:
        _refuse(_bad_settings(study, nulls), source)
    _refuse(unknown_references(study), source)
    _refuse(_unknown_prompts(study), source)
    _refuse(contradictions(study, with_plugins=with_plugins), source)
    _refuse(unknown_seeds(study), source)
    selected = without_states(select(study))
    _refuse(nothing_left(selected, study.only), source)
    _refuse(unknown_references(selected), source)  # an entry that stays may name one that was left out
    _refuse(claim_contradictions(selected), source)
    _refuse(missing_checkpoints(selected), source)
    if root is not None:
        _refuse(missing_files(selected, root), source)
    return selected


def entries(value: Any, known: dict[int, int]) -> int:
    """Return how many values a value stands for, each alias written out; `known` are those counted before, by id."""
    if (count := known.get(id(value))) is None:
        known[id(value)] = 0  # one inside itself is another error
        inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        count = known[id(value)] = 1 + sum(entries(part, known) for part in inside)
    return count


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


def _refuse(problems: Iterable[str], source: str) -> None:
    if lines := list(problems):
        raise _refusal(lines, source)


def _refusal(problems: Iterable[str], source: str) -> ConfigError:
    lines = list(problems)
    more = [f"... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return ConfigError("\n".join(f"{source}: {line}" for line in lines[:_SHOWN] + more))


def _unknown_plugins(config: Config) -> Iterator[str]:
    for where, family, name in dict.fromkeys(named[:3] for named in _plugins(config)):
        if plugins.is_foreign(name):
            try:
                plugins.file_of(family, name)
            except ConfigError as error:
                yield f"{where}: {error}"
        elif name not in plugins.known(family):
            folder = f"lib/dualread/{plugins.package_of(family).replace('.', '/')}"
            yield f"{where}: {name!r}: no such plugin in {folder}. {plugins.alternatives(family, name)}"


def _plugins(config: Config) -> Iterator[tuple[str, str, str, str, Mapping[str, Any] | None]]:
    """Yield (where, family, plugin, where its settings are, its settings) of every plugin that the study names."""
    for section, plugins_of in _PLUGINS.items():
        for name, entry in getattr(config, section).items():
            for path, (family, place) in plugins_of.items():
                if (plugin := value_at(entry, path)) is not None:
                    settings = value_at(entry, place) if place else None
                    yield f"{section}.{name}.{path}", family, plugin, f"{section}.{name}.{place}", settings
    for name, dataset in config.datasets.items():
        for key, family in (("spans", "spans"), ("labels", "claim_labels")) if dataset.claims else ():
            where, claims = f"datasets.{name}.claims.{key}", getattr(dataset.claims, key)
            plugin, settings = plugin_and_settings(claims)
            yield where, family, plugin, f"{where}.{plugin}", settings
    for name, backbone in config.backbones.items():
        where = f"backbones.{name}.training"
        if isinstance(rollouts := backbone.training.get("rollouts"), str):
            settings = backbone.training.get("rollout_settings", {})
            yield f"{where}.rollouts", "rollouts", rollouts, f"{where}.rollout_settings", settings
        for other, actor in config.actors.items():
            if actor.training is not None and actor.settings is not None:
                both = training_settings(actor.settings, backbone.training)
                over = f"{where} over actors.{other}.settings"
                yield f"actors.{other}.training", "training", actor.training, over, both
    engine = config.generation.engine
    yield "generation.engine", "generation", engine, "generation.settings", config.generation.settings
    for section in ("conditions", "views"):
        for name, entry in getattr(config, section).items():
            if entry.image is not None:
                where, (image, settings) = f"{section}.{name}.image", name_and_settings(entry.image)
                yield where, "images", image, f"{where}.settings", settings
    for section in ("tables", "figures"):
        for name in getattr(config, section):
            yield f"{section}.{name}", section, name, "", None


def _unknown_prompts(config: Config) -> Iterator[str]:
    """Yield every named prompt that is no file, or whose parts are no conversation."""
    known, folder = prompts.names(), "lib/dualread/models/prompts"
    for where, name in _named_prompts(config):
        if name not in known and not plugins.is_foreign(name):
            yield f"{where}: {name!r}: no such file in {folder}. Known: {', '.join(known)}.{did_you_mean(name, known)}"
            continue
        try:
            prompts.turns(name)
        except ConfigError as error:
            yield f"{where}: {error}"


def _named_prompts(config: Config) -> Iterator[tuple[str, str]]:
    """Yield (where, prompt) of every prompt that the configuration names."""
    for section in ("datasets", "actors", "conditions", "views"):
        for name, entry in getattr(config, section).items():
            if entry.prompt is not None:
                yield f"{section}.{name}.prompt", entry.prompt
    for name, backbone in config.backbones.items():
        for prompt in backbone.source.pretrain.training.mixture if backbone.source.pretrain else ():
            yield f"backbones.{name}.source.pretrain.training.mixture", prompt


def _bad_settings(config: Config, nulls: Collection[str]) -> Iterator[str]:
    """Check the settings of every plugin against what it declares."""
    for _, family, name, where, settings in _plugins(config):
        if settings is not None:
            declared = settings_class(family, name)
            try:
                declared.model_validate(settings)
            except pydantic.ValidationError as error:
                yield from messages.problems_of(error, settings, nulls, declared, where)
