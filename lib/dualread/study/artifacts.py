"""What the artifacts of a study are made from: the one description of its jobs.

rules/*.smk make rules of it, and `dualread.confidences` runs the same jobs in memory. A job has the inputs that its
entries share, and the entries: one artifact each, with its `spec`, which is all that it depends on besides inputs and
code.

A method has the name of its stage. `w` has the wildcards of a job, such as `dataset` and `split`, or `backbone`,
`actor` and `seed`. Whoever needs a part of a job's artifacts alone names the shards or methods. Here are the jobs about
data, about answers and about the readers of them; those of the other phases are in the modules of the base classes.
"""

from collections.abc import Collection, Sequence
from typing import Any

from dualread.evaluation.side_by_side import FIXED_PREFIX
from dualread.plugins import module_of
from dualread.schema.answers import (
    DescribeServiceSpec,
    GenerateSpec,
    GradeSpec,
    ReadAnswersSpec,
    ReadLikelihoodsSpec,
    ReplaySpec,
    Shard,
)
from dualread.schema.base import DatasetSplit, NoSpec
from dualread.schema.data import (
    BuildManifestSpec,
    DownloadDatasetSpec,
    DownloadFiles,
    DrawPhantomSpec,
    ListClaimsSpec,
    PairDonorsSpec,
)
from dualread.schema.groups import GroupAnswersSpec
from dualread.schema.readers import FitReadersSpec, MethodReference, ScoreAnswersSpec
from dualread.study.artifact_paths import run_of, shard_fields
from dualread.study.asked import claims_of, configured, contract_of, image_of, plugin, shard_spec
from dualread.study.checkpoint_artifacts import CheckpointArtifacts
from dualread.study.jobs import Description
from dualread.study.metric_artifacts import MetricArtifacts
from dualread.study.shards import ShardOrView
from dualread.study.table_artifacts import TableArtifacts


