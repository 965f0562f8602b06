# Manifests: the table of questions of each split, one row per question, frozen before any model runs.
#
# REQUIRES nothing, a raw folder, or the hub
# PROVIDES results/<study>/manifests/<dataset>/<split>/ and results/<study>/leakage/


stage(ARTIFACTS.draw_phantom, ARTIFACTS.at("phantoms", "{phantom}"), local=True)


stage(ARTIFACTS.download_dataset, ARTIFACTS.at("downloads", "{dataset}"), local=True)


stage(ARTIFACTS.build_manifest, ARTIFACTS.at("manifests", "{dataset}", "{split}"))


# Fails and names the images if an image that something is fitted on has a second role.
stage(ARTIFACTS.check_leakage, ARTIFACTS.at("leakage"))
