"""`only`: a part of a study (workflow/selections/*.yaml), as a smaller study that all else takes for whole.

What is chosen keeps its place, its settings and its key in the store. What it cannot do without stays too: the base
that actors start from, the parents of a method, the data set that readers are fitted on.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from dualread.errors import did_you_mean


def unknown_seeds(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the seeds of `only` that no backbone of the study has; of names `dualread.study.checks` takes care."""
    of_backbones = [_seeds(config, backbone) for backbone in config["backbones"].values()]
    known = sorted({seed for seeds in of_backbones for seed in seeds})
    if unknown := [seed for seed in config.get("only", {}).get("seeds", []) if seed not in known]:
        meant = "".join(did_you_mean(seed, known) for seed in unknown)
        yield f"only.seeds: {unknown} are no seeds of the study. Known: {', '.join(map(str, known))}.{meant}"


def select(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the checked `config` that its `only` chooses, without `only`; lists keep their order.

    An entry that is left with nothing (a table without rows, a condition without actors) is left out.
    """
    study = {key: value for key, value in config.items() if key != "only"}
    if not (only := config.get("only")):
        return study
    methods = _methods(config, only)
    answering = _chosen(config, only, "actors")
    if "methods" in only:  # then an actor that none of them reads is not needed
        answering = [name for name in answering if name in {method["actor"] for method in methods.values()}]
    seeds = [seed for seed in config["seeds"] if seed in only.get("seeds", config["seeds"])]
    backbones = _backbones(config, only)
    datasets = {
        name: dataset
        for name, dataset in config["datasets"].items()
        if dataset.get("id") or name in only.get("datasets", config["datasets"])
    }
    conditions = _cut(config["conditions"], actors=answering, datasets=datasets)
    kept = {
        "seeds": seeds,
        "backbones": backbones,
        "datasets": datasets,
        "actors": _actors(
            config["actors"],
            answering,
            seeds_of={name: backbone.get("seeds", seeds) for name, backbone in backbones.items()},
        ),
        "conditions": {
            name: entry for name, entry in conditions.items() if entry.get("completions", name) in conditions
        },
        "methods": methods,
        "contrasts": {
            name: contrast
            for name, contrast in _cut(config.get("contrasts", {}), datasets=[*datasets, "ood6", "ood_ccg"]).items()
            if {contrast["method"], contrast["baseline"]} <= set(methods)
        },
        "tables": _tables(
            config["tables"],
            methods=methods,
            datasets=datasets,
            seeds={seed for backbone in backbones.values() for seed in backbone.get("seeds", seeds)},
        ),
        "figures": _cut(config.get("figures", {}), actors=answering, methods=methods, datasets=datasets),
        "tuning": {
            name: entry
            for name, entry in config.get("tuning", {}).items()
            # Without a name it is of the first backbone, whatever is chosen: another one's outcome is not its.
            if name in methods
            and (backbone := backbones.get(entry.get("backbone", next(iter(config["backbones"])))))
            and entry["seed"] in backbone.get("seeds", seeds)
        },
    }
    return {**study, **{section: entries for section, entries in kept.items() if section in config}}


def nothing_left(selected: Mapping[str, Any], only: Mapping[str, Any]) -> Iterator[str]:
    """Yield what `only` leaves empty that no study can do without."""
    chosen = ", ".join(f"{key} {value}" for key, value in only.items())
    for section in ("backbones", "methods"):
        if not selected[section]:
            yield f"only: {chosen}: no {section} are left. Choose names and seeds that belong together."


def _seeds(config: Mapping[str, Any], backbone: Mapping[str, Any]) -> list[int]:
    return backbone.get("seeds", config["seeds"])


def _chosen(config: Mapping[str, Any], only: Mapping[str, Any], section: str) -> list[str]:
    return [name for name in config[section] if name in only.get(section, config[section])]


def _methods(config: Mapping[str, Any], only: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen methods of the chosen actors, with those that they build on."""
    methods, wanted = config["methods"], set(only.get("methods", config["methods"]))
    for name in reversed(list(methods)):  # parents come before their children
        if name in wanted:
            wanted.update(methods[name].get("parents", {}).values())
    actors = _chosen(config, only, "actors")
    return {name: method for name, method in methods.items() if name in wanted and method["actor"] in actors}


def _backbones(config: Mapping[str, Any], only: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for name in _chosen(config, only, "backbones"):
        backbone = config["backbones"][name]
        if seeds := [seed for seed in _seeds(config, backbone) if seed in only.get("seeds", [seed])]:
            kept[name] = {**backbone, "seeds": seeds} if "seeds" in backbone else backbone
    return kept


def _actors(
    actors: Mapping[str, Any], answering: Collection[str], seeds_of: Mapping[str, Collection[int]]
) -> dict[str, Any]:
    """Return the chosen actors and the base; `seeds_of` has the seeds of each chosen backbone."""
    kept = {}
    for name, actor in actors.items():
        if "checkpoints" in actor and name in answering:
            checkpoints = {
                backbone: {seed: source for seed, source in of.items() if int(seed) in seeds_of[backbone]}
                for backbone, of in actor["checkpoints"].items()
                if backbone in seeds_of
            }
            kept[name] = {**actor, "checkpoints": checkpoints}
        elif name in answering or not {"training", "checkpoints"} & set(actor):  # the base
            kept[name] = actor
    return kept


def _tables(
    tables: Mapping[str, Any], *, methods: Collection[str], datasets: Collection[str], seeds: Collection[int]
) -> dict[str, Any]:
    kept = {}
    for name, table in _cut(tables, methods=methods, datasets=datasets, seeds=seeds).items():
        without = [method for method in table.get("without", []) if method in methods]
        compared = [table["method"]] if "method" in table else []
        if len(without) < len(methods) and set(compared) <= set(methods):
            rest = {key: value for key, value in table.items() if key != "without"}
            kept[name] = {**rest, "without": without} if without else rest
    return kept


def _cut(entries: Mapping[str, Any], **chosen: Collection[str] | Collection[int]) -> dict[str, Any]:
    """Return the entries with each list named in `chosen` cut down to it, without those that have an empty list."""
    kept = {}
    for name, entry in entries.items():
        lists = {key: [value for value in entry[key] if value in chosen[key]] for key in chosen if key in entry}
        if all(lists.values()):
            kept[name] = {**entry, **lists}
    return kept
