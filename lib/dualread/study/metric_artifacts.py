"""What the metrics of a study are made from: where labels meet confidences, what each cost, and the records of both."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from dualread.evaluation.side_by_side import FIXED_PREFIX
from dualread.schema.metrics import (
    CollectMetricsSpec,
    CompareMethodsSpec,
    ComputeMetricsSpec,
    ExportAnswersSpec,
    ExportRecordsSpec,
    MeasureCostsSpec,
    MeasureDifficultySpec,
    MeasureSubgroupsSpec,
)
from dualread.study.artifact_paths import ArtifactPaths, Run, run_of
from dualread.study.jobs import Description
from dualread.study.shards import Shard


def _splits_of(shards: Iterable[Shard]) -> dict[str, tuple[str, ...]]:
    """Return the splits of each data set of some shards."""
    splits: dict[str, set[str]] = {}
    for dataset, split, _ in shards:
        splits.setdefault(dataset, set()).add(split)
    return {dataset: tuple(sorted(names)) for dataset, names in splits.items()}


class MetricArtifacts(ArtifactPaths):
    """The artifacts that hold numbers."""

    def compute_metrics(self, w: Any) -> Description:
        """The metrics of each method of a run."""
        shards = self._shards.reported(w.actor)

        def spec(method: str) -> ComputeMetricsSpec:
            choices = self._shards.choices_of(method) if self._study.metrics.miss_percent else None
            return ComputeMetricsSpec(
                **run_of(w),
                method=method,
                uncalibrated=True if method in self._shards.uncalibrated else None,
                study=self._study.study,
                splits=_splits_of(shards),
                metrics=self._study.metrics,
                choices=choices,
                subgroups=tuple(self._study.subgroups) if choices and self._study.subgroups else None,
                thresholds_from=f"{self._shards.in_distribution}/validation",
            )

        def choices(method: str) -> dict[str, str]:
            view = spec(method).choices
            asked = [shard for shard in shards if view and shard[2] == "original"]
            return {f"view/{view}/{'/'.join(shard)}": self.of_actor("views", w, *shard, str(view)) for shard in asked}

        reports = [shard for shard in shards if self._shards.has_claims(shard[0])]
        asked_pairs = {f"asked_{name}": pairs for name, pairs in self.pairs(reports).items()}
        return {**self._judged(w, shards), **asked_pairs, **self._compared(w, shards)}, [
            self.entry(
                self.of_actor("metrics", w, method),
                spec(method),
                predictions=self.of_actor("predictions", w, method),
                **choices(method),
            )
            for method in self._shards.methods_of(w.actor)
        ]

    def _compared(self, w: Any, shards: Sequence[Shard]) -> dict[str, str]:
        """Return the answers of the actor that answers are compared with, of the same seed if it has that.

        Two reports have no claims in common.
        """
        if (actor := self._study.metrics.changed_from) is None:
            return {}
        run = Run(w.backbone, actor, self.seed_of(w, actor))
        return {
            f"compared/{dataset}/{split}/{condition}": self.of_actor("graded", run, dataset, split, condition)
            for dataset, split, condition in shards
            if condition == "original" and not self._shards.has_claims(dataset)
        }

    def measure_subgroups(self, w: Any) -> Description:
        """The metrics of each method of a run on groups of answers, and what chooses their thresholds."""
        chosen_on = (self._shards.in_distribution, "validation")
        shards = [shard for shard in self._judged_shards(w.actor) if shard[1] == "test" or shard[:2] == chosen_on]
        spec: dict[str, Any] = {
            **run_of(w),
            "study": self._study.study,
            "subgroups": tuple(self._study.subgroups or ()),
            "datasets": tuple(
                dataset for dataset, split, condition in shards if (split, condition) == ("test", "original")
            ),
            "metrics": self._study.metrics,
            "thresholds_from": chosen_on[0],
        }
        return self._judged(w, shards), [
            self.entry(
                self.of_actor("subgroups", w, method),
                MeasureSubgroupsSpec(
                    **spec, method=method, uncalibrated=True if method in self._shards.uncalibrated else None
                ),
                predictions=self.of_actor("predictions", w, method),
            )
            for method in self._shards.methods_of(w.actor)
        ]

    def _judged(self, w: Any, shards: Sequence[Shard]) -> dict[str, str]:
        """Return what a run's confidences are joined with: grades, pairs and, of reports, the table of questions."""
        reports = (shard[:2] for shard in shards if self._shards.has_claims(shard[0]))
        questions = {f"questions/{dataset}/{split}": self.at("manifests", dataset, split) for dataset, split in reports}
        return {**self.answers(w, ("graded",), shards), **self.judged_pairs(w, shards), **questions}

    def _judged_shards(self, actor: str) -> list[Shard]:
        """Return an actor's answers, and those on donors' images that pairs are of."""
        return [
            shard
            for shard in self._shards.reported(actor)
            if shard[2] in ("original", FIXED_PREFIX if self._shards.has_claims(shard[0]) else "donor")
        ]

    def measure_costs(self, w: Any) -> Description:
        """What each method costs, counted on the in-distribution test answers."""
        shards, shard = self._shards, (self._shards.in_distribution, "test", "original")
        claims = {"claims": self.judged(w, *shard[:2])} if shards.has_claims(shard[0]) else {}
        return {"generations": self.of_actor("generations", w, *shard), **claims}, [
            self.entry(
                self.of_actor("costs", w, method),
                MeasureCostsSpec(
                    **run_of(w),
                    method=method,
                    dataset=shard[0],
                    split=shard[1],
                    samples=shards.samples_of(method),
                    draws=shards.draws_of(method),
                    passes=shards.passes_of(method),
                    states="generation" if shards.keeps_states(method) else None,
                    transfer=self.applied(w, method),
                ),
                reader=self.reader_of(w, method),
                **{f"view/{view}": self.of_actor("views", w, *shard, view) for view in shards.scoring_views(method)},
            )
            for method in shards.methods_of(w.actor)
        ]

    def collect_metrics(self, w: Any) -> Description:
        """The metrics of all actors, or of one alone: tables about one actor do not wait for the others."""
        actor = w.get("actor")
        actors = [actor] if actor else self._shards.answering
        # Nobody here has made given answers, so that nothing says what they cost.
        measured = [name for name in actors if name not in self._shards.given]
        inputs = {**self._of_methods("metrics", actors), **self._of_methods("costs", measured)}
        output = self.at("metrics_of", actor) if actor else self.at("metrics")
        return inputs, [self.entry(output, CollectMetricsSpec(**self._tables.ood_means()))]

    def compare_methods(self, w: Any) -> Description:
        """Differences of methods, of all actors, as tables ask; or of one alone, with its nulls, for a figure."""
        if actor := w.get("actor"):
            source, output, actors = self.at("metrics_of", actor), self.at("contrasts_of", actor), [actor]
            nulls = self._shards.nulls_of(actor)
            judged = [method for method in self._shards.methods_of(actor) if method not in nulls]
            contrasts = self._tables.against(nulls, judged)
        else:
            source, output, actors = self.at("metrics"), self.at("contrasts"), self._shards.answering
            contrasts = self._tables.contrasts()
        inputs = {"metrics": source, **self._of_methods("metrics", actors, name="replicates")}
        spec = CompareMethodsSpec(study=self._study.study, **self._tables.ood_means(), contrasts=tuple(contrasts))
        return inputs, [self.entry(output, spec)]

    def measure_difficulty(self, w: Any) -> Description:
        """Whether confidences follow the known difficulty of drawn images, of the in-distribution test set."""
        shard = (self._shards.in_distribution, "test", "original")
        methods, runs = self._shards.methods_of(w.actor), self.runs([w.actor])
        inputs = {
            "truth": self.at("phantoms", self._study.datasets[shard[0]].source.phantom),
            "manifest": self.at("manifests", *shard[:2]),
            **self.named(("graded", *run.names, *shard) for run in runs),
            **self.named(("predictions", *run.names, method) for run in runs for method in methods),
        }
        spec = MeasureDifficultySpec(
            study=self._study.study,
            dataset=shard[0],
            split=shard[1],
            actor=w.actor,
            seeds={backbone: tuple(self._shards.seeds(backbone, w.actor)) for backbone in self._study.backbones},
            methods=tuple(methods),
            nulls=tuple(self._shards.nulls_of(w.actor)),
            replicates=self._study.metrics.bootstrap.replicates,
        )
        return inputs, [self.entry(self.at("difficulty", w.actor), spec)]

    def export_records(self, w: Any) -> Description:
        """The two tables that the reported numbers rest on."""
        paired = tuple(name for name, dataset in self._study.datasets.items() if dataset.pairing)
        spec = ExportRecordsSpec(domains=tuple(self._study.datasets), ccg_domains=paired)
        return {"metrics": self.at("metrics")}, [self.entry(self.at("records"), spec)]

    def export_answers(
        self,
        w: Any,
        runs: Sequence[Run] | None = None,
        methods: Sequence[str] | None = None,
        splits: Collection[str] | None = None,
    ) -> Description:
        """The table of all answers of each run: of all runs together, because each takes a moment."""
        return {}, [self._answers(run, methods, splits) for run in (self.runs() if runs is None else runs)]

    def _of_methods(self, kind: str, actors: Iterable[str], name: str | None = None) -> dict[str, str]:
        """Return the artifacts of `kind` of all methods of actors, as inputs that begin with `name`."""
        return {
            f"{name or kind}/{run.backbone}/{run.actor}/{run.seed}/{method}": self.of_actor(kind, run, method)
            for run in self.runs(actors)
            for method in self._shards.methods_of(run.actor)
        }

    def _answers(self, run: Run, methods: Sequence[str] | None, splits: Collection[str] | None) -> dict[str, Any]:
        """Return the table of all answers of a run, one entry of its job."""
        methods = self._shards.methods_of(run.actor) if methods is None else methods
        shards = [shard for shard in self._judged_shards(run.actor) if splits is None or shard[1] in splits]
        spec = ExportAnswersSpec(
            **run_of(run),
            study=self._study.study,
            methods=tuple(methods),
            splits=_splits_of(shards),
            replicates=self._study.metrics.bootstrap.replicates,
            uncalibrated=tuple(name for name in methods if name in self._shards.uncalibrated) or None,
            subgroups=tuple(self._study.subgroups) if self._study.subgroups else None,
        )
        predictions = self.named(("predictions", *run.names, method) for method in methods)
        inputs = {**self.answers(run, ("graded",), shards), **self.judged_pairs(run, shards), **predictions}
        return self.entry(self.of_actor("answers", run), spec, **inputs)