class StudyArtifacts(CheckpointArtifacts, MetricArtifacts, TableArtifacts):
    """The artifacts of one study."""

    # --- Data

    def draw_phantom(self, w: Any) -> Description:
        """The files of a data set of drawn images."""
        phantom = self._study.phantoms[w.phantom]
        spec = DrawPhantomSpec(name=w.phantom, writer=plugin("writers", phantom.format), phantom=phantom)
        return {}, [self.entry(self.at("phantoms", w.phantom), spec)]

    def download_dataset(self, w: Any) -> Description:
        """The official files of a data set, from the hub.

        The job complains about a missing folder, so that a study can be planned without its data.
        """
        loader, source = self._study.datasets[w.dataset].loader, self._study.datasets[w.dataset].source
        if source.hub and source.revision:
            patterns = tuple(self._shards.hub_files(w.dataset))
            files = DownloadFiles(hub=source.hub, revision=source.revision, files=patterns)
            spec = DownloadDatasetSpec(loader=loader, source=files)
        else:
            spec = DownloadDatasetSpec(loader=loader, folder=self.folder(source.folder or ""))
        return {}, [self.entry(self.at("downloads", w.dataset), spec)]

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
            resample=self._study.resample,
        )
        source = self._source_of(w.dataset, w.split)
        return {}, [self.entry(self.at("manifests", w.dataset, w.split), spec, source=source)]

    def check_leakage(self, w: Any) -> Description:
        """Whether an image that something is fitted on has a second role.

        What is true of all data sets is true of those that a selection leaves.
        """
        return self.manifests(), [{**self.entry(self.at("leakage"), NoSpec()), "parts": True}]

    def pair_donors(self, w: Any) -> Description:
        """The donors of a split: the same question about another image."""
        pairing: Any = self._study.datasets[w.dataset].pairing
        spec = PairDonorsSpec(dataset=w.dataset, split=w.split, match_on=pairing.match_on, role=pairing.role)
        manifest = self.at("manifests", w.dataset, w.split)
        return {}, [self.entry(self.at("pairs", w.dataset, w.split), spec, manifest=manifest)]

    def summarize_data(self, w: Any) -> Description:
        """Counts of questions, images and pairs per split."""
        return {**self.manifests(), **self.pairs()}, [self.entry(self.at("data"), NoSpec())]

    # --- Answers

    def generate(self, w: Any, shards: Sequence[ShardOrView] | None = None) -> Description:
        """An actor's answers, and its answers to views of them."""
        generation = self._study.generation
        engine = configured("generation", generation.engine, generation.settings)
        return self.opened(w), [
            self.entry(
                self.of_shard("generations", w, shard),
                GenerateSpec(**self.asked(w, shard), engine=engine),
                **self.shard_inputs(w, shard),
            )
            for shard in (self._shards.generated(w.actor) if shards is None else shards)
        ]

    def describe_service(self, w: Any) -> Description:
        """The service that gives an actor's answers, in the place of a checkpoint."""
        model, left_out = self._shards.service(w.backbone, w.actor).model, self._study.left_out.get(w.actor, {})
        spec = DescribeServiceSpec(**run_of(w), model=model, left_out=left_out)
        return {}, [self.entry(self.of_actor("actors", w), spec)]

    def read_answers(self, w: Any) -> Description:
        """The answers of a service, and its answers to views of them, of the responses in a raw folder.

        Each entry names the folder, because the raw folders of entries alone are tracked.
        """
        answers: Any = self._study.actors[w.actor].answers  # only actors of given answers have this job
        responses = self.folder(f"{answers.folder}/responses")
        return {}, [
            self.entry(
                self.of_shard("generations", w, shard),
                ReadAnswersSpec(
                    **run_of(w),
                    service=self._shards.service(w.backbone, w.actor),
                    shard=shard_spec(self._study, w.actor, shard),
                ),
                responses=responses,
                **self.shard_inputs(w, shard),
            )
            for shard in self._shards.generated(w.actor)
        ]

    def read_likelihoods(self, w: Any) -> Description:
        """The likelihoods of the answers of a service, in the place of a replay."""
        return {"actor": self.of_actor("actors", w)}, [
            self.entry(
                self.of_shard("features", w, shard),
                ReadLikelihoodsSpec(**run_of(w), shard=shard_spec(self._study, w.actor, shard)),
                generations=self.of_shard("generations", w, shard),
            )
            for shard in self._shards.replayed(w.actor)
        ]

    def grade(self, w: Any, shards: Sequence[ShardOrView] | None = None) -> Description:
        """Whether answers are correct."""

        def spec(shard: ShardOrView) -> GradeSpec:
            condition = self._study.conditions[shard[2]]
            contract = contract_of(self._study, w.actor, shard[0], shard[2])
            return GradeSpec(
                **run_of(w),
                **shard_fields(shard),
                contract=plugin("contracts", contract),
                image=image_of(condition.image),
                completions=condition.completions,
                claims=claims_of(self._study, w.actor, shard),
            )

        def inputs(shard: ShardOrView) -> dict[str, str | None]:
            forced = self._study.conditions[shard[2]].completions if self._shards.has_claims(shard[0]) else None
            return {
                **self.shard_inputs(w, shard, generations=True),
                **self.claim_tables(shard[0], "spans", "labels"),
                "original": self.of_actor("graded", w, *shard[:2], forced) if forced else None,
            }

        # Later entries may read what earlier ones have written: claims are forced that have a label.
        graded = self._shards.shards(w.actor) if shards is None else shards
        graded = sorted(graded, key=lambda shard: inputs(shard)["original"] is not None)
        return {}, [self.entry(self.of_actor("graded", w, *shard), spec(shard), **inputs(shard)) for shard in graded]

    def list_claims(self, w: Any, shards: Sequence[ShardOrView] | None = None) -> Description:
        """The labeled claims of an actor's reports, in the place of questions, and their donor pairs."""

        def inputs(dataset: str, split: str) -> dict[str, str]:
            graded = {"graded": self.of_actor("graded", w, dataset, split, "original")}
            if self._shards.forced_on_donors(w.actor, dataset, split):
                graded |= {f"graded/{FIXED_PREFIX}": self.of_actor("graded", w, dataset, split, FIXED_PREFIX)}
                graded |= {"pairs": self.at("pairs", dataset, split)}
            return {"manifest": self.at("manifests", dataset, split), **graded}

        return {}, [
            self.entry(
                self.of_actor("claims", w, *shard[:2]),
                ListClaimsSpec(**run_of(w), **shard_fields(shard[:2])),
                **inputs(*shard[:2]),
            )
            for shard in (self._shards.of_reports(w.actor) if shards is None else shards)
        ]

    def group_answers(self, w: Any, shards: Sequence[ShardOrView] | None = None) -> Description:
        """Which of an actor's answers mean the same."""

        def entry(shard: ShardOrView) -> dict[str, Any]:
            groups: Any = self._study.views[shard[3]].groups  # only such views are made here
            return self.entry(
                self.of_shard("views", w, shard),
                GroupAnswersSpec(
                    **shard_fields((*shard[:2], "/".join(shard[2:]))),
                    groups=groups,
                    grader=groups.grader and plugin("graders", groups.grader),
                ),
                manifest=self.judged(w, *shard[:2]),
                graded=self.of_actor("graded", w, *shard[:3]),
                source=self.folder(groups.source.folder) if groups.source and not groups.source.hub else None,
                responses=groups.service and self.folder(f"{groups.service.folder}/responses"),
                **{f"view/{name}": self.of_actor("views", w, *shard[:3], name) for name in groups.of},
            )

        return {}, [entry(shard) for shard in (self._shards.grouped(w.actor) if shards is None else shards)]

    def replay(self, w: Any, shards: Sequence[ShardOrView] | None = None) -> Description:
        """The states of answers, and of views of them; what only some readers read, of answers alone."""
        replay = self._study.replay.model_copy(update={"from_": None})  # `states` says it where it counts
        optional: dict[str, Any] = {"optional_tensors": self._shards.optional_tensors(w.actor)}

        def entry(shard: ShardOrView) -> dict[str, Any]:
            claims = claims_of(self._study, w.actor, shard)
            further = {**({} if len(shard) == 4 else optional), "spans": claims and claims.spans}
            return self.entry(
                self.of_shard("features", w, shard),
                ReplaySpec(**self.asked(w, shard), replay=replay, **further),
                **self.shard_inputs(w, shard, generations=True),
                **self.claim_tables(shard[0], "spans"),
            )

        return self.opened(w), [
            entry(shard) for shard in (self._shards.replayed(w.actor) if shards is None else shards)
        ]

    # --- Readers

    def fit_readers(self, w: Any, methods: Sequence[str] | None = None) -> Description:
        """The readers of an actor's answers.

        A reader sees the labels of the original questions of one split; it divides them by role itself. With the actor
        and `scoring`, its file says all that scoring a new image depends on.
        """

        def inputs(method: str) -> dict[str, str | None]:
            shard, shards = self._shards.fitted_shard(method), self._shards
            labels = {
                "manifest": self.judged(w, *shard[:2]),
                "graded": self.of_actor("graded", w, *shard),
                **{f"view/{view}": self.of_actor("views", w, *shard, view) for view in shards.fitting_views(method)},
            }
            return {
                **(labels if shards.reads(method, "FITTED_ON") else {}),
                "features": self.of_actor("features", w, *shard) if shards.reads(method, "FEATURES") else None,
                **{f"parent/{role}": self.of_actor("readers", w, m) for role, m in shards.parents(method).items()},
            }

        return self.opened(w), [
            self.entry(
                self.of_actor("readers", w, method),
                FitReadersSpec(
                    **self._reader_of(w, method, "fit"),
                    **self.same_as(w),
                    settings=self._study.methods[method].settings,
                    examples=DatasetSplit(**shard_fields(self._shards.fitted_shard(method)[:2])),
                    scoring=self._shards.scoring(method, w.backbone),
                    uncalibrated=True if method in self._shards.uncalibrated else None,
                ),
                **inputs(method),
            )
            for method in (self._shards.fitted_methods(w.actor) if methods is None else methods)
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
                    shards=tuple(Shard(**shard_fields(shard)) for shard in within(self._shards.scored(method))),
                    uncalibrated=True if method in self._shards.uncalibrated else None,
                    transfer=self.applied(w, method),
                ),
                reader=self.reader_of(w, method),
                **inputs(method),
            )
            for method in (self._shards.methods_of(w.actor) if methods is None else methods)
        ]

    def _reader_of(self, w: Any, method: str, step: str) -> dict[str, Any]:
        """Return the fields that the spec of every stage with a reader has."""
        views, others = self._shards.views_of(method, step), self._shards.views_of_parents(method)
        if step == "fit":  # and those by which the training answers are labeled
            others += [view for view in self._shards.fitting_views(method) if view not in (*views, *others)]
        return {
            **run_of(w),
            "reader": self._reference(method),
            "views": tuple(views),
            "of_parents": tuple(others) or None,
        }

    def _reference(self, method: str) -> MethodReference:
        """Return a method and those that it builds on: the code digest only covers modules that a spec names."""
        above = {role: self._reference(parent) for role, parent in self._shards.parents(method).items()}
        module = module_of("readers", self._study.methods[method].reader)
        return MethodReference(method=method, parents=above, module=module)
