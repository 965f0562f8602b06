"""The replicates of every metric that has an interval: one value per resample of the images.

All methods share the resamples of a cell, so that two methods can be subtracted replicate by replicate. A source image
is resampled with all its questions. One donor image serves many sources; the metrics in `TWO_WAY` therefore resample
the donor images as well, with draws of their own, and the weight of a pair is the product of the weights of its images.

References:
    Owen, The pigeonhole bootstrap, 2007 (two crossed factors, each resampled by itself).
"""

import numpy as np

from dualread.evaluation import controls
from dualread.evaluation.columns import (
    CellColumns,
    Columns,
    decisive,
    preference_kernel,
    strict_decisive,
    two_way_preference_kernel,
)
from dualread.evaluation.metrics.calibration_error import bins
from dualread.evaluation.metrics.selective import HIGH_CONFIDENCE
from dualread.evaluation.statistics.bootstrap import ImageDraws, chunk_of, image_cluster_replicates
from dualread.evaluation.statistics.kernels import Kernel, ece_kernel, mean_kernel, rank_kernel

ANSWERS = ("accuracy", "auroc", "brier", "ece15", "aurc", "hce90")
PAIRS = {"natural_ccg_auc": decisive("donor"), "strict_ccg_auc": strict_decisive}
# The metric with the same estimate, the interval of which resamples donors as well.
TWO_WAY = {name: f"{name}_two_way" for name in PAIRS}

# Two methods can be compared by these. The controls have only an interval.
COMPARABLE = (*ANSWERS, *PAIRS, *TWO_WAY.values())
# A study stores the replicates of those by which its tables compare methods.
KEPT = ("auroc", "brier", *PAIRS, *TWO_WAY.values())
INTERVALS = (*COMPARABLE, *controls.INTERVALS)


def replicates(cell: CellColumns, draws: ImageDraws) -> dict[str, np.ndarray]:
    """Return the replicates of each of `INTERVALS` that has rows, float64 [B]; NaN where a replicate is undefined."""
    one_way = {**_of_answers(cell.answers, draws), **controls.control_kernels(cell, draws)}
    two_way: dict[str | tuple[str, ...], Kernel] = {}
    donors = draws.of_donors()
    if not isinstance(pairs := cell.pairs, str):
        one_way |= {name: preference_kernel(pairs, "donor", mask, draws) for name, mask in PAIRS.items()}
        two_way = {TWO_WAY[name]: two_way_preference_kernel(pairs, mask, draws, donors) for name, mask in PAIRS.items()}
    chunk = chunk_of(len(cell.answers))
    found = image_cluster_replicates(one_way, draws, chunk=chunk)
    return found | image_cluster_replicates(two_way, draws, donors, chunk=chunk)


def _of_answers(answers: Columns, draws: ImageDraws) -> dict[str | tuple[str, ...], Kernel]:
    confidence, correct = answers["confidence"], answers["correct"]
    images = answers.cluster("image_id", draws), len(draws.image_ids)
    wrong_and_high = (confidence >= HIGH_CONFIDENCE) & ~correct
    return {
        "accuracy": mean_kernel(correct.astype(np.float64), *images),
        ("auroc", "aurc"): rank_kernel(confidence, correct, *images),
        "brier": mean_kernel((confidence - correct) ** 2, *images),
        "ece15": ece_kernel(confidence, correct, bins(confidence), *images),
        "hce90": mean_kernel(wrong_and_high.astype(np.float64), *images),
    }
