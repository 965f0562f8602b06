"""The jobs of a study that take time, by stage: what they do, how long they take, and what a cluster has to give them.

All is counted, as if the store were empty. What makes data sets, tables and figures takes seconds and is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.errors import DualReadError
from dualread.schema.study import Config
from dualread.study.asked import shard_spec
from dualread.study.costs import Costs, is_tiny
from dualread.study.shards import ShardOrView, StudyShards
from dualread.study.sizes import Sizes
from dualread.training.settings import TrainingSettings, settings_on

STAGES = (  # in the order of the pipeline
    *("pretrain_base", "copy_checkpoint", "probe_checkpoint", "train_actor", "generate", "read_answers", "grade"),
    "group_answers",
    *("replay", "read_likelihoods", "fit_readers", "score_answers", "compute_metrics", "measure_subgroups"),
    "measure_costs",
)
SAMPLE = 32  # completions of a shard that are replayed for the comparison: models.replay.agreement, which needs torch
_MINUTES = 30  # the limit of a cluster's job is a multiple of it


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of one kind that jobs of one stage do."""

    stage: str  # the stage
    what: str  # the kind of items: answers, samples, completions, ...
    backbone: str | None = None  # the backbone that does it; None for a core without a model
    jobs: int = 0  # number of jobs; 0 if another row of the stage counts them
    items: int = 0  # number of items
    seconds: float = 0.0  # seconds of one core, or of all GPUs together
    gpus: int = 0  # number of GPUs of a job
    basis: str = ""  # where the time was measured, or that it was not; empty if it is not estimated


class PlannedStudy:
    """A study (`config` has plain mappings, `typed` is typed), with what all parts of a forecast need."""

    def __init__(self, config: Config, costs: Costs, *, root: Path, results: Path, files: Sequence[Path] = ()) -> None:
        self.config, self.typed, self.costs, self.root = config.as_mapping(), config, costs, root
        self.shards, self.sizes = StudyShards(config), Sizes(self.config, results, root=root, files=files)
        backbones, actors, figures = self.config["backbones"], self.config["actors"], self.config.get("figures", {})
        # Those that are opened here, and not run by a service.
        self.opened = {name: entry for name, entry in backbones.items() if "service" not in entry["source"]}
        needed = {*self.shards.answering, *(actor for figure in figures.values() for actor in figure.get("actors", []))}
        # By the workflow, for a method or a figure.
        self.trained = [name for name in actors if "training" in actors[name] and name in needed]
        self.needs_base = bool(self.trained) or self.shards.base in self.shards.answering

    def settings(self, backbone: str, actor: str) -> TrainingSettings:
        """Return how an actor of a backbone is trained."""
        return settings_on(self.config["backbones"][backbone], self.config["actors"][actor])

    def answers(self, shards: Sequence[ShardOrView], *, at_most: Mapping[ShardOrView, int] | None = None) -> int:
        """Return how many questions the shards or views have in total; of some `at_most` so many."""
        asked = {shard: self.sizes.asked(shard, donors=self.shards.needs_pairs(shard[2])) for shard in shards}
        return sum(min(n, (at_most or {}).get(shard, n)) for shard, n in asked.items())

    def work(
        self,
        stage: str,
        what: str,
        n: float,
        backbone: str | None = None,
        *,
        unit: str | None = None,
        engine: str | None = None,
        units: Mapping[str, float] | None = None,
        jobs: int = 0,
        gpus: int = 1,
    ) -> Work:
        """Return work on `n` items; `unit` is their name in the table of costs, and "" where nothing but jobs counts.

        `units` has the numbers of tokens, choices and steps, in which the table counts for some engines.
        """
        entry = None if backbone is None else (backbone, self.config["backbones"][backbone])
        seconds, basis = jobs * self.costs.time("any", "job", entry, engine).value, ""
        if unit != "":
            cost = self.costs.time(stage, unit or what, entry, engine)
            seconds, basis = seconds + cost.value * (units or {}).get(cost.per, n), cost.basis
        gpus = 0 if entry is None or is_tiny(entry[1]) else gpus
        counts = {"jobs": jobs, "items": round(n), "seconds": seconds, "gpus": gpus}
        return Work(stage=stage, what=what, backbone=backbone, basis=basis, **counts)


def work_of(study: PlannedStudy) -> Iterator[list[Work]]:
    """Yield, for the bases and each actor of each backbone, the rows of their work."""
    shards = study.shards
    for backbone in study.config["backbones"]:
        is_opened = backbone in study.opened
        if is_opened and study.needs_base:
            yield list(_of_base(study, backbone))
        for actor in study.config["actors"]:
            rows: list[Work] = []
            if actor in study.trained and is_opened:
                rows += _trained(study, backbone, actor)
            if actor in shards.answering and (is_opened or actor in shards.given):
                asked = _given(study, actor) if actor in shards.given else _asked(study, backbone, actor)
                rows += [*asked, *_read(study, backbone, actor)]
            n = len(shards.seeds(backbone, actor))
            yield [replace(row, jobs=row.jobs * n, items=row.items * n, seconds=row.seconds * n) for row in rows]


