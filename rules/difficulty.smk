# Difficulty: of phantoms it is known how hard each image is; do confidences follow it?
#
# REQUIRES results/<study>/phantoms/<phantom>/, manifests, graded/... and predictions/... of one actor
# PROVIDES results/<study>/difficulty/<actor>/


# What is known about the difficulty of the images, for each actor that is judged.
DIFFICULTY = [ARTIFACTS.at("difficulty", actor) for actor in SHARDS.with_known_difficulty()]


stage(
    ARTIFACTS.measure_difficulty,
    ARTIFACTS.at("difficulty", "{actor}"),
    only=dict(actor=one_of(SHARDS.with_known_difficulty())),
    local=True,
)
