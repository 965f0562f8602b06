"""What the tables of questions of a study are made from: its files, its manifests, and their donors."""

from typing import Any

from dualread.schema.base import NoSpec
from dualread.schema.data import (
    BuildManifestSpec,
    DownloadDatasetSpec,
    DownloadFiles,
    DrawPhantomSpec,
    PairDonorsSpec,
)
from dualread.study.artifact_paths import ArtifactPaths, plugin
from dualread.study.jobs import Description


class DataArtifacts(ArtifactPaths):
    """The artifacts that no actor has seen."""

    def draw_phantom(self, w: Any) -> Description:
        """The files of a data set of drawn images."""
        phantom = self._study.phantoms[w.phantom]
        spec = DrawPhantomSpec(name=w.phantom, writer=plugin("writers", phantom.format), phantom=phantom)
        return {}, [self.entry(self.at("phantoms", w.phantom), spec)]

    def download_dataset(self, w: Any) -> Description:
        """The official files of a data set, from the hub.

        The job complains about a missing folder, so that a study can be planned without its data.
        """
        dataset = self._study.datasets[w.dataset]
        source: Any = dataset.source
        loader = dataset.loader
        if source.hub:
            files = DownloadFiles(
                hub=source.hub, revision=source.revision, files=tuple(self._shards.hub_files(w.dataset))
            )
            spec = DownloadDatasetSpec(loader=loader, source=files)
        else:
            spec = DownloadDatasetSpec(loader=loader, folder=self.folder(source.folder))
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
        match_on = pairing.match_on
        spec = PairDonorsSpec(dataset=w.dataset, split=w.split, match_on=match_on)
        manifest = self.at("manifests", w.dataset, w.split)
        return {}, [self.entry(self.at("pairs", w.dataset, w.split), spec, manifest=manifest)]

    def summarize_data(self, w: Any) -> Description:
        """Counts of questions, images and pairs per split."""
        return {**self.manifests(), **self.pairs()}, [self.entry(self.at("data"), NoSpec())]