def _of_base(study: PlannedStudy, backbone: str) -> Iterator[Work]:
    entry = study.config["backbones"][backbone]
    # Once more in the environment of the trainings, where an engine samples for them.
    probes = 2 if "rollouts" in entry.get("training", {}) and study.trained else 1
    yield study.work("probe_checkpoint", "checkpoints", probes, backbone, unit=_probe(entry), jobs=probes)
    if is_tiny(entry):
        training = entry["source"]["pretrain"]["training"]
        images = training["steps"] * training["images_per_step"]
        yield study.work("pretrain_base", "images", images, backbone, jobs=1)
    else:
        yield Work(stage="copy_checkpoint", what="checkpoints", jobs=1, items=1)


def _probe(backbone: Mapping[str, Any]) -> str | None:
    return "" if is_tiny(backbone) else None  # takes little more than to load a tiny one


def _trained(study: PlannedStudy, backbone: str, actor: str) -> Iterator[Work]:
    """Yield the training of one actor; seconds are those of all its GPUs, those that only sample included."""
    algorithm, settings = study.config["actors"][actor]["training"], study.settings(backbone, actor)
    steps = settings.steps_over(study.sizes.of(study.shards.in_distribution, "train").questions)
    n, budget = steps * settings.prompts_per_step * settings.group_size, settings.max_completion_tokens
    drawn = n / settings.num_iterations
    at_work = 1 + (settings.rollout_gpus or 0)
    options: Any = {"backbone": backbone, "gpus": settings.processes * at_work}
    rows = [study.work("train_actor", f"{algorithm} completions", n, unit="learning", jobs=1, **options)]
    made = (("training", algorithm), ("rewards", study.config["actors"][actor]["reward"]))
    extra = sum(plugins.declared(family, name, "EXTRA_PASSES") or 0 for family, name in made)
    if passes := extra + (rows[0].gpus > 0 and settings.kl_coefficient != 0):
        rows.append(study.work("train_actor", "extra passes", n * passes, unit="extra pass", **options))
    if rows[0].gpus:
        tokens = drawn * budget * study.costs["assumed"]["completion_share"]
        options |= {"engine": settings.rollouts, "units": {"step": drawn / settings.sampled_at_once * budget}}
        rows.append(study.work("train_actor", "sampled tokens", tokens, unit="sampling", **options))
    yield from (replace(row, seconds=row.seconds * at_work) for row in rows)


def _asked(study: PlannedStudy, backbone: str, actor: str) -> Iterator[Work]:
    """Yield the generation and replay of one actor, and the copy of a checkpoint that was trained elsewhere."""
    generation, entry = study.config["generation"], study.config["backbones"][backbone]
    settings, engine = generation.get("settings", {}), generation["engine"]
    at_once = settings.get("batch_size") or settings.get("max_num_seqs") or 1
    if "checkpoints" in study.config["actors"][actor]:
        yield Work(stage="copy_checkpoint", what="checkpoints", jobs=1, items=1)
        yield study.work("probe_checkpoint", "checkpoints", 1, backbone, unit=_probe(entry), jobs=1)
    yield study.work("generate", "models", 1, backbone, unit="", engine=engine, jobs=1)
    for shard in study.shards.generated(actor):
        asked, n = shard_spec(study.typed, actor, shard), study.answers([shard])
        completions, choices = n * asked.n_completions, asked.choices
        budget = asked.decoding.max_completion_tokens if asked.decoding is not None else 0
        kind, scored = "samples" if asked.n_completions > 1 else "replies" if len(shard) > 3 else "answers", 0
        if choices is not None:
            first, last = choices.integers or (1, len(choices.words or "ABCD"))
            kind, scored = "words" if choices.integers is None else "integers", last - first + 1
        units = {
            "token": completions * budget * study.costs["assumed"]["completion_share"],
            "step": ceil(completions / at_once) * budget,
            "choice": n * scored,
        }
        yield study.work("generate", kind, completions, backbone, engine=engine, units=units)
    if replayed := study.shards.replayed(actor):
        # Where the generation has kept the states, a sample alone is replayed.
        sampled = {shard: SAMPLE for shard in replayed if study.shards.pass_reading(actor, shard)}
        n = study.answers(replayed, at_most=sampled)
        yield study.work("replay", "answers", n, backbone, jobs=1)


def _given(study: PlannedStudy, actor: str) -> Iterator[Work]:
    """Yield what is read of given answers, about which all are assumed to be valid."""
    asked = [(shard_spec(study.typed, actor, shard), shard) for shard in study.shards.generated(actor)]
    n = sum(spec.n_completions * study.answers([shard]) for spec, shard in asked)
    yield study.work("read_answers", "given completions", n, unit="", jobs=1)
    if read := study.shards.replayed(actor):
        yield study.work("read_likelihoods", "answers", study.answers(read), unit="", jobs=1)


