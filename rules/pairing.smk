# Donors: the same question, another image, another gold answer; frozen before any confidence exists.
#
# REQUIRES results/<study>/manifests/<dataset>/<split>/
# PROVIDES results/<study>/pairs/<dataset>/<split>/ and results/<study>/data/


stage(ARTIFACTS.pair_donors, ARTIFACTS.at("pairs", "{dataset}", "{split}"), local=True)


# Counts of questions, images and pairs per split, for people and for the table `data`.
stage(ARTIFACTS.summarize_data, ARTIFACTS.at("data"), local=True)
