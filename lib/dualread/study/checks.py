"""What no schema can say about a study: names that must exist, entries that must agree, files that must be there.

Each check yields one line a problem: where, what, the value, what was expected.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.errors import did_you_mean
from dualread.readers.declarations import problems

# The means over OOD data sets, which stand beside the data sets: of answers, and of donor pairs.
_MEANS = ("ood6", "ood_ccg")

# What the entry of a figure says and may say, by what the figure READS.
_OF_FIGURES = {
    "train_log": (["actors"], []),
    **dict.fromkeys(("answers", "pairs"), (["methods"], ["datasets"])),
}


def unknown_references(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield every name that is no entry of the section that it must be an entry of."""
    for where, section, name in _references(config):
        if name not in (known := config.get(section, {})):
            listed = ", ".join(known) or "none"
            yield f"{where}: {name!r} is not in {section}. Known: {listed}.{did_you_mean(name, known)}"


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
        for key in ("methods", "without"):
            for method in table.get(key, []):
                yield f"tables.{name}.{key}", "methods", method
        for dataset in table.get("datasets", []):
            yield f"tables.{name}.datasets", "datasets", dataset
        if "method" in table:
            yield f"tables.{name}.method", "methods", table["method"]
    for name, contrast in config.get("contrasts", {}).items():
        for key in ("method", "baseline"):
            yield f"contrasts.{name}.{key}", "methods", contrast[key]
        for dataset in contrast.get("datasets", []):
            if dataset not in _MEANS:
                yield f"contrasts.{name}.datasets", "datasets", dataset
    for name, study in config.get("tuning", {}).items():
        yield f"tuning.{name}", "methods", name
        if "backbone" in study:
            yield f"tuning.{name}.backbone", "backbones", study["backbone"]
    for name, figure in config.get("figures", {}).items():
        for section in ("actors", "methods", "datasets"):
            for entry in figure.get(section, []):
                yield f"figures.{name}.{section}", section, entry
    for section, names in config.get("only", {}).items():
        if section != "seeds":
            yield from ((f"only.{section}", section, name) for name in names)


def contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what each entry may say but not both or not together."""
    yield from _place_contradictions(config["study"], config["store"])
    in_distribution = [name for name, dataset in config["datasets"].items() if dataset.get("id")]
    if len(in_distribution) != 1:
        yield f"datasets: {len(in_distribution)} have `id: true` ({in_distribution}). Expected exactly one."
    for name, dataset in config["datasets"].items():
        yield from _dataset_contradictions(f"datasets.{name}", dataset)
        yield from _phantom_contradictions(f"datasets.{name}", dataset, config)
    for name, backbone in config["backbones"].items():
        if len({"hub", "pretrain"} & set(backbone["source"])) != 1:
            yield f"backbones.{name}.source: {sorted(backbone['source'])}. Expected either `pretrain` or `hub`."
    bases = [name for name, actor in config["actors"].items() if not {"training", "checkpoints"} & set(actor)]
    if len(bases) != 1:
        yield f"actors: {len(bases)} have neither `training` nor `checkpoints` ({bases}). Expected one: the base."
    for name, actor in config["actors"].items():
        if {"training", "checkpoints"} <= set(actor):
            yield f"actors.{name}: has `training` and `checkpoints`. Expected one; a study removes a key with null."
    for name, condition in config["conditions"].items():
        if (other := condition.get("completions")) and "completions" in config["conditions"][other]:
            yield f"conditions.{name}.completions: {other!r} has no completions of its own. Name one that has."
    for name, table in config["tables"].items():
        if {"methods", "without"} <= set(table):
            yield f"tables.{name}: has `methods` and `without`. Expected one of them; a study removes a key with null."
        if not set(table.get("datasets", in_distribution)) >= set(in_distribution):
            yield f"tables.{name}.datasets: {table['datasets']}. Add the in-distribution {in_distribution[0]!r}."
        yield from _comparison_contradictions(name, table)
    for name, contrast in config.get("contrasts", {}).items():
        yield from _contrast_contradictions(name, contrast, config)
    for name in config.get("tuning", {}):
        method = config["methods"][name]
        if not plugins.declared("readers", method["reader"], "SPACE"):
            yield f"tuning.{name}: the reader {method['reader']!r} has no SPACE to search. Tune another method."
    for name, figure in config.get("figures", {}).items():
        yield from _figure_contradictions(f"figures.{name}", name, figure, config)
    yield from _method_contradictions(config["methods"])


def _comparison_contradictions(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    where, method = f"tables.{name}.method", table.get("method")
    compares = plugins.declared("tables", name, "COMPARES_ONE")
    if compares and method is None:
        yield f"{where}: missing. Name the method that is compared with all others."
    if method and not compares:
        yield f"{where}: {method!r}; this table compares no method with all others. Remove it."
    if method and (method in table.get("without", []) or method not in table.get("methods", [method])):
        yield f"{where}: {method!r} is not a row of the table. Make it one."


def _contrast_contradictions(name: str, contrast: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    where, split = f"contrasts.{name}", contrast.get("split", "test")
    if name in config["tables"]:
        yield f"{where}: a table has this name, and may compare methods under it. Choose another name."
    if contrast["method"] == contrast["baseline"]:
        yield f"{where}: {contrast['method']!r} is compared with itself. Name another baseline."
    for dataset in contrast.get("datasets", []):
        if split not in config["datasets"].get(dataset, {"splits": ["test"]})["splits"]:
            yield f"{where}.split: {split!r}; {dataset} has none, or is a mean of test sets. Leave {dataset} out."


def _figure_contradictions(
    where: str, name: str, figure: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[str]:
    required, optional = _OF_FIGURES[plugins.declared("figures", name, "READS")]
    if missing := [key for key in required if key not in figure]:
        yield f"{where}: has no {', '.join(missing)}. Expected: {', '.join((*required, *optional))}."
    if unused := [key for key in figure if key not in (*required, *optional)]:
        yield f"{where}.{unused[0]}: this figure does not read it. Expected: {', '.join((*required, *optional))}."
    if plugins.declared("figures", name, "READS") == "pairs":
        if len(actors := {config["methods"][method]["actor"] for method in figure.get("methods", [])}) > 1:
            yield f"{where}.methods: they read {', '.join(sorted(actors))}; a pair shows the answers of one. Choose it."
        datasets = figure.get("datasets", [key for key, dataset in config["datasets"].items() if dataset.get("id")])
        for dataset in datasets:
            if "test" not in config["datasets"][dataset].get("pairing", {}).get("splits", []):
                yield f"{where}.datasets: the test questions of {dataset} have no donors. Leave it, or the figure, out."
    if untrained := sorted(actor for actor in figure.get("actors", []) if "training" not in config["actors"][actor]):
        yield f"{where}.actors: {untrained} have no `training`, so no train log of it. Leave them out."


def missing_checkpoints(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield each backbone of the selected study for which an actor that comes as checkpoints lacks seeds."""
    for name, actor in config["actors"].items():
        for backbone, entry in config["backbones"].items() if "checkpoints" in actor else ():
            given = set(map(str, actor["checkpoints"].get(backbone, {})))
            if missing := [seed for seed in map(str, entry.get("seeds", config["seeds"])) if seed not in given]:
                where = f"actors.{name}.checkpoints.{backbone}"
                yield f"{where}: none for seed {', '.join(missing)}. Give one for each seed, or leave the seeds out."


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
    for key, named in (
        ("pairing.splits", dataset.get("pairing", {}).get("splits", [])),
        ("expect_sha256", dataset.get("expect_sha256", [])),
    ):
        if absent := sorted(set(named) - set(splits)):
            yield f"{where}.{key}: {absent} not among the splits {splits}. Add them there or remove them here."
    drawn = dataset.get("select", {}).get("questions")
    types = dataset.get("select", {}).get("answer_types", ["open", "closed"])
    if isinstance(drawn, Mapping) and (absent := sorted(set(drawn) - set(types))):
        yield f"{where}.select.questions: {absent} not among the answer_types {types}. Name a type in both or neither."
    known = plugins.declared("datasets", dataset["loader"], "HUB_FILES") or {}
    if "hub" in dataset["source"] and (absent := sorted(set(splits) - set(known))):
        has = f"has {', '.join(known) or 'none'} on the hub"
        yield f"{where}.splits: {absent}; the loader {dataset['loader']!r} {has}. Remove them, or `hub` and `revision`."
    if "phantom" in dataset["source"] and len(dataset["source"]) > 1:
        others = sorted(set(dataset["source"]) - {"phantom"})
        yield f"{where}.source: a phantom and {others}. Expected one or the other; a study removes a key with null."


