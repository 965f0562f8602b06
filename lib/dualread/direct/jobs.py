"""The jobs of a study in memory: for each stage, in order, the artifacts that it makes, as the rules describe them.

Nothing here computes. An artifact has the spec and the named inputs that rules/*.smk give it, so that its key and its
bytes are those of a study that Snakemake runs. Only the parts of the examples that something needs are asked.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dualread.declared.answers import GenerateSpec, GradeSpec, ReplaySpec, Shard
from dualread.declared.backbones import CopyCheckpointSpec, ProbeCheckpointSpec
from dualread.declared.base import ConfiguredPlugin, DatasetSplit, NoSpec, Plugin, Repository, Section
from dualread.declared.data import BuildManifestSpec
from dualread.declared.metrics import ExportAnswersSpec
from dualread.declared.readers import FitReadersSpec, MethodReference, ScoreAnswersSpec
from dualread.declared.study import Config
from dualread.direct.study import ACTOR, BACKBONE, DATASET, SEED
from dualread.plugins import module_of
from dualread.store.job import Entry
from dualread.study.asked import contract_of, contract_plugin, image_of, shard_spec
from dualread.study.shards import ShardOrView, StudyShards

_RUN: dict[str, Any] = {"backbone": BACKBONE, "actor": ACTOR, "seed": SEED}
_ORIGINAL = "original"
Job = tuple[str, list[Entry]]


class Jobs:
    """The jobs of one study.

    Args:
        study: The study.
        sources: The folder of the examples of each split that is needed.
        splits: The splits whose answers are wanted.
        methods: The methods whose confidences are wanted; the others are those that they build on.
        out: Where artifacts are linked.
    """

    def __init__(
        self,
        study: Config,
        sources: Mapping[str, Path],
        splits: Collection[str],
        methods: Sequence[str],
        out: Path,
    ) -> None:
        self._study, self._sources, self._splits, self._wanted, self._out = study, sources, splits, methods, out
        self._shards = StudyShards(study)
        self._methods = list(study.methods)
        self._scored = {
            method: [shard for shard in self._shards.scored(method) if shard[1] in splits and method in methods]
            for method in self._methods
        }
        self._model = study.backbones[BACKBONE].answering()

    @property
    def answers(self) -> Path:
        """The folder of the tables of answers, which the last job makes."""
        return self._at("answers")

    def predictions(self, method: str) -> Path:
        """Return the table of a method's confidences, which says why where there are none."""
        return self._at(f"predictions/{method}") / "predictions.parquet"

    def __iter__(self) -> Iterator[Job]:
        """Yield stage and entries of each job, in order."""
        yield "build_manifest", [self._manifest(split, source) for split, source in self._sources.items()]
        if len(self._sources) > 1:
            yield "check_leakage", [self._entry("leakage", NoSpec(), **self._manifests(self._sources))]
        yield "copy_checkpoint", [self._checkpoint()]
        probed = ProbeCheckpointSpec(backbone=BACKBONE, model=self._study.backbones[BACKBONE].opening())
        yield "probe_checkpoint", [self._entry("facts", probed, actor=self._at("actor"))]
        yield "generate", [self._generated(shard) for shard in self._asked(self._shards.generated(ACTOR))]
        yield "grade", [self._graded(shard) for shard in self._asked(self._shards.shards(ACTOR))]
        if replayed := self._replayed():
            yield "replay", [self._replay(shard) for shard in replayed]
        yield "fit_readers", [self._reader(method) for method in self._methods]
        yield "score_answers", [self._predictions(method) for method in self._wanted]
        yield "export_answers", [self._exported()]

    # --- What is asked

    def _asked(self, shards: Sequence[ShardOrView]) -> list[ShardOrView]:
        """Return those of the shards and views that something reads, in their order."""
        views = {
            (*shard, view)
            for method in self._methods
            for views, of_step in (
                (self._shards.scoring_views(method), self._scored[method]),
                (self._shards.fitting_views(method), [self._shards.fitted_shard(method)]),
            )
            for view in views
            for shard in of_step
        }
        return [shard for shard in shards if shard[1] in self._sources and (len(shard) == 3 or shard in views)]

    def _replayed(self) -> list[ShardOrView]:
        of_states = [method for method in self._methods if self._shards.reads(method, "FEATURES")]
        read = {shard for method in of_states for shard in (*self._scored[method], self._shards.fitted_shard(method))}
        asked = self._asked(self._shards.replayed(ACTOR))
        return [shard for shard in asked if len(shard) == 4 or shard in read]

    # --- The artifacts, in the order of their stages

    def _manifest(self, split: str, source: Path) -> Entry:
        dataset = self._study.datasets[DATASET]
        spec = BuildManifestSpec(
            dataset=DATASET,
            split=split,
            loader=Plugin(module=module_of("datasets", dataset.loader)),
            settings=dataset.settings,
            roles=dataset.roles[split],  # pyright: ignore[reportArgumentType]  # a role is a name
            seed=dataset.seed,
            select=dataset.select,
            bits=dataset.bits,
            ct_windows=dataset.ct_windows,
        )
        return self._entry(f"manifests/{split}", spec, source=source)

    def _checkpoint(self) -> Entry:
        source, model = self._study.backbones[BACKBONE].source, self._study.backbones[BACKBONE].opening()
        if source.hub is None:
            return self._entry("actor", CopyCheckpointSpec(model=model), source=Path(str(source.folder)))
        repository = Repository(hub=source.hub, revision=str(source.revision))
        return self._entry("actor", CopyCheckpointSpec(model=model, repository=repository))

    def _generated(self, shard: ShardOrView) -> Entry:
        generation = self._study.generation
        engine = ConfiguredPlugin(module=module_of("generation", generation.engine), settings=generation.settings)
        spec = GenerateSpec(**_RUN, model=self._model, shard=shard_spec(self._study, ACTOR, shard), engine=engine)
        inputs = self._inputs(shard, generations=len(shard) == 4)
        return self._entry(_place("generations", shard), spec, **self._actor(), **inputs)

    def _graded(self, shard: ShardOrView) -> Entry:
        spec = GradeSpec(
            **_RUN,
            **_names(shard),
            contract=contract_plugin(contract_of(self._study, ACTOR, *shard[:3:2])),
            image=image_of(self._study.conditions[shard[2]].image),
        )
        return self._entry(_place("graded", shard), spec, **self._inputs(shard, generations=True))

    def _replay(self, shard: ShardOrView) -> Entry:
        besides: dict[str, Any] = {} if len(shard) == 4 else {"optional_tensors": self._shards.optional_tensors(ACTOR)}
        asked = shard_spec(self._study, ACTOR, shard)
        spec = ReplaySpec(**_RUN, model=self._model, shard=asked, replay=self._study.replay, **besides)
        return self._entry(_place("features", shard), spec, **self._actor(), **self._inputs(shard, generations=True))

    def _reader(self, method: str) -> Entry:
        shard = self._shards.fitted_shard(method)
        spec = FitReadersSpec(
            **self._reader_of(method, "fit"),
            settings=self._study.methods[method].settings,
            examples=DatasetSplit(dataset=shard[0], split=shard[1]),
            scoring=self._shards.scoring(method, BACKBONE),
        )
        inputs = {f"parent/{role}": self._at(f"readers/{one}") for role, one in self._shards.parents(method).items()}
        if self._shards.reads(method, "FITTED_ON"):
            inputs |= {"manifest": self._at(f"manifests/{shard[1]}"), "graded": self._at(_place("graded", shard))}
            inputs |= {f"view/{view}": self._view(shard, view) for view in self._shards.fitting_views(method)}
        if self._shards.reads(method, "FEATURES"):
            inputs["features"] = self._at(_place("features", shard))
        return self._entry(f"readers/{method}", spec, **self._actor(), **inputs)

    def _predictions(self, method: str) -> Entry:
        shards, views = self._scored[method], self._shards.scoring_views(method)
        spec = ScoreAnswersSpec(
            **self._reader_of(method, "score"), shards=tuple(Shard(**_names(shard)) for shard in shards)
        )
        kinds = ("graded", "features") if self._shards.reads(method, "FEATURES") else ("graded",)
        inputs = {
            **self._manifests({shard[1] for shard in shards}),
            **{_named(kind, shard): self._at(_place(kind, shard)) for kind in kinds for shard in shards},
            **{f"view/{view}/{'/'.join(shard)}": self._view(shard, view) for view in views for shard in shards},
        }
        return self._entry(f"predictions/{method}", spec, reader=self._at(f"readers/{method}"), **inputs)

    def _exported(self) -> Entry:
        spec = ExportAnswersSpec(
            **_RUN,
            study=self._study.study,
            methods=tuple(self._wanted),
            splits={DATASET: tuple(sorted(self._splits))},
            replicates=self._study.metrics.bootstrap.replicates,
        )
        shards = [(DATASET, split, _ORIGINAL) for split in sorted(self._splits)]
        predicted = "/".join(("predictions", *map(str, _RUN.values())))
        inputs = {
            **self._manifests(self._splits),
            **{_named("graded", shard): self._at(_place("graded", shard)) for shard in shards},
            **{f"{predicted}/{method}": self._at(f"predictions/{method}") for method in self._wanted},
        }
        return self._entry("answers", spec, **inputs)

    # --- What they have in common

    def _reader_of(self, method: str, step: str) -> dict[str, Any]:
        views, of_parents = self._shards.views_of(method, step), self._shards.views_of_parents(method)
        named = {"views": tuple(views), "of_parents": tuple(of_parents) or None}
        return {**_RUN, "reader": self._reference(method), **named}

    def _reference(self, method: str) -> MethodReference:
        parents = {role: self._reference(parent) for role, parent in self._shards.parents(method).items()}
        module = module_of("readers", self._study.methods[method].reader)
        return MethodReference(method=method, parents=parents, module=module)

    def _actor(self) -> dict[str, Path]:
        return {"actor": self._at("actor"), "facts": self._at("facts")}

    def _inputs(self, shard: ShardOrView, *, generations: bool) -> dict[str, Path]:
        inputs = {"manifest": self._at(f"manifests/{shard[1]}")}
        return inputs | ({"generations": self._at(_place("generations", shard[:3]))} if generations else {})

    def _manifests(self, splits: Collection[str]) -> dict[str, Path]:
        return {f"manifest/{DATASET}/{split}": self._at(f"manifests/{split}") for split in sorted(splits)}

    def _view(self, shard: ShardOrView, view: str) -> Path:
        """Return the place of a view, which generation or replay makes."""
        kind = "features" if self._study.views[view].gives_states else "generations"
        return self._at(_place(kind, (*shard, view)))

    def _at(self, place: str) -> Path:
        return self._out / place

    def _entry(self, place: str, spec: Section, **inputs: Path) -> Entry:
        return Entry(spec=spec.wire(), inputs=inputs, output=self._at(place))


def _place(kind: str, shard: ShardOrView) -> str:
    return "/".join((kind, *shard[1:3], *(("views", *shard[3:]) if shard[3:] else ())))


def _named(kind: str, shard: ShardOrView) -> str:
    return "/".join((kind, *shard))


def _names(shard: ShardOrView) -> dict[str, Any]:
    return dict(zip(("dataset", "split", "condition"), shard, strict=True))
