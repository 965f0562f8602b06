"""What the artifacts of a study are made from: the one description of its jobs.

rules/*.smk make rules of it, and `dualread.confidences` runs the same jobs in memory. A job has the inputs that its
entries share, and the entries: one artifact each, with its `spec`, which is all that it depends on besides inputs and
code.

A method has the name of its stage. `w` has the wildcards of a job: `dataset` and `split`, or `backbone`, `actor` and
`seed`. Whoever needs a part of a job's artifacts alone names the shards or methods.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dualread.plugins import module_of
from dualread.schema.answers import GenerateSpec, GradeSpec, ReplaySpec, Shard
from dualread.schema.base import ConfiguredPlugin, DatasetSplit, Plugin, Section
from dualread.schema.data import BuildManifestSpec
from dualread.schema.metrics import ExportAnswersSpec
from dualread.schema.readers import FitReadersSpec, MethodReference, ScoreAnswersSpec
from dualread.schema.study import Config
from dualread.store.digest import MANIFEST_NAME
from dualread.study.asked import contract_of, image_of, shard_spec
from dualread.study.jobs import Description
from dualread.study.shards import ShardOrView, StudyShards

_OF_SHARD = ("dataset", "split", "condition")


@dataclass(frozen=True)
class Run:
    """The wildcards of a job about an actor."""

    backbone: str
    actor: str
    seed: int | str


def plugin(family: str, name: str) -> Plugin:
    """Return the module of a plugin, as specs name it: a key covers the code of what a spec names."""
    return Plugin(module=module_of(family, name))


def run_of(w: Any) -> dict[str, Any]:
    """Return the fields that say whose run a spec is about."""
    return {"backbone": w.backbone, "actor": w.actor, "seed": int(w.seed)}


class StudyArtifacts:
    """The artifacts of one study.

    Args:
        study: The study.
        shards: Its shards.
        root: The folder of its artifacts.
        source_of: Returns where the official files of a data set's split are.
    """

    def __init__(self, study: Config, shards: StudyShards, root: str, source_of: Callable[[str, str], str]) -> None:
        self._study, self._shards, self._root, self._source_of = study, shards, root, source_of

    # --- Where everything is

    def at(self, *names: object) -> str:
        """Return the file of an artifact that Snakemake tracks; the artifact itself is the folder."""
        return "/".join((self._root, *map(str, names), MANIFEST_NAME))

    def of_actor(self, kind: str, w: Any, *names: str) -> str:
        """Return an artifact of an actor."""
        return self.at(kind, w.backbone, w.actor, w.seed, *names)

    def of_shard(self, kind: str, w: Any, shard: ShardOrView) -> str:
        """Return the artifact of `kind` of a shard; those of views are in one folder, whatever stage makes them."""
        return self.of_actor("views" if len(shard) == 4 else kind, w, *shard)

    def entry(self, output: str, spec: Section, **inputs: str | None) -> dict[str, Any]:
        """Return one artifact of a job; an input that is None is none."""
        given = {name: path for name, path in inputs.items() if path}
        return {"spec": spec.to_spec(), "inputs": given, "output": output.removesuffix(f"/{MANIFEST_NAME}")}

    # --- What jobs have in common

    def checkpoint_of(self, w: Any) -> str:
        """Return the actor's checkpoint; the description of a service where answers are given."""
        return self.at("actors", w.backbone, self._shards.checkpoint_of(w.actor), w.seed)

    def facts_of(self, w: Any) -> str:
        """Return the facts of an actor's checkpoint, or of the one that it is trained from."""
        actor, base = self._shards.checkpoint_of(w.actor), self._shards.base
        if actor in self._shards.given:
            return self.of_actor("actors", w)
        own = actor == base or self._study.actors[actor].checkpoints
        return self.at("facts", w.backbone, actor, w.seed) if own else self.at("facts", w.backbone, base, 0)

    def opened(self, w: Any) -> dict[str, str]:
        """Return the inputs of a job that opens an actor."""
        return {"actor": self.checkpoint_of(w), "facts": self.facts_of(w)}

    def same_as(self, w: Any) -> dict[str, Any]:
        """Return the field that the specs of stages have that read this checkpoint."""
        return {"same_as": self._study.actors[w.actor].same_as}

    def manifests(self, shards: Iterable[ShardOrView]) -> dict[str, str]:
        """Return the manifests of shards, by name."""
        return {f"manifest/{d}/{s}": self.at("manifests", d, s) for d, s, *_ in shards}

    def pairs(self, shards: Iterable[ShardOrView]) -> dict[str, str]:
        """Return the donors of those shards that have some, by name."""
        return {f"pairs/{d}/{s}": self.at("pairs", d, s) for d, s, *_ in shards if self._shards.has_pairs(d, s)}

    def answers(self, w: Any, kinds: Sequence[str], shards: Sequence[ShardOrView]) -> dict[str, str]:
        """Return the artifacts of `kinds` of the actor's shards, and their manifests, by name."""
        found = {f"{kind}/{'/'.join(shard)}": self.of_actor(kind, w, *shard) for kind in kinds for shard in shards}
        return {**self.manifests(shards), **found}

    def shard_inputs(self, w: Any, shard: ShardOrView, *, generations: bool = False) -> dict[str, str | None]:
        """Return the manifest; the pairs if the donor's image is shown; on request, the completions it is about."""
        dataset, split, condition, *view = shard
        answered = self._study.conditions[condition].completions or condition
        return {
            "manifest": self.at("manifests", dataset, split),
            "pairs": self.at("pairs", dataset, split) if self._shards.needs_pairs(condition) else None,
            "generations": self.of_actor("generations", w, dataset, split, answered) if view or generations else None,
        }

    def asked(self, w: Any, shard: ShardOrView) -> dict[str, Any]:
        """Return the fields that the specs of generation and replay of a shard, or of a view of it, have in common."""
        model = self._study.backbones[w.backbone].answering()
        return {
            **run_of(w),
            **self.same_as(w),
            "model": model,
            "shard": shard_spec(self._study, w.actor, shard),
            "states": self._shards.pass_reading(w.actor, shard),
        }

    # --- The jobs, in their order

    def build_manifest(self, w: Any) -> Description:
        """The table of questions of a split."""
        dataset = self._study.datasets[w.dataset]
        roles: Any = dataset.roles[w.split]  # dict keys are invariant: those of a study are of the narrower type
        spec = BuildManifestSpec(
            dataset=w.dataset,
            split=w.split,
            loader=plugin("datasets", dataset.loader),
            settings=dataset.settings,
            roles=roles,
            seed=dataset.seed,
            select=dataset.select,
            expect_sha256=(dataset.expect_sha256 or {}).get(w.split),
            bits=dataset.bits,
            ct_windows=dataset.ct_windows,
        )
        source = self._source_of(w.dataset, w.split)
        return {}, [self.entry(self.at("manifests", w.dataset, w.split), spec, source=source)]

    def generate(self, w: Any, shards: Sequence[ShardOrView] | None = None) -> Description:
        """An actor's answers, and its answers to views of them."""
        generation = self._study.generation
        engine = ConfiguredPlugin(module=module_of("generation", generation.engine), settings=generation.settings)
        return self.opened(w), [
            self.entry(
                self.of_shard("generations", w, shard),
                GenerateSpec(**self.asked(w, shard), engine=engine),
                **self.shard_inputs(w, shard),
            )
            for shard in (self._shards.generated(w.actor) if shards is None else shards)
        ]

    def grade(self, w: Any, shards: Sequence[ShardOrView] | None = None) -> Description:
        """Whether answers are correct."""

        def spec(shard: ShardOrView) -> GradeSpec:
            condition = self._study.conditions[shard[2]]
            contract = contract_of(self._study, w.actor, shard[0], shard[2])
            return GradeSpec(
                **run_of(w),
                **_named(shard),
                contract=plugin("contracts", contract),
                image=image_of(condition.image),
                completions=condition.completions,
            )

        return {}, [
            self.entry(self.of_actor("graded", w, *shard), spec(shard), **self.shard_inputs(w, shard, generations=True))
            for shard in (self._shards.shards(w.actor) if shards is None else shards)
        ]

    def replay(self, w: Any, shards: Sequence[ShardOrView] | None = None) -> Description:
        """The states of answers, and of views of them; what only some readers read, of answers alone."""
        replay = self._study.replay.model_copy(update={"from_": None})  # `states` says it where it counts
        optional: dict[str, Any] = {"optional_tensors": self._shards.optional_tensors(w.actor)}
        return self.opened(w), [
            self.entry(
                self.of_shard("features", w, shard),
                ReplaySpec(**self.asked(w, shard), replay=replay, **({} if len(shard) == 4 else optional)),
                **self.shard_inputs(w, shard, generations=True),
            )
            for shard in (self._shards.replayed(w.actor) if shards is None else shards)
        ]

    def fit_readers(self, w: Any, methods: Sequence[str] | None = None) -> Description:
        """The readers of an actor's answers.

        A reader sees the labels of the original questions of one split; it divides them by role itself. With the actor
        and `scoring`, its file says all that scoring a new image depends on.
        """

        def inputs(method: str) -> dict[str, str | None]:
            shard, shards = self._shards.fitted_shard(method), self._shards
            labels = {
                "manifest": self.at("manifests", *shard[:2]),
                "graded": self.of_actor("graded", w, *shard),
                **{f"view/{view}": self.of_actor("views", w, *shard, view) for view in shards.fitting_views(method)},
            }
            return {
                **(labels if shards.reads(method, "FITTED_ON") else {}),
                "features": self.of_actor("features", w, *shard) if shards.reads(method, "FEATURES") else None,
                **{f"parent/{role}": self.of_actor("readers", w, one) for role, one in shards.parents(method).items()},
            }

        return self.opened(w), [
            self.entry(
                self.of_actor("readers", w, method),
                FitReadersSpec(
                    **self._reader_of(w, method, "fit"),
                    **self.same_as(w),
                    settings=self._study.methods[method].settings,
                    examples=DatasetSplit(**_named(self._shards.fitted_shard(method)[:2])),
                    scoring=self._shards.scoring(method, w.backbone),
                ),
                **inputs(method),
            )
            for method in (self._shards.methods_of(w.actor) if methods is None else methods)
        ]

    def score_answers(
        self, w: Any, methods: Sequence[str] | None = None, splits: Collection[str] | None = None
    ) -> Description:
        """The confidences of each method; no labels."""

        def within(shards: Sequence[Any]) -> list[Any]:
            return [shard for shard in shards if splits is None or shard[1] in splits]

        def inputs(method: str) -> dict[str, str]:
            scored = within(self._shards.scored(method))
            views = {
                f"view/{view}/{'/'.join(shard)}": self.of_actor("views", w, *shard, view)
                for view in self._shards.scoring_views(method)
                for shard in scored
            }
            return {
                **(self.answers(w, ("features",), scored) if self._shards.reads(method, "FEATURES") else {}),
                **views,
            }

        return self.answers(w, ("graded",), within(self._shards.reported(w.actor))), [
            self.entry(
                self.of_actor("predictions", w, method),
                ScoreAnswersSpec(
                    **self._reader_of(w, method, "score"),
                    shards=tuple(Shard(**_named(shard)) for shard in within(self._shards.scored(method))),
                ),
                reader=self.of_actor("readers", w, method),
                **inputs(method),
            )
            for method in (self._shards.methods_of(w.actor) if methods is None else methods)
        ]

    def export_answers(
        self, w: Any, methods: Sequence[str] | None = None, splits: Collection[str] | None = None
    ) -> Description:
        """The table of all answers of a run."""
        methods = self._shards.methods_of(w.actor) if methods is None else methods
        wanted = [
            shard
            for shard in self._shards.reported(w.actor)
            if shard[2] in ("original", "donor") and (splits is None or shard[1] in splits)
        ]
        spec = ExportAnswersSpec(
            **run_of(w),
            study=self._study.study,
            methods=tuple(methods),
            splits={name: tuple(sorted({s for d, s, _ in wanted if d == name})) for name, _, _ in wanted},
            replicates=self._study.metrics.bootstrap.replicates,
        )
        names = [("predictions", w.backbone, w.actor, str(w.seed), method) for method in methods]
        inputs = {**self.answers(w, ("graded",), wanted), **self.pairs(wanted)}
        predictions = {"/".join(of): self.at(*of) for of in names}
        return {}, [self.entry(self.of_actor("answers", w), spec, **inputs, **predictions)]

    # --- Readers in specs

    def _reader_of(self, w: Any, method: str, step: str) -> dict[str, Any]:
        """Return the fields that the spec of every stage with a reader has."""
        of_parents = tuple(self._shards.views_of_parents(method)) or None
        views = tuple(self._shards.views_of(method, step))
        return {**run_of(w), "reader": self._reference(method), "views": views, "of_parents": of_parents}

    def _reference(self, method: str) -> MethodReference:
        """Return a method and those that it builds on: the code digest only covers modules that a spec names."""
        above = {role: self._reference(parent) for role, parent in self._shards.parents(method).items()}
        module = module_of("readers", self._study.methods[method].reader)
        return MethodReference(method=method, parents=above, module=module)


def _named(shard: Sequence[str]) -> Mapping[str, Any]:
    return dict(zip(_OF_SHARD, shard, strict=False))
