"""Where the artifacts of a study are, and what the jobs that make them have in common."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread.digests import MANIFEST_NAME
from dualread.schema.base import Section
from dualread.schema.data import plugin_and_settings
from dualread.schema.readers import AppliedReader
from dualread.schema.study import Config
from dualread.study.asked import shard_spec
from dualread.study.shards import ShardOrView, StudyShards
from dualread.study.tables import StudyTables


@dataclass(frozen=True)
class Run:
    """The wildcards of a job about an actor."""

    backbone: str
    actor: str
    seed: int | str

    @property
    def names(self) -> tuple[str, str, int | str]:
        """The three names."""
        return self.backbone, self.actor, self.seed


def run_of(w: Any) -> dict[str, Any]:
    """Return the fields that say whose run a spec is about."""
    return {"backbone": w.backbone, "actor": w.actor, "seed": int(w.seed)}


def shard_fields(shard: Sequence[str]) -> Mapping[str, Any]:
    """Return the fields that say which shard, or which split, a spec is about."""
    return dict(zip(("dataset", "split", "condition"), shard, strict=False))


class ArtifactPaths:
    """The paths of the artifacts of one study, in the folder `root`.

    `source_of` returns where the official files of a split are. Folders in the study are relative to the `repository`.
    """

    def __init__(
        self,
        study: Config,
        shards: StudyShards,
        root: str,
        source_of: Callable[[str, str], str],
        repository: str | Path = ".",
    ) -> None:
        self._study, self._shards, self._root, self._source_of = study, shards, root, source_of
        self._tables, self._repository = StudyTables(study), Path(repository)

    # --- Where everything is

    def at(self, *names: object) -> str:
        """Return the file of an artifact that Snakemake tracks; the artifact itself is the folder."""
        return "/".join((self._root, *map(str, names), MANIFEST_NAME))

    def named(self, paths: Iterable[Sequence[object]]) -> dict[str, str]:
        """Return artifacts by their paths, as inputs."""
        return {"/".join(map(str, path)): self.at(*path) for path in paths}

    def of_actor(self, kind: str, w: Any, *names: str) -> str:
        """Return an artifact of an actor."""
        return self.at(kind, w.backbone, w.actor, w.seed, *names)

    def of_shard(self, kind: str, w: Any, shard: ShardOrView) -> str:
        """Return the artifact of `kind` of a shard; those of views are in one folder, whatever stage makes them."""
        return self.of_actor("views" if len(shard) == 4 else kind, w, *shard)

    def entry(self, output: str, spec: Section, **inputs: str | None) -> dict[str, Any]:
        """Return one artifact of a job; an input that is None is none."""
        present = {name: path for name, path in inputs.items() if path}
        return {"spec": spec.to_spec(), "inputs": present, "output": output.removesuffix(f"/{MANIFEST_NAME}")}

    def folder(self, path: str) -> str:
        """Return a folder that the study names, as seen from the working folder."""
        return os.path.relpath(self._repository / path)

    # --- What jobs have in common

    def runs(self, actors: Iterable[str] | None = None) -> list[Run]:
        """Return the runs of actors, by default of all whose answers are read."""
        actors = self._shards.answering if actors is None else list(actors)
        return [
            Run(backbone, actor, seed)
            for backbone in self._study.backbones
            for actor in actors
            for seed in self._shards.seeds(backbone, actor)
        ]

    def checkpoint_of(self, w: Any) -> str:
        """Return the actor's checkpoint; the description of a service where answers are given."""
        return self.at("actors", w.backbone, self._shards.checkpoint_of(w.actor), w.seed)

    def facts_of(self, w: Any) -> str:
        """Return the facts of an actor's checkpoint, or of the one that it is trained from."""
        actor, base = self._shards.checkpoint_of(w.actor), self._shards.base
        if actor in self._shards.given:
            return self.of_actor("actors", w)
        has_facts = actor == base or self._study.actors[actor].checkpoints
        return self.at("facts", w.backbone, actor, w.seed) if has_facts else self.at("facts", w.backbone, base, 0)

    def opened(self, w: Any) -> dict[str, str]:
        """Return the inputs of a job that opens an actor."""
        return {"actor": self.checkpoint_of(w), "facts": self.facts_of(w)}

    def same_as(self, w: Any) -> dict[str, Any]:
        """Return the field that the specs of stages have that read this checkpoint."""
        return {"same_as": self._study.actors[w.actor].same_as}

    def manifests(self, shards: Iterable[ShardOrView] | None = None) -> dict[str, str]:
        """Return the manifests of shards, by default of all splits, by name."""
        shards = self._splits() if shards is None else shards
        return {f"manifest/{d}/{s}": self.at("manifests", d, s) for d, s, *_ in shards}

    def pairs(self, shards: Iterable[ShardOrView] | None = None) -> dict[str, str]:
        """Return the donors of those shards, by default of all splits, that have some, by name."""
        shards = self._splits() if shards is None else shards
        return {f"pairs/{d}/{s}": self.at("pairs", d, s) for d, s, *_ in shards if self._shards.has_pairs(d, s)}

    def answers(self, w: Any, kinds: Sequence[str], shards: Sequence[ShardOrView]) -> dict[str, str]:
        """Return the artifacts of `kinds` of the actor's shards, and the tables of what is judged there, by name."""
        artifacts = {f"{kind}/{'/'.join(shard)}": self.of_actor(kind, w, *shard) for kind in kinds for shard in shards}
        return {**{f"manifest/{d}/{s}": self.judged(w, d, s) for d, s, *_ in shards}, **artifacts}

    def judged(self, w: Any, dataset: str, split: str) -> str:
        """Return the table of what an actor's grades and confidences are about: questions, or the claims of reports."""
        if self._shards.has_claims(dataset):
            return self.of_actor("claims", w, dataset, split)
        return self.at("manifests", dataset, split)

    def judged_pairs(self, w: Any, shards: Iterable[ShardOrView]) -> dict[str, str]:
        """Return the pairs of what is judged, by name: those of claims exist where reports are forced on donors."""
        paired, shards = {}, list(shards)
        for dataset, split in {shard[:2]: None for shard in shards if self._shards.has_claims(shard[0])}:
            if self._shards.forced_on_donors(w.actor, dataset, split):
                paired[f"pairs/{dataset}/{split}"] = self.judged(w, dataset, split)
        return {**self.pairs(shard for shard in shards if not self._shards.has_claims(shard[0])), **paired}

    def seed_of(self, w: Any, actor: str) -> int:
        """Return the seed of another actor that goes with a run: the same one, or its first if it lacks that."""
        seeds = self._shards.seeds(w.backbone, actor)
        return int(w.seed) if int(w.seed) in seeds else seeds[0]

    def applied(self, w: Any, method: str) -> AppliedReader | None:
        """Return the reader that a transfer applies to the answers of a run; None for other methods."""
        transfer = self._study.methods[method].transfer
        if transfer is None:
            return None
        actor = self._study.methods[transfer.method].actor
        seeds, seed = self._shards.seeds(w.backbone, actor), self.seed_of(w, actor)
        if transfer.seed == "next":
            seed = seeds[(seeds.index(seed) + 1) % len(seeds)]
        return AppliedReader(method=transfer.method, actor=actor, seed=seed)

    def reader_of(self, w: Any, method: str) -> str:
        """Return the reader with which a method judges the answers of a run."""
        if (other := self.applied(w, method)) is None:
            return self.of_actor("readers", w, method)
        return self.at("readers", w.backbone, other.actor, other.seed, other.method)

    def shard_inputs(self, w: Any, shard: ShardOrView, *, generations: bool = False) -> dict[str, str | None]:
        """Return the manifest; the pairs if the donor's image is shown; on request, the completions it is about."""
        dataset, split, condition, *view = shard
        answered = self._study.conditions[condition].completions or condition
        return {
            "manifest": self.at("manifests", dataset, split),
            "pairs": self.at("pairs", dataset, split) if self._shards.needs_pairs(condition) else None,
            "generations": self.of_actor("generations", w, dataset, split, answered) if view or generations else None,
        }

    def claim_tables(self, dataset: str, *kinds: str) -> dict[str, str]:
        """Return the tables that the plugins of `kinds` (spans, labels) read, of a data set of reports, by name."""
        claims = self._study.datasets[dataset].claims
        chosen = {kind: plugin_and_settings(getattr(claims, kind))[1] for kind in kinds if claims is not None}
        return {kind: self.folder(settings["path"]) for kind, settings in chosen.items() if settings.get("path")}

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

    def _splits(self) -> list[ShardOrView]:
        return [(name, split) for name, dataset in self._study.datasets.items() for split in dataset.splits]
