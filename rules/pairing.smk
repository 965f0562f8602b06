# Donors: the same question, another image, another gold answer; frozen before any confidence exists.
#
# REQUIRES results/<study>/manifests/<dataset>/<split>/
# PROVIDES results/<study>/pairs/<dataset>/<split>/ and results/<study>/data/


from dualread.schema.data import PairDonorsSpec
from dualread.schema.base import NoSpec


def pair_donors(w):
    spec = PairDonorsSpec(dataset=w.dataset, split=w.split, match_on=STUDY.datasets[w.dataset].pairing.match_on)
    return {}, [entry(artifact("pairs", w.dataset, w.split), spec, manifest=artifact("manifests", w.dataset, w.split))]


def summarize_data(w):
    return {**ARTIFACTS.manifests(EVERYTHING), **ARTIFACTS.pairs(EVERYTHING)}, [entry(artifact("data"), NoSpec())]


stage(pair_donors, artifact("pairs", "{dataset}", "{split}"), local=True)


# Counts of questions, images and pairs per split, for people and for the table `data`.
stage(summarize_data, artifact("data"), local=True)