def _phantom_contradictions(where: str, dataset: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    if name := dataset["source"].get("phantom"):
        images = config["phantoms"][name]["images"]
        if undrawn := sorted(set(dataset["splits"]) - set(images)):
            yield f"{where}.splits: phantoms.{name}.images has no {undrawn}, only {sorted(images)}. Add or remove them."


def _place_contradictions(study: str, store: str) -> Iterator[str]:
    if study in ("store", "environments"):
        yield f"study: {study!r}: results/{study} holds something else. Choose another name."
    if store.startswith("~"):
        yield f"store: {store!r}: nothing puts a home folder in place of ~ here. Write the path in full."
    if Path(store).is_relative_to(f"results/{study}"):
        yield f"store: {store!r} lies among the study's own results. Choose another folder, such as results/store."


def missing_files(config: Mapping[str, Any], root: Path) -> Iterator[str]:
    """Yield what is not there. Snakemake would take a job that cannot be described for one that need not run.

    The official files of a data set need not be there yet: the job that needs them says how to get them.
    """
    for name, actor in config["actors"].items():
        for backbone, of in actor.get("checkpoints", {}).items():
            for seed, source in of.items():
                if "folder" in source and not (root / source["folder"]).is_dir():
                    where = f"actors.{name}.checkpoints.{backbone}.{seed}.folder"
                    yield f"{where}: {source['folder']!r}: no such folder under {root}. Put the checkpoint there."


def _method_contradictions(methods: Mapping[str, Any]) -> Iterator[str]:
    order = list(methods)
    for name, method in methods.items():
        yield from (f"methods.{name}.{problem}" for problem in problems(method))
        for role, parent in method.get("parents", {}).items():
            if order.index(parent) >= order.index(name):
                yield f"methods.{name}.parents.{role}: {parent!r} comes later. List a parent before its children."
            if methods[parent]["actor"] != method["actor"]:
                actors = f"{methods[parent]['actor']!r}, {name!r} reads {method['actor']!r}"
                yield f"methods.{name}.parents.{role}: {parent!r} reads {actors}. Expected the same actor."