def _read(study: PlannedStudy, backbone: str, actor: str) -> Iterator[Work]:
    """Yield the work on the answers of one actor, all on CPUs; what given answers cost is not measured."""
    shards, methods = study.shards, study.shards.methods_of(actor)
    fits = shards.fitted_methods(actor)
    yield study.work("grade", "answers", study.answers(shards.shards(actor)), jobs=1)
    if grouped := shards.grouped(actor):  # how long its model takes was not measured
        yield Work(stage="group_answers", what="answers", jobs=1, items=study.answers(grouped))
    fitted = study.work("fit_readers", "readers", len(fits), unit="other", jobs=1)
    seconds = fitted.seconds + sum(_fit_seconds(study, backbone, method) for method in fits)
    yield replace(fitted, seconds=seconds)
    n = sum(study.answers(shards.scored(method)) for method in methods)
    yield study.work("score_answers", "confidences", n, jobs=1)
    yield study.work("compute_metrics", "confidences", n, jobs=1)
    if columns := study.config.get("subgroups"):
        tested = [shard for method in methods for shard in shards.scored(method) if shard[1:] == ("test", "original")]
        n = sum(study.answers([shard]) for shard in tested) * len(columns)
        yield study.work("measure_subgroups", "confidences", n, jobs=1)
    if actor not in shards.given:
        test = study.answers([(shards.in_distribution, "test", "original")])
        yield study.work("measure_costs", "confidences", test * len(methods), jobs=1)


def _fit_seconds(study: PlannedStudy, backbone: str, method: str) -> float:
    """Return the seconds of a method's reader beyond those of any reader."""
    reader, other = study.config["methods"][method]["reader"], study.costs.time("fit_readers", "other").value
    known = {row["per"]: row for row in study.costs["times"] if row["stage"] == "fit_readers"}
    row = known.get(reader, known["other"])
    if not plugins.declared("readers", reader, "FEATURES"):
        return row["seconds"] - other
    width = width_of(study.opened[backbone]) if backbone in study.opened else 0  # no states of a service
    answers = study.answers([study.shards.fitted_shard(method)])
    return row["seconds"] * answers / row["answers"] * width / row["width"] - other


def width_of(backbone: Mapping[str, Any]) -> int:
    """Return the width of a backbone's hidden states."""
    pretrain = backbone["source"].get("pretrain")
    return pretrain["architecture"]["hidden_size"] if pretrain else backbone["size"]["hidden_size"]


def machine_gb(study: PlannedStudy, backbone: str, actor: str) -> float:
    """Return the GB that weights take of each machine of a training, on their way from files to its GPUs.

    Of a sharded model, the first process alone reads them. To engines of their own they pass as tensors and as a file.
    """
    settings, n = study.settings(backbone, actor), study.opened[backbone]["size"]["parameters"]
    here, each = settings.processes // settings.nodes, 4 if settings.lora is None else 2
    engines = here * 2 * n * 2 if settings.rollout_gpus else 0.0
    return max((1 if settings.shard else here) * n * each, engines) / 1e9


def seconds_of_jobs(config: Config, *, root: Path, results: Path) -> dict[str, float]:
    """Return how long a job of each stage takes on one core or on its GPUs; nothing where a size is not known yet."""
    totals: dict[str, tuple[int, float]] = {}
    try:
        for row in (row for rows in work_of(PlannedStudy(config, Costs(), root=root, results=results)) for row in rows):
            jobs, seconds = totals.get(row.stage, (0, 0.0))
            totals[row.stage] = jobs + row.jobs, seconds + row.seconds / (row.gpus or 1)
    except DualReadError:
        return {}
    return {stage: seconds / jobs for stage, (jobs, seconds) in totals.items() if jobs}


def cluster_resources(config: Config, *, root: Path, results: Path) -> dict[str, dict[str, int]]:
    """Return what a job of each stage asks a cluster for: {stage: {"mem_mb": ..., "runtime": minutes}}, with a margin.

    Where a size is not known yet, nothing is asked for but the memory that the table of costs has.
    """
    costs = Costs()
    asked = {stage: {"mem_mb": mb} for stage, mb in costs["machine_mb"].items()}
    try:
        study = PlannedStudy(config, costs, root=root, results=results)
        for rows in work_of(study):
            for stage in {row.stage for row in rows if row.basis}:
                of_stage = [row for row in rows if row.stage == stage]
                jobs = sum(row.jobs for row in of_stage) or 1
                minutes = sum(row.seconds / (row.gpus or 1) for row in of_stage) / jobs / 60
                limit = _MINUTES * ceil(minutes * costs["assumed"]["time_margin"] / _MINUTES + 1)
                asked[stage] = {**asked.get(stage, {}), "runtime": max(limit, asked.get(stage, {}).get("runtime", 0))}
        large = [name for name, entry in study.opened.items() if not is_tiny(entry)]
        sizes = [machine_gb(study, name, actor) for name in large for actor in study.trained]
        if sizes:
            asked["train_actor"]["mem_mb"] = ceil(1000 * (max(sizes) * costs["assumed"]["memory_margin"] + 16))
    except DualReadError:
        return {stage: {"mem_mb": mb} for stage, mb in costs["machine_mb"].items()}
    return asked
