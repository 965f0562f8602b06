"""What the sections of a config cannot check alone: entries that must agree, and files that must be there.

Each check yields a line per problem: where, what, the value, what was expected.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import get_args

from dualread import plugins
from dualread.errors import did_you_mean
from dualread.evaluation.side_by_side import conditions_of
from dualread.models import prompts
from dualread.readers.declarations import features, problems
from dualread.schema.answers import name_and_settings
from dualread.schema.base import settings_class
from dualread.schema.data import Column, Dataset
from dualread.schema.metrics import Contrast, FurtherCompared
from dualread.schema.readers import Method
from dualread.schema.study import Config
from dualread.schema.tables import Figure, Table
from dualread.study.asked import contract_of, thinking_ends_of
from dualread.study.references import MEANS
from dualread.study.selection import given
from dualread.study.shards import StudyShards
from dualread.training.settings import TrainingSettings, training_settings

# By what a figure READS: the keys that its entry must have, and those that it may have.
_OF_FIGURES = {
    "train_log": (["actors"], []),
    **dict.fromkeys(("answers", "pairs", "metrics"), (["methods"], ["datasets"])),
    **dict.fromkeys(("contrasts", "subgroups"), (["methods"], [])),
}
# Why such a figure shows the methods of one actor alone.
_OF_ONE_ACTOR = {"pairs": "a pair shows the answers of one", "contrasts": "nulls judge the answers of one"}


def contradictions(config: Config, *, with_plugins: bool = True) -> Iterator[str]:
    """Yield a line per pair of values that do not go together; `with_plugins` as in `dualread.study.config.resolve`."""
    study, store = config.study, config.store
    if study in ("store", "environments"):
        yield f"study: {study!r}: results/{study} holds something else. Choose another name."
    if store.startswith("~"):
        yield f"store: {store!r}: nothing puts a home folder in place of ~ here. Write the path in full."
    if Path(store).is_relative_to(f"results/{study}"):
        yield f"store: {store!r} lies among the study's own results. Choose another folder, such as results/store."
    in_distribution = [name for name, dataset in config.datasets.items() if dataset.id]
    if len(in_distribution) != 1:
        yield f"datasets: {len(in_distribution)} have `id: true` ({in_distribution}). Expected exactly one."
    for name, dataset in config.datasets.items():
        yield from _dataset_contradictions(f"datasets.{name}", dataset, config)
    yield from _subgroup_contradictions(config)
    yield from _actor_contradictions(config)
    yield from _states_contradictions(config)
    if with_plugins:
        yield from _training_contradictions(config)
    for name, condition in config.conditions.items():
        if (other := condition.completions) and config.conditions[other].completions:
            yield f"conditions.{name}.completions: {other!r} has no completions of its own. Name one that has."
    yield from _view_contradictions(config)
    yield from _hint_contradictions(config)
    for name, table in config.tables.items():
        if table.methods is not None and table.without is not None:
            yield f"tables.{name}: has `methods` and `without`. Expected one of them; a study removes a key with null."
        if table.datasets is not None and not set(table.datasets) >= set(in_distribution):
            yield f"tables.{name}.datasets: {table.datasets}. Add the in-distribution {in_distribution[0]!r}."
        yield from _comparison_contradictions(name, table)
    for name, contrast in config.contrasts.items():
        yield from _contrast_contradictions(name, contrast, config)
    for name, figure in config.figures.items():
        yield from _figure_contradictions(f"figures.{name}", name, figure, config)
    yield from _method_contradictions(config.methods)
    yield from _transfer_contradictions(config)
    yield from _uncalibrated_contradictions(config)
    yield from _group_contradictions(config)
    if with_plugins:
        yield from _thinking_contradictions(config)


def _thinking_contradictions(config: Config) -> Iterator[str]:
    """The state at the end of thinking is read of completions that say what ends it."""
    for name, method in config.methods.items():
        if "h_think" in features(method.reader, method.settings):
            conditions = [
                key for key, entry in config.conditions.items() if not entry.actors or method.actor in entry.actors
            ]
            asked = product(config.datasets, conditions)
            contracts = sorted({contract_of(config, method.actor, *shard) for shard in asked})
            if without := [contract for contract in contracts if thinking_ends_of(contract) is None]:
                yield (
                    f"methods.{name}.reader: {method.reader!r} reads the end of thinking, but {method.actor} answers in"
                    f" a format without one ({', '.join(without)}). Name a `contract` that has THINKING_ENDS."
                )


def _view_contradictions(config: Config) -> Iterator[str]:
    for name, view in config.views.items():
        if view.image is None:
            continue
        where, (image, _) = f"views.{name}.image", name_and_settings(view.image)
        if plugins.declared("images", image, "NEEDS_PAIRS"):
            yield f"{where}: {image!r}: only some questions have a donor, and a view is of all. Make it a condition."
        if view.gives_states and plugins.declared("images", image, "NO_IMAGE"):
            yield f"{where}: {image!r}: there are no states of an image then. Give the view `decoding` or `choices`."


def _group_contradictions(config: Config) -> Iterator[str]:
    """Groups are of completions, and of all completions that a method reads."""
    groups = {name: view.groups for name, view in config.views.items() if view.groups is not None}
    for name, grouping in groups.items():
        if others := [view for view in grouping.of if config.views[view].decoding is None]:
            yield f"views.{name}.groups.of: {others} have no completions. Name views with `decoding`."
    for name, method in config.methods.items():
        for view in (view for view in method.views or [] if view in groups):
            where, others = f"methods.{name}.views: {view!r}", [other for other in method.views or [] if other != view]
            if not plugins.declared("readers", method.reader, "GROUPS"):
                yield f"{where} groups answers by meaning; the reader {method.reader!r} does not. Leave it out."
            elif lacking := [other for other in others if other not in groups[view].of]:
                yield f"{where} groups the answers of {groups[view].of}, not of {lacking}. Name these in its `of`."


def _hint_contradictions(config: Config) -> Iterator[str]:
    """A misleading hint belongs to a condition: its answers are those that were misled."""
    sections = ("datasets", "actors", "views", "conditions")
    for section, name, entry in ((kind, *item) for kind in sections for item in getattr(config, kind).items()):
        if entry.prompt is None or "{HINT}" not in prompts.template(entry.prompt):
            continue
        where = f"{section}.{name}.prompt: {entry.prompt!r}"
        if section != "conditions":
            yield f"{where}: has a misleading hint. Name it in a condition, and another prompt here."
            continue
        answering = entry.actors or list(config.actors)
        if prompted := ", ".join(actor for actor in answering if config.actors[actor].prompt):
            yield f"{where}: {prompted} has a prompt of its own, which is put in its place. Name other `actors`."


def _actor_contradictions(config: Config) -> Iterator[str]:
    bases = [name for name, actor in config.actors.items() if actor.is_base]
    is_needed = any(actor.training for actor in config.actors.values()) or not given(config)
    if len(bases) > 1 or (is_needed and not bases):
        yield f"actors: {len(bases)} have neither `training` nor `checkpoints` ({bases}). Expected one: the base."
    yield from _service_contradictions(config)
    for name, actor in config.actors.items():
        keys = [key for key in ("training", "checkpoints", "answers", "same_as") if getattr(actor, key)]
        if len(keys) > 1:
            listed = " and ".join(f"`{key}`" for key in keys)
            yield f"actors.{name}: has {listed}. Expected one; a study removes a key with null."
        if actor.same_as and ((other := config.actors[actor.same_as]).same_as or other.answers):
            yield f"actors.{name}.same_as: {actor.same_as!r} has no checkpoint of its own. Name an actor that has one."


def _subgroup_contradictions(config: Config) -> Iterator[str]:
    further = {name for dataset in config.datasets.values() for name in dataset.settings.get("subgroups") or ()}
    known = [*get_args(Column), *sorted(further)]
    for name in config.subgroups or ():
        if name not in known:
            yield (
                f"subgroups: {name!r}: no such column. Known: {', '.join(known)}.{did_you_mean(name, known)} A data set"
                " of your own has those that its settings.subgroups name."
            )
    for section, name in (*product(["tables"], config.tables), *product(["figures"], config.figures)):
        if plugins.declared(section, name, "READS") == "subgroups" and not config.subgroups:
            yield f"{section}.{name}: the study has no `subgroups`. Name columns there, or leave the entry out."
        if plugins.declared(section, name, "OF_CHOICES") and not config.metrics.miss_percent:
            yield f"{section}.{name}: `metrics` has no `miss_percent`. Say there how often answer sets may miss."


def _states_contradictions(config: Config) -> Iterator[str]:
    engine = config.generation.engine
    if config.replay.from_ and not plugins.declared("generation", engine, "COLLECTS"):
        able = [name for name in plugins.known("generation") if plugins.declared("generation", name, "COLLECTS")]
        yield (
            f"replay.from: {config.replay.from_!r}: {engine} does not keep states while it answers. Expected an engine"
            f" that does ({', '.join(able)}). Name one, or leave this key out."
        )


def _training_contradictions(config: Config) -> Iterator[str]:
    """What a backbone's and an actor's settings of a training say together."""
    # An engine of another environment samples for all actors of a backbone, or for none.
    for name, actor in config.actors.items():
        misplaced = {"nodes", "rollouts", "rollout_settings", "rollout_gpus"} & set(actor.settings or {})
        for key in sorted(misplaced):
            yield f"actors.{name}.settings.{key}: only a backbone's `training` may set it. Move it there."
        if actor.training is None or actor.settings is None or misplaced:
            continue
        declared = settings_class("training", actor.training)
        for other, backbone in config.backbones.items():
            both = declared.from_spec(training_settings(actor.settings, backbone.training), "settings")
            assert isinstance(both, TrainingSettings), declared
            where = f"backbones.{other}.training over actors.{name}.settings"
            if problem := both.unfit_together:
                yield f"{where}.{problem}."
            if both.rollouts is not None:
                if problem := both.unfit_for_an_engine:
                    yield f"{where}.{problem}. Change it, or leave out `rollouts`."
                continue
            for key in ("rollout_settings", "rollout_gpus", "importance_sampling"):
                if getattr(both, key) is not None:
                    yield f"{where}.{key}: nothing but the model samples. Add `rollouts`."


def _service_contradictions(config: Config) -> Iterator[str]:
    """A backbone that a service runs has no checkpoint that an actor could start from."""
    needed = ", ".join(sorted({method.actor for method in config.methods.values()} - set(given(config))))
    for name, backbone in config.backbones.items():
        if backbone.source.service is not None and needed:
            yield (
                f"backbones.{name}.source.service: a service runs it, but the answers of {needed} are"
                " not given. Give these actors `answers`, or leave them and their methods out with null."
            )


def _comparison_contradictions(name: str, table: Table) -> Iterator[str]:
    where, method = f"tables.{name}.method", table.method
    compares = plugins.declared("tables", name, "COMPARES_ONE")
    if compares and method is None:
        yield f"{where}: missing. Name the method that is compared with all others."
    if method and not compares:
        yield f"{where}: {method!r}; this table compares no method with all others. Remove it."
    if method and (method in (table.without or []) or method not in (table.methods or [method])):
        yield f"{where}: {method!r} is not a row of the table. Make it one."


def _contrast_contradictions(name: str, contrast: Contrast, config: Config) -> Iterator[str]:
    where, split = f"contrasts.{name}", contrast.split or "test"
    if name in config.tables:
        yield f"{where}: a table has this name, and may compare methods under it. Choose another name."
    for metric in contrast.metrics or []:
        if metric in get_args(FurtherCompared) and metric not in (config.metrics.further or []):
            yield f"{where}.metrics: {metric!r} is not computed. Add it to metrics.further."
    if contrast.method == contrast.baseline:
        yield f"{where}: {contrast.method!r} is compared with itself. Name another baseline."
    for dataset in contrast.datasets or []:
        if split not in (["test"] if dataset in MEANS else config.datasets[dataset].splits):
            yield f"{where}.split: {split!r}; {dataset} has none, or is a mean of test sets. Leave {dataset} out."


def _figure_contradictions(where: str, name: str, figure: Figure, config: Config) -> Iterator[str]:
    reads = plugins.declared("figures", name, "READS")
    required, optional = _OF_FIGURES[reads]
    expected = ", ".join((*required, *optional))
    if missing := [key for key in required if getattr(figure, key) is None]:
        yield f"{where}: has no {', '.join(missing)}. Expected: {expected}."
    if unused := [key for key, value in figure if value is not None and key not in (*required, *optional)]:
        yield f"{where}.{unused[0]}: this figure does not read it. Expected: {expected}."
    if plugins.declared("figures", name, "OF_CONDITIONS") and not conditions_of(config.conditions):
        yield f"{where}: the study has no conditions but the paper's. Add some, or leave the figure out."
    actors = {config.methods[method].actor for method in figure.methods or []}
    if reads in _OF_ONE_ACTOR and len(actors) > 1:
        yield f"{where}.methods: they read {', '.join(sorted(actors))}; {_OF_ONE_ACTOR[reads]}. Choose it."
    if reads == "pairs":
        for dataset in figure.datasets or [key for key, dataset in config.datasets.items() if dataset.id]:
            pairing = config.datasets[dataset].pairing
            if pairing is None or "test" not in pairing.splits:
                yield f"{where}.datasets: the test questions of {dataset} have no donors. Leave it, or the figure, out."
    scores = [method for method in figure.methods or [] if config.methods[method].uncalibrated]
    if scores and plugins.declared("figures", name, "OF_PROBABILITIES"):
        yield f"{where}.methods: {scores} are not calibrated, and it shows probabilities. Leave them out."
    if untrained := sorted(actor for actor in figure.actors or [] if not config.actors[actor].training):
        yield f"{where}.actors: {untrained} have no `training`, so no train log of it. Leave them out."


def claim_contradictions(config: Config) -> Iterator[str]:
    """Yield a line per part of the selected study that cannot be of claims, if answers to its data sets are reports."""
    reports = [name for name, dataset in config.datasets.items() if dataset.claims is not None]
    if not reports:
        return
    where, shards = f"datasets.{reports[0]}.claims", StudyShards(config)
    if others := [name for name in config.datasets if name not in reports]:
        yield (
            f"datasets: {', '.join(reports)} have `claims`, {', '.join(others)} have none, and a reader reads states of"
            " claims or of whole answers. Give them all `claims`, or leave some out."
        )
    asking = {name for name, view in config.views.items() if not view.gives_states or view.measure is not None}
    read = {name: {*shards.scoring_views(name), *shards.fitting_views(name)} for name in config.methods}
    if methods := [name for name, views in read.items() if views & asking]:
        yield (
            f"{where}: {', '.join(methods)} read views that ask about a whole answer, sample others, or measure it"
            f" ({', '.join(sorted(asking & set().union(*read.values())))}), and claims have none. Leave them out."
        )
    of_given = [name for name, method in config.methods.items() if method.actor in shards.given]
    if methods := [name for name in of_given if shards.reads(name, "FEATURES")]:
        yield f"{where}: {', '.join(methods)} read the likelihood of whole given answers. Leave them out."
    if config.replay.from_:
        yield f"{where}: the generation keeps the states of whole answers. Leave out `replay.from`."
    for name, condition in config.conditions.items():
        if name != "original" and condition.completions is None and set(condition.datasets or []) & set(reports):
            yield (
                f"conditions.{name}.datasets: {condition.datasets}: reports that are written under it have other claims"
                " than the original ones. Add `completions: original` and `control: true`, or name other data sets."
            )
    for name in config.figures:
        if plugins.declared("figures", name, "READS") == "pairs":
            yield f"figures.{name}: it shows two answers to a question, and claims have one. Leave it out."


def missing_checkpoints(config: Config) -> Iterator[str]:
    """Yield a line per actor and backbone of the selected study that lacks checkpoints for some seeds."""
    for name, actor in config.actors.items():
        for backbone in config.backbones if actor.checkpoints is not None else ():
            by_seed = (actor.checkpoints or {}).get(backbone, {})
            if missing := [str(seed) for seed in config.seeds_of(backbone) if seed not in by_seed]:
                where = f"actors.{name}.checkpoints.{backbone}"
                yield f"{where}: none for seed {', '.join(missing)}. Give one for each seed, or leave the seeds out."


def _dataset_contradictions(where: str, dataset: Dataset, config: Config) -> Iterator[str]:
    splits, select, source = dataset.splits, dataset.select, dataset.source
    if dataset.id and set(splits) != {"train", "validation", "test"}:
        yield f"{where}.splits: {splits}. The in-distribution data set needs train, validation and test."
    if set(dataset.roles) != set(splits):
        yield f"{where}.roles: has {sorted(dataset.roles)}. Expected one entry for each of {sorted(splits)}."
    for split, roles in dataset.roles.items():
        # Rounded, because 0.7 + 0.1 + 0.2 is not 1 in binary.
        if isinstance(roles, Mapping) and round(sum(roles.values()), 9) != 1:
            yield f"{where}.roles.{split}: the fractions add up to {sum(roles.values()):g}, expected 1."
    for key, named in (
        ("pairing.splits", dataset.pairing.splits if dataset.pairing else []),
        ("expect_sha256", dataset.expect_sha256 or {}),
    ):
        if absent := sorted(set(named) - set(splits)):
            yield f"{where}.{key}: {absent} not among the splits {splits}. Add them there or remove them here."
    if select and isinstance(select.questions, Mapping):
        types = select.answer_types or ["open", "closed"]
        if absent := sorted(set(select.questions) - set(types)):
            named = f"{absent} not among the answer_types {types}"
            yield f"{where}.select.questions: {named}. Name a type in both or neither."
    known = plugins.declared("datasets", dataset.loader, "HUB_FILES") or {}
    if source.hub and (absent := sorted(set(splits) - set(known))):
        has = f"has {', '.join(known) or 'none'} on the hub"
        yield f"{where}.splits: {absent}; the loader {dataset.loader!r} {has}. Remove them, or `hub` and `revision`."
    if source.phantom and (others := sorted(source.model_fields_set - {"phantom"})):
        yield f"{where}.source: a phantom and {others}. Expected one or the other; a study removes a key with null."
    if source.phantom and (undrawn := sorted(set(splits) - set(images := config.phantoms[source.phantom].images))):
        named = f"phantoms.{source.phantom}.images has no {undrawn}, only {sorted(images)}"
        yield f"{where}.splits: {named}. Add or remove them."


def missing_files(config: Config, root: Path) -> Iterator[str]:
    """Yield a line per folder of a checkpoint that is not there.

    Snakemake would take a job that cannot be described for one that need not run. The official files of a data set
    need not be there yet, because the job that needs them says how to get them.
    """
    places = {f"backbones.{name}.source.folder": entry.source.folder for name, entry in config.backbones.items()}
    for name, actor in config.actors.items():
        for backbone, of_seeds in (actor.checkpoints or {}).items():
            where = f"actors.{name}.checkpoints.{backbone}"
            places |= {f"{where}.{seed}.folder": source.folder for seed, source in of_seeds.items()}
    grouping = ((name, view.groups) for name, view in config.views.items() if view.groups is not None)
    places |= {f"views.{name}.groups.source.folder": groups.source.folder for name, groups in grouping if groups.source}
    for where, folder in places.items():
        if folder is not None and not (root / folder).is_dir():
            yield f"{where}: {folder!r}: no such folder under {root}. Put the checkpoint there."


def _method_contradictions(methods: Mapping[str, Method]) -> Iterator[str]:
    order = list(methods)
    for name, method in methods.items():
        parents = methods[method.transfer.method].parents if method.transfer else method.parents
        yield from (f"methods.{name}.{problem}" for problem in problems(method.reader, parents, method.views or []))
        for role, parent in method.parents.items():
            if order.index(parent) >= order.index(name):
                yield f"methods.{name}.parents.{role}: {parent!r} comes later. List a parent before its children."
            elif methods[parent].actor != method.actor:
                actors = f"{methods[parent].actor!r}, {name!r} reads {method.actor!r}"
                yield f"methods.{name}.parents.{role}: {parent!r} reads {actors}. Expected the same actor."


def _uncalibrated_contradictions(config: Config) -> Iterator[str]:
    names = [name for name, method in config.methods.items() if method.uncalibrated]
    for name in names:
        method, where = config.methods[name], f"methods.{name}.uncalibrated"
        if method.parents or method.transfer or not plugins.declared("readers", method.reader, "SCORES_UNFITTED"):
            yield f"{where}: the reader {method.reader!r} has to be fitted, or to build on others. Leave this key out."
    for name, method in config.methods.items():
        if built_on := [parent for role, parent in method.parents.items() if role != "target" and parent in names]:
            yield f"methods.{name}.parents: {built_on} are not calibrated. Name methods that are."
        if method.transfer and method.transfer.method in names:
            yield f"methods.{name}.transfer.method: {method.transfer.method!r} is not fitted. Name a method that is."


def _transfer_contradictions(config: Config) -> Iterator[str]:
    for name, method, transfer in ((n, m, m.transfer) for n, m in config.methods.items() if m.transfer):
        where, source = f"methods.{name}.transfer", config.methods[transfer.method]
        if source.transfer:
            yield f"{where}.method: {transfer.method!r} applies another one's reader itself. Name that one."
        for key in ("reader", "settings", "views"):
            if (value := getattr(method, key)) != (expected := getattr(source, key)):
                yield f"methods.{name}.{key}: {value!r}; its reader is that of {transfer.method!r}. Write {expected!r}."
        if method.parents:
            yield f"methods.{name}.parents: {list(method.parents)}; the reader of a transfer has its own. Leave it out."
        if source.actor == method.actor and transfer.seed is None:
            yield f"{where}: the reader of {transfer.method!r} is fitted on these answers themselves. Add `seed: next`."
        if transfer.seed and source.actor != method.actor:
            yield f"{where}.seed: next: {transfer.method!r} judges {source.actor!r}. Leave the seed out."
        elif transfer.seed and (single := [name for name in config.backbones if len(config.seeds_of(name)) < 2]):
            yield f"{where}.seed: next: {single} have one seed alone. Give them several, or leave the method out."
