# Manifests: the table of questions of each split, one row per question, frozen before any model runs.
#
# REQUIRES nothing, a raw folder, or the hub
# PROVIDES results/<study>/manifests/<dataset>/<split>/ and results/<study>/leakage/

from dualread.schema.data import DownloadDatasetSpec, DownloadFiles, DrawPhantomSpec
from dualread.schema.base import NoSpec

EVERYTHING = [(name, split) for name, dataset in STUDY.datasets.items() for split in dataset.splits]


def draw_phantom(w):
    phantom = STUDY.phantoms[w.phantom]
    spec = DrawPhantomSpec(name=w.phantom, writer=plugin("writers", phantom.format), phantom=phantom)
    return {}, [entry(artifact("phantoms", w.phantom), spec)]


def download_dataset(w):
    """This job complains about a missing folder, so that a study can be planned without its data."""
    source, loader = STUDY.datasets[w.dataset].source, STUDY.datasets[w.dataset].loader
    if source.hub:
        files = DownloadFiles(hub=source.hub, revision=source.revision, files=tuple(SHARDS.hub_files(w.dataset)))
        spec = DownloadDatasetSpec(loader=loader, source=files)
    else:
        spec = DownloadDatasetSpec(loader=loader, folder=folder_of(source))
    return {}, [entry(artifact("downloads", w.dataset), spec)]


def check_leakage(w):
    """What is true of all data sets is true of those that a selection leaves."""
    return ARTIFACTS.manifests(EVERYTHING), [{**entry(artifact("leakage"), NoSpec()), "parts": True}]


stage(draw_phantom, artifact("phantoms", "{phantom}"), local=True)


stage(download_dataset, artifact("downloads", "{dataset}"), local=True)


stage(ARTIFACTS.build_manifest, artifact("manifests", "{dataset}", "{split}"))


# Fails and names the images if an image that something is fitted on has a second role.
stage(check_leakage, artifact("leakage"))
