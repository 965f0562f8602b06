"""The jobs of a study in memory: for each stage, in order, the artifacts that are needed, as `study.artifacts` says.

Nothing here computes. Only the parts of the examples that something needs are asked.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from dualread.apps.answer.study import ACTOR, BACKBONE, DATASET, SEED
from dualread.schema.base import NoSpec
from dualread.schema.study import Config
from dualread.store.job import Entry
from dualread.study.artifact_paths import Run
from dualread.study.artifacts import StudyArtifacts
from dualread.study.jobs import Description
from dualread.study.shards import Shard, ShardOrView, StudyShards

_RUN = Run(BACKBONE, ACTOR, SEED)
Job = tuple[str, list[Entry]]


class _Split:
    """The wildcards of the job that makes a manifest."""

    def __init__(self, split: str) -> None:
        self.dataset, self.split = DATASET, split


class Jobs:
    """The jobs of one study.

    Needed examples are in a folder per split, `sources`; answers to `splits` by `methods` are wanted, and others only
    where these build on them. Artifacts are linked below `out`. `uncalibrated` as in `StudyShards`.
    """

    def __init__(
        self,
        study: Config,
        sources: Mapping[str, Path],
        splits: Collection[str],
        methods: Sequence[str],
        out: Path,
        uncalibrated: Mapping[str, str] | None = None,
    ) -> None:
        self._study, self._sources, self._splits, self._wanted, self._out = study, sources, splits, methods, out
        self._shards = StudyShards(study, uncalibrated)
        self._methods = list(study.methods)
        self._artifacts = StudyArtifacts(study, self._shards, str(out), lambda _, split: str(sources[split]))

    @property
    def answers(self) -> Path:
        """The folder of the tables of answers, which the last job makes."""
        return Path(self._artifacts.of_actor("answers", _RUN)).parent

    def predictions(self, method: str) -> Path:
        """Return the table of a method's confidences, which says why where there are none."""
        return Path(self._artifacts.of_actor("predictions", _RUN, method)).with_name("predictions.parquet")

    def manifest(self, split: str) -> Path:
        """Return the table of the questions of a split."""
        return Path(self._artifacts.at("manifests", DATASET, split)).with_name("manifest.parquet")

    def claims(self, split: str) -> Path:
        """Return the table of the claims of the reports of a split."""
        return Path(self._artifacts.of_actor("graded", _RUN, DATASET, split, "original")).with_name("claims.parquet")

    def __iter__(self) -> Iterator[Job]:
        """Yield stage and entries of each job, in order."""
        artifacts, shards, wanted = self._artifacts, self._shards, {"methods": self._wanted, "splits": self._splits}
        manifests = [entry for split in self._sources for entry in artifacts.build_manifest(_Split(split))[1]]
        yield "build_manifest", _entries(({}, manifests))
        if len(self._sources) > 1:
            leakage = artifacts.manifests((DATASET, split) for split in sorted(self._sources))
            yield "check_leakage", _entries((leakage, [artifacts.entry(artifacts.at("leakage"), NoSpec())]))
        yield "copy_checkpoint", _entries(artifacts.copy_checkpoint(_RUN))
        yield "probe_checkpoint", _entries(artifacts.probe_checkpoint(_RUN))
        yield "generate", _entries(artifacts.generate(_RUN, self._asked(shards.generated(ACTOR))))
        yield "grade", _entries(artifacts.grade(_RUN, self._asked(shards.shards(ACTOR))))
        if self._shards.has_claims(DATASET):
            reports = self._artifacts.list_claims(_RUN, self._asked(shards.of_reports(ACTOR)))
            yield "list_claims", _entries(reports)
        if grouped := self._asked(shards.grouped(ACTOR)):
            yield "group_answers", _entries(artifacts.group_answers(_RUN, grouped))
        of_states = [method for method in self._methods if shards.reads(method, "FEATURES")]
        read = {shard for method in of_states for shard in (*self._scored(method), shards.fitted_shard(method))}
        replayed = [s for s in self._asked(shards.replayed(ACTOR)) if len(s) == 4 or s in read]
        if replayed:
            yield "replay", _entries(artifacts.replay(_RUN, replayed))
        yield "fit_readers", _entries(artifacts.fit_readers(_RUN, self._methods))
        yield "score_answers", _entries(artifacts.score_answers(_RUN, **wanted))
        yield "export_answers", _entries(artifacts.export_answers(_RUN, runs=[_RUN], **wanted))

    def _scored(self, method: str) -> list[Shard]:
        wanted = self._splits if method in self._wanted else ()
        return [shard for shard in self._shards.scored(method) if shard[1] in wanted]

    def _asked(self, shards: Sequence[ShardOrView]) -> list[ShardOrView]:
        """Return those of the shards and views that something reads, in their order."""
        views = {
            (*shard, view)
            for method in self._methods
            for views, of_step in (
                (self._shards.scoring_views(method), self._scored(method)),
                (self._shards.fitting_views(method), [self._shards.fitted_shard(method)]),
            )
            for view in views
            for shard in of_step
        }
        return [shard for shard in shards if shard[1] in self._sources and (len(shard) == 3 or shard in views)]


def _entries(described: Description) -> list[Entry]:
    inputs, entries = described
    return [Entry.of(entry, inputs) for entry in entries]
