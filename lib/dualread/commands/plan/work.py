"""The jobs of a study by stage: what they do and how long they take, as if the store were empty."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.commands.plan.models import Model, model_of
from dualread.commands.plan.sizes import Sizes
from dualread.declared.answers import ShardSpec
from dualread.declared.study import Config
from dualread.models.replay.agreement import SAMPLE
from dualread.models.training.settings import settings_on
from dualread.reporting.comparison import compared
from dualread.study.asked import prompt_of, shard_spec
from dualread.study.shards import ShardOrView, StudyShards
from dualread.study.tables import StudyTables


@dataclass(frozen=True, kw_only=True)
class Work:
    """The jobs of one stage that do one kind of work.

    Attributes:
        stage: The stage.
        what: The kind of items: answers, samples, completions, ...
        jobs: Number of jobs; 0 if another row of the stage counts them.
        models: Number of times that a model is loaded.
        items: Number of items.
        seconds: {"cpu": seconds of one core, "gpu": seconds of one GPU}.
    """

    stage: str
    what: str
    jobs: int = 0
    models: int = 0
    items: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)


STAGES = (  # in the order of the pipeline
    *("draw_phantom", "download_dataset", "build_manifest", "check_leakage", "pair_donors", "summarize_data"),
    *("pretrain_base", "copy_checkpoint", "probe_checkpoint", "train_actor", "generate", "read_answers", "grade"),
    *("replay", "read_likelihoods"),
    *("fit_readers", "score_answers", "compute_metrics", "measure_costs", "collect_metrics", "compare_methods"),
    "measure_difficulty",
    *("build_table", "preview_tables", "draw_figure", "export_records", "export_answers", "compare_with_paper"),
)


class PlannedStudy:
    """A study, with what all parts of a forecast need.

    Attributes:
        config: A validated config, as plain mappings.
        typed: The same config, typed.
        shards: Its shards.
        left_out: By actor, the reason for each method that is left out.
        sizes: The sizes of its data sets.
        costs: The cost of each unit of work (costs.yaml).
        root: The folder of the repository.
    """

    def __init__(
        self,
        config: Config,
        costs: Mapping[str, Any],
        *,
        root: Path,
        results: Path,
        files: Sequence[Path] = (),
    ) -> None:
        self.config, self.costs, self.root = config.as_mapping(), costs, root
        self.typed, self.shards, self.left_out = config, StudyShards(config), config.left_out
        self.sizes = Sizes(self.config, results, root=root, files=files)

    @cached_property
    def models(self) -> dict[str, Model]:
        """The models of the backbones that are opened here, and not run by a service."""
        backbones = self.config["backbones"]
        opened = [name for name in backbones if "service" not in backbones[name]["source"]]
        return {name: model_of(self.config, name, self.costs) for name in opened}

    @property
    def trained(self) -> list[str]:
        """The actors that the workflow trains and that a method or a figure needs."""
        drawn = {actor for figure in self.config.get("figures", {}).values() for actor in figure.get("actors", [])}
        actors = self.config["actors"]
        return [name for name in actors if "training" in actors[name] and name in {*drawn, *self.shards.answering}]

    @property
    def needs_base(self) -> bool:
        """Whether the untrained base answers questions or is the start of a training."""
        return bool(self.trained) or self.shards.base in self.shards.answering

    def downloaded(self) -> list[str]:
        """Return the data sets that are neither phantoms nor in their folder."""
        sources = {name: dataset["source"] for name, dataset in self.config["datasets"].items()}
        return [
            name
            for name, source in sources.items()
            if "phantom" not in source and not ("folder" in source and (self.root / source["folder"]).is_dir())
        ]

    def asked(self, shard: ShardOrView) -> int:
        """Return how many questions a shard or view has."""
        return self.sizes.asked(shard, donors=self.shards.needs_pairs(shard[2]))

    def images(self, shard: ShardOrView) -> int:
        """Return about how many images the questions of a shard or view are about."""
        return min(self.sizes.of(*shard[:2]).images, self.asked(shard))

    def answers(self, shards: list[ShardOrView]) -> int:
        """Return how many questions the shards or views have in total."""
        return sum(self.asked(shard) for shard in shards)


def work_of(study: PlannedStudy) -> Iterator[Work]:
    """Yield the work of a study by backbone and actor; a stage can have several rows."""
    yield from _of_datasets(study)
    shards = study.shards
    for backbone in study.config["backbones"]:
        model = study.models.get(backbone)
        if model is not None:
            yield from _of_bases(study, backbone, model)
        for actor, entry in study.config["actors"].items():
            n_seeds = len(shards.seeds(backbone, actor))
            if actor in study.trained and model is not None:
                yield _scaled(_trained(study, backbone, actor, model), n_seeds)
            if actor in shards.given and actor in shards.answering:
                yield from (*_given(study, actor), *_read(study, backbone, actor))
            elif actor in shards.answering and model is not None:
                if "checkpoints" in entry:
                    yield Work(stage="copy_checkpoint", what="checkpoints", jobs=n_seeds, items=n_seeds)
                    yield _scaled(_probed(model), n_seeds)
                for row in (*_asked(study, actor, model), *_read(study, backbone, actor)):
                    yield _scaled(row, n_seeds)
    start = {"cpu": study.costs["cpu"]["start"]}
    n_tables, n_figures = len(study.config["tables"]), len(study.config.get("figures", {}))
    # Those of all actors together, and those of each actor that a table or a figure of contrasts shows alone.
    collected = {None, *map(StudyTables(study.typed).only_actor, study.config["tables"]), *_actors_of_contrasts(study)}
    n_collected = len(collected)
    yield Work(stage="collect_metrics", what="tables", jobs=n_collected, items=n_collected, seconds=start)
    runs = sum(
        len(shards.seeds(backbone, actor)) * len(shards.methods_of(actor))
        for backbone in study.config["backbones"]
        for actor in shards.answering
    )
    if any(plugins.declared("tables", table, "READS") == "contrasts" for table in study.config["tables"]):
        seconds = {"cpu": start["cpu"] + runs * study.costs["cpu"]["compare_methods"]}
        yield Work(stage="compare_methods", what="methods", jobs=1, items=runs, seconds=seconds)
    for actor in sorted(_actors_of_contrasts(study)):
        runs_of = sum(len(shards.seeds(backbone, actor)) for backbone in study.config["backbones"])
        runs_of *= len(shards.methods_of(actor))
        seconds = {"cpu": start["cpu"] + runs_of * study.costs["cpu"]["compare_methods"]}
        yield Work(stage="compare_methods", what="methods", jobs=1, items=runs_of, seconds=seconds)
    n_judged = len(shards.with_known_difficulty())
    yield _scaled(Work(stage="measure_difficulty", what="actors", jobs=1, items=1, seconds=start), n_judged)
    yield _scaled(Work(stage="build_table", what="tables", jobs=1, items=1, seconds=start), n_tables)
    yield Work(stage="preview_tables", what="pages", jobs=1, items=1, seconds=start)
    yield _scaled(Work(stage="draw_figure", what="figures", jobs=1, items=1, seconds=start), n_figures)
    yield Work(stage="export_records", what="records", jobs=1, items=2, seconds=start)
    yield Work(stage="export_answers", what="methods", jobs=1, items=runs, seconds=start)
    if in_paper := compared(study.config["backbones"], study.config["tables"]):
        yield Work(stage="compare_with_paper", what="tables", jobs=1, items=len(in_paper), seconds=start)


def _actors_of_contrasts(study: PlannedStudy) -> set[str]:
    """Return the actors whose methods a figure shows beside their nulls."""
    figures = study.config.get("figures") or {}
    shown = [of["methods"] for name, of in figures.items() if plugins.declared("figures", name, "READS") == "contrasts"]
    return {study.config["methods"][method]["actor"] for methods in shown for method in methods}


def _of_datasets(study: PlannedStudy) -> Iterator[Work]:
    """Yield the work on data sets, whose time is not estimated."""
    datasets, shards = study.config["datasets"], study.shards
    splits = [(name, split) for name, dataset in datasets.items() for split in dataset["splits"]]
    sizes = [study.sizes.of(*split) for split in splits]
    phantoms = {dataset["source"]["phantom"] for dataset in datasets.values() if "phantom" in dataset["source"]}
    images = sum(sum(study.config["phantoms"][phantom]["images"].values()) for phantom in phantoms)
    yield Work(stage="draw_phantom", what="images", jobs=len(phantoms), items=images)
    n_downloads = len(study.downloaded())
    yield Work(stage="download_dataset", what="data sets", jobs=n_downloads, items=n_downloads)
    questions = sum(size.questions for size in sizes)
    yield Work(stage="build_manifest", what="questions", jobs=len(splits), items=questions)
    yield Work(stage="check_leakage", what="images", jobs=1, items=sum(size.images for size in sizes))
    paired = [split for split in splits if shards.has_pairs(*split)]
    items = sum(study.sizes.of(*split).questions for split in paired)
    yield Work(stage="pair_donors", what="questions", jobs=len(paired), items=items)
    if any(plugins.declared("tables", table, "READS") == "data" for table in study.config["tables"]):
        yield Work(stage="summarize_data", what="questions", jobs=1, items=questions)


def _of_bases(study: PlannedStudy, backbone: str, model: Model) -> Iterator[Work]:
    if not study.needs_base:
        return
    yield _probed(model)
    if "rollouts" in study.config["backbones"][backbone].get("training", {}) and study.trained:
        yield _probed(model)  # once more, in the environment of the trainings
    recipe = study.config["backbones"][backbone]["source"].get("pretrain")
    if recipe is None:
        yield Work(stage="copy_checkpoint", what="checkpoints", jobs=1, items=1)
        return
    images = recipe["training"]["steps"] * recipe["training"]["images_per_step"]
    seconds = model.start(training=False) + images * study.costs["tiny"]["pretrain_image"]
    yield Work(stage="pretrain_base", what="images", jobs=1, models=1, items=images, seconds={"cpu": seconds})


def _probed(model: Model) -> Work:
    """Return the work of probing one checkpoint, which takes little more than to load it."""
    seconds = {model.device: model.start(training=False)}
    return Work(stage="probe_checkpoint", what="checkpoints", jobs=1, models=1, items=1, seconds=seconds)


def _trained(study: PlannedStudy, backbone: str, actor: str, model: Model) -> Work:
    entry, shards = study.config["actors"][actor], study.shards
    settings = settings_on(study.config["backbones"][backbone], entry)
    steps = settings.steps_over(study.sizes.of(shards.in_distribution, "train").questions)
    prompt = prompt_of(study.typed, actor, shards.in_distribution, "original").name
    seconds = model.start(training=True) + model.train(entry["training"], settings, steps, prompt)
    completions = steps * settings.prompts_per_step * settings.group_size
    what = f"{entry['training']} completions"
    return Work(stage="train_actor", what=what, jobs=1, models=1, items=completions, seconds={model.device: seconds})


def _asked(study: PlannedStudy, actor: str, model: Model) -> Iterator[Work]:
    """Yield the generation and replay of one actor."""
    start = {model.device: model.start(training=False)}
    yield Work(stage="generate", what="models", jobs=1, models=1, items=1, seconds=start)
    for shard in study.shards.generated(actor):
        asked, n = shard_spec(study.typed, actor, shard), study.asked(shard)
        kind = _kind(asked, is_view=len(shard) > 3)
        seconds = {model.device: model.generate(kind, asked, n, study.images(shard))}
        yield Work(stage="generate", what=kind, items=n * asked.n_completions, seconds=seconds)
    if replayed := study.shards.replayed(actor):
        specs = {shard: shard_spec(study.typed, actor, shard) for shard in replayed}
        # Where the generation has kept the states, a sample alone is replayed.
        kept = {shard for shard in replayed if study.shards.pass_reading(actor, shard)}
        counts = {shard: (study.asked(shard), study.images(shard)) for shard in replayed}
        counts |= {shard: (min(counts[shard][0], SAMPLE), min(counts[shard][1], SAMPLE)) for shard in kept}
        seconds = sum(model.replay(spec, *counts[shard]) for shard, spec in specs.items())
        seconds = {model.device: model.start(training=False) + seconds}
        yield Work(stage="replay", what="answers", jobs=1, models=1, items=study.answers(replayed), seconds=seconds)


def _given(study: PlannedStudy, actor: str) -> Iterator[Work]:
    """Yield what is read of given answers, about which all are assumed to be valid."""
    counts = [
        shard_spec(study.typed, actor, shard).n_completions * study.asked(shard)
        for shard in study.shards.generated(actor)
    ]
    seconds = {"cpu": study.costs["cpu"]["start"]}
    yield Work(stage="read_answers", what="given completions", jobs=1, items=sum(counts), seconds=seconds)
    if read := study.shards.replayed(actor):
        yield Work(stage="read_likelihoods", what="answers", jobs=1, items=study.answers(read), seconds=seconds)


def _read(study: PlannedStudy, backbone: str, actor: str) -> Iterator[Work]:
    """Yield the work on the answers of one actor, all on CPUs; what given answers cost is not measured."""
    shards, unit = study.shards, study.costs["cpu"]
    methods = shards.methods_of(actor)
    graded = study.answers(list(shards.shards(actor)))
    seconds = {"cpu": unit["start"] + graded / 1000 * unit["grade_answers"]}
    yield Work(stage="grade", what="answers", jobs=1, items=graded, seconds=seconds)
    fits = sum(_fit_seconds(study, backbone, method) for method in methods)
    seconds = {"cpu": unit["start"] + fits}
    yield Work(stage="fit_readers", what="readers", jobs=1, items=len(methods), seconds=seconds)
    test = study.asked((shards.in_distribution, "test", "original"))
    counts = {method: study.answers(list(shards.scored(method))) for method in methods}
    for stage, n in (
        ("score_answers", sum(counts.values())),
        ("compute_metrics", sum(counts.values())),
        *((("measure_costs", test * len(methods)),) if actor not in shards.given else ()),
    ):
        seconds = {"cpu": unit["start"] + n / 1000 * unit[stage]}
        yield Work(stage=stage, what="confidences", jobs=1, items=n, seconds=seconds)


def _fit_seconds(study: PlannedStudy, backbone: str, method: str) -> float:
    unit, reader = study.costs["cpu"], study.config["methods"][method]["reader"]
    seconds = unit["fit_reader"].get(reader, unit["fit_reader"]["other"])
    if not plugins.declared("readers", reader, "FEATURES"):
        return seconds
    answers = study.asked(study.shards.fitted_shard(method))
    width = width_of(study.config["backbones"][backbone]) if backbone in study.models else 0  # no states of a service
    return seconds * answers / unit["fitted_on"]["answers"] * width / unit["fitted_on"]["width"]


def width_of(backbone: Mapping[str, Any]) -> int:
    """Return the width of a backbone's hidden states."""
    pretrain = backbone["source"].get("pretrain")
    return pretrain["architecture"]["hidden_size"] if pretrain else backbone["size"]["hidden_size"]


def _kind(asked: ShardSpec, *, is_view: bool) -> str:
    """Return what is generated for a shard or view, by its name in the costs."""
    if asked.choices is not None:
        return "integers" if asked.choices.integers is not None else "words"
    if asked.n_completions > 1:
        return "samples"
    return "replies" if is_view else "answers"


def _scaled(row: Work, n: int) -> Work:
    seconds = {device: value * n for device, value in row.seconds.items()}
    return replace(row, jobs=row.jobs * n, models=row.models * n, items=row.items * n, seconds=seconds)
