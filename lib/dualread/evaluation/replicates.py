"""The replicates of every metric that has an interval: one value an image-cluster resample.

A cell's replicates are those of the same resamples whatever the method, so that two methods can be subtracted replicate
by replicate. Sources are resampled with all their questions. Donors recur across sources: the metrics in `TWO_WAY`
resample the donor images too, by draws of their own, and a pair weighs the product of both images' weights.

References:
    Owen, The pigeonhole bootstrap, 2007 (two crossed factors, each resampled by itself).
"""

import numpy as np

from dualread.evaluation import controls
from dualread.evaluation._columns import (
    Cell,
    Columns,
    decisive,
    preference_kernel,
    strict_decisive,
    two_way_preference_kernel,
)
from dualread.evaluation.metrics.calibration_error import bins
from dualread.evaluation.metrics.selective import HIGH_CONFIDENCE
from dualread.evaluation.statistics.bootstrap import ImageDraws, chunk_of, image_cluster_replicates
from dualread.evaluation.statistics.kernels import Kernel, aurc_kernel, auroc_kernel, ece_kernel, mean_kernel

ANSWERS = ("accuracy", "auroc", "brier", "ece15", "aurc", "hce90")
PAIRS = {"natural_ccg_auc": decisive("donor"), "strict_ccg_auc": strict_decisive}
# The metric of the same estimate whose interval resamples donors as well.
TWO_WAY = {name: f"{name}_two_way" for name in PAIRS}

# Kept for contrasts between methods; the controls have an interval only.
KEPT = (*ANSWERS, *PAIRS, *TWO_WAY.values())
INTERVALS = (*KEPT, *controls.INTERVALS)


def replicates(cell: Cell, draws: ImageDraws) -> dict[str, np.ndarray]:
    """Return float64 [B] for each of `INTERVALS` that has rows, NaN where a replicate has no value."""
    one_way = {**_of_answers(cell.answers, draws), **controls.control_kernels(cell, draws)}
    two_way, donors = {}, draws.of_donors()
    if not isinstance(pairs := cell.pairs, str):
        one_way |= {name: preference_kernel(pairs, "donor", mask, draws) for name, mask in PAIRS.items()}
        two_way = {TWO_WAY[name]: two_way_preference_kernel(pairs, mask, draws, donors) for name, mask in PAIRS.items()}
    chunk = chunk_of(len(cell.answers))
    found = image_cluster_replicates(one_way, draws, chunk=chunk)
    return found | image_cluster_replicates(two_way, draws, donors, chunk=chunk)


def _of_answers(answers: Columns, draws: ImageDraws) -> dict[str, Kernel]:
    confidence, correct = answers["confidence"], answers["correct"]
    images = answers.cluster("image_id", draws), len(draws.image_ids)
    return {
        "accuracy": mean_kernel(correct.astype(np.float64), *images),
        "auroc": auroc_kernel(confidence, correct, *images),
        "brier": mean_kernel((confidence - correct) ** 2, *images),
        "ece15": ece_kernel(confidence, correct, bins(confidence), *images),
        "aurc": aurc_kernel(confidence, correct, *images),
        "hce90": mean_kernel(((confidence >= HIGH_CONFIDENCE) & ~correct).astype(np.float64), *images),
    }
