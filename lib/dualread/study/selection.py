"""A part of a study as a smaller study that is complete in itself: what `only` names (workflow/selections/*.yaml).

A chosen entry keeps its place, its settings and its key in the store. What it depends on stays too: the base that
actors start from, the parents of a method, the data set that readers are fitted on. Methods that cannot judge given
answers, because there are no hidden states, are left out of every study.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar

from dualread.errors import did_you_mean
from dualread.readers.declarations import features
from dualread.schema.answers import Actor
from dualread.schema.backbones import Backbone
from dualread.schema.base import Section
from dualread.schema.readers import Method
from dualread.schema.study import Config, Only
from dualread.study.references import MEANS

Entry = TypeVar("Entry", bound=Section)
T = TypeVar("T")
# The one tensor of a replay that is known of given answers, if the service gives log-probabilities.
_LIKELIHOOD = frozenset({"answer_log_prob"})


def unknown_seeds(config: Config) -> Iterator[str]:
    """Yield a line if `only` names seeds that no backbone has; `dualread.study.references` checks names."""
    known = sorted({seed for backbone in config.backbones for seed in config.seeds_of(backbone)})
    chosen = config.only.seeds if config.only else None
    if unknown := [seed for seed in chosen or [] if seed not in known]:
        meant = "".join(did_you_mean(seed, known) for seed in unknown)
        yield f"only.seeds: {unknown} are no seeds of the study. Known: {', '.join(map(str, known))}.{meant}"


def select(config: Config) -> Config:
    """Return the part of the checked `config` that its `only` chooses, without `only`; lists keep their order.

    An entry that is left with nothing (a table without rows, a condition without actors) is left out.
    """
    only, complete = config.only, config.model_copy(update={"only": None})
    if only is None or not only.model_fields_set:
        return complete
    methods = _methods(config, only)
    answering = _chosen(config.actors, only.actors)
    if only.methods is not None:  # an actor that none of them reads is not needed
        answering = [name for name in answering if name in {method.actor for method in methods.values()}]
    seeds = _chosen(config.seeds, only.seeds)
    backbones = _backbones(config, only)
    seeds_of = {name: backbone.seeds or seeds for name, backbone in backbones.items()}
    datasets = {
        name: dataset
        for name, dataset in config.datasets.items()
        if dataset.id or only.datasets is None or name in only.datasets
    }
    conditions = _cut(config.conditions, actors=answering, datasets=datasets)
    return _part(
        complete,
        seeds=seeds,
        backbones=backbones,
        datasets=datasets,
        actors=_actors(config.actors, answering, seeds_of),
        conditions={
            name: condition
            for name, condition in conditions.items()
            if condition.completions is None or condition.completions in conditions
        },
        methods=methods,
        figures=_cut(config.figures, actors=answering),
    )


def _part(config: Config, **kept: Any) -> Config:
    """Return the study with the sections `kept`, and of what it shows what is left of them."""
    part = config.model_copy(update={section: kept[section] for section in kept.keys() & config.model_fields_set})
    methods, datasets = part.methods, part.datasets
    seeds = {seed for backbone in part.backbones for seed in part.seeds_of(backbone)}
    contrasts = _cut(config.contrasts, datasets=[*datasets, *MEANS])
    tables = {}
    for name, table in _cut(config.tables, methods=methods, datasets=datasets, seeds=seeds).items():
        without = [method for method in table.without or [] if method in methods]
        if len(without) < len(methods) and (table.method is None or table.method in methods):
            tables[name] = table.model_copy(update={"without": without or None})
    shown = {
        "contrasts": {name: it for name, it in contrasts.items() if {it.method, it.baseline} <= methods.keys()},
        "tables": tables,
        "figures": _cut(part.figures, methods=methods, datasets=datasets),
    }
    if part.metrics.changed_from not in {method.actor for method in methods.values()}:
        shown["metrics"] = part.metrics.model_copy(update={"changed_from": None})
    return part.model_copy(update={section: shown[section] for section in shown.keys() & config.model_fields_set})


def given(config: Config) -> list[str]:
    """Return the actors whose answers are given."""
    return [name for name, actor in config.actors.items() if actor.answers is not None]


def left_out(config: Config) -> Mapping[str, str]:
    """Return the reason for each method of a whole study that judges given answers and reads what these lack."""
    reasons: dict[str, str] = {}
    for name, method in config.methods.items():  # parents come before their children
        if method.actor not in given(config):
            continue
        views = [config.views[view] for view in method.views or []]
        needed = [*method.parents.values(), *([method.transfer.method] if method.transfer else [])]
        lacking = [other for other in needed if other in reasons]
        states = set(features(method.reader, method.settings)) - _LIKELIHOOD
        if states or any(view.gives_states for view in views):
            reasons[name] = "it reads hidden states or single tokens, which given answers lack"
        elif any(view.choices is not None and view.choices.words is None for view in views):
            reasons[name] = "it reads the likelihoods of integers or options, which services do not give"
        elif lacking:
            reasons[name] = f"it builds on {lacking[0]}, which is left out"
    return reasons


def without_states(config: Config) -> Config:
    """Return the study without the methods that are `left_out`, and without what shows these alone; it names them."""
    lacking = left_out(config)
    if not lacking:
        return config
    readable = _part(config, methods={name: it for name, it in config.methods.items() if name not in lacking})
    for name, reason in lacking.items():
        readable.left_out.setdefault(config.methods[name].actor, {})[name] = reason
    return readable


def nothing_left(selected: Config, only: Only | None) -> Iterator[str]:
    """Yield a line per section that `only` leaves empty and that no study can do without."""
    chosen = ", ".join(f"{key} {names}" for key, names in only or () if names is not None)
    for section in ("backbones", "methods"):
        if not getattr(selected, section):
            yield f"only: {chosen}: no {section} are left. Choose names and seeds that belong together."


def _chosen(all_of: Collection[T], only: Collection[T] | None) -> list[T]:
    return [value for value in all_of if only is None or value in only]


def _methods(config: Config, only: Only) -> dict[str, Method]:
    """Return the chosen methods of the chosen actors, and the methods that these build on."""
    wanted = set(_chosen(config.methods, only.methods))
    for name in reversed(list(config.methods)):  # parents come before their children
        if name in wanted:
            wanted.update(config.methods[name].parents.values())
    wanted |= {method.transfer.method for name, method in config.methods.items() if name in wanted and method.transfer}
    actors = _chosen(config.actors, only.actors)
    kept = {name: method for name, method in config.methods.items() if name in wanted and method.actor in actors}
    # Among some of the seeds, another one would be the next.
    lost = [n for n, m in kept.items() if (it := m.transfer) and (it.method not in kept or (it.seed and only.seeds))]
    return {name: method for name, method in kept.items() if name not in lost}


def _backbones(config: Config, only: Only) -> dict[str, Backbone]:
    kept = {}
    for name in _chosen(config.backbones, only.backbones):
        backbone = config.backbones[name]
        if seeds := _chosen(config.seeds_of(name), only.seeds):
            kept[name] = backbone if backbone.seeds is None else backbone.model_copy(update={"seeds": seeds})
    return kept


def _actors(
    actors: Mapping[str, Actor], answering: Collection[str], seeds_of: Mapping[str, Collection[int]]
) -> dict[str, Actor]:
    """Return the chosen actors and the base; `seeds_of` has the seeds of each chosen backbone."""
    kept = {}
    with_checkpoints = {*answering, *(actors[name].same_as for name in answering)}
    for name, actor in actors.items():
        if actor.is_base:
            kept[name] = actor
        elif name in with_checkpoints:
            checkpoints = actor.checkpoints and {
                backbone: {seed: place for seed, place in of_seeds.items() if seed in seeds_of[backbone]}
                for backbone, of_seeds in actor.checkpoints.items()
                if backbone in seeds_of
            }
            kept[name] = actor.model_copy(update={"checkpoints": checkpoints})
    return kept


def _cut(entries: Mapping[str, Entry], **chosen: Collection[str] | Collection[int]) -> dict[str, Entry]:
    """Return the entries with each list named in `chosen` cut down to it, without those that have an empty list."""
    kept = {}
    for name, entry in entries.items():
        named = {key: values for key in chosen if (values := getattr(entry, key)) is not None}
        lists = {key: [value for value in values if value in chosen[key]] for key, values in named.items()}
        if all(lists.values()):
            kept[name] = entry.model_copy(update=lists)
    return kept
