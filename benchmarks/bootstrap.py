"""The cost of the bootstrap over images and of the obvious alternatives, in CPU seconds, on made-up answers.

    OMP_NUM_THREADS=1 python benchmarks/bootstrap.py
    OMP_NUM_THREADS=1 python benchmarks/bootstrap.py --of-the-others 10000    # several minutes

The alternatives are slow, so they run with fewer replicates, and their times are scaled up. All resample whole images.
The loop uses our draws, and its replicates are compared with ours.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats
from sklearn.metrics import brier_score_loss, roc_auc_score

from dualread.evaluation.statistics.bootstrap import ClusterDraws, image_cluster_replicates
from dualread.evaluation.statistics.kernels import Kernel, auroc_kernel, mean_kernel, rank_kernel

SIZES = ((1061, 96), (5000, 500))  # questions, images; the first are those of SLAKE-test
N_METHODS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=10_000)
    parser.add_argument("--of-the-others", type=int, default=200, help="replicates that the others are measured on")
    options = parser.parse_args()
    rows = [
        {"questions": n, "images": n_images, **row}
        for n, n_images in SIZES
        for row in measured(Answers.made_up(n, n_images), options.replicates, options.of_the_others)
    ]
    table = pl.DataFrame(rows, schema_overrides={"largest difference": pl.Float64})
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_width_chars=120):
        print(table)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Confidences of several methods, [n_methods][n], and correctness and image of the answers that they share."""

    confidences: list[np.ndarray]
    correct: np.ndarray
    cluster: np.ndarray
    n_images: int

    @classmethod
    def made_up(cls, n: int, n_images: int) -> "Answers":
        rng = np.random.default_rng(0)
        confidences = [rng.random(n) for _ in range(N_METHODS)]
        correct = rng.random(n) < confidences[0]
        return cls(confidences=confidences, correct=correct, cluster=rng.integers(0, n_images, n), n_images=n_images)

    def draws(self, replicates: int) -> ClusterDraws:
        """Return new draws, so that the cost of drawing counts."""
        names = tuple(f"{k:04d}" for k in range(self.n_images))
        return ClusterDraws(names=("benchmark", str(time.perf_counter_ns())), cluster_ids=names, replicates=replicates)


def measured(answers: Answers, replicates: int, of_the_others: int) -> Iterator[dict]:
    two = Answers(**{**answers.__dict__, "confidences": answers.confidences[:2]})
    few, contrast = two.draws(of_the_others), "AUROC, Brier of 2 methods"
    yield {"what": contrast, "how": "dualread", **timed(lambda: ours(two, two.draws(replicates), contrast_kernels), 1)}
    for how, other in (("scikit-learn in a loop", sklearn_loop), ("scipy.stats.bootstrap", scipy_bootstrap)):
        found: list[np.ndarray | None] = []
        row = timed(lambda other=other, found=found: found.append(other(two, few)), replicates / of_the_others)
        if found[0] is not None:
            row["largest difference"] = float(np.abs(found[0] - ours(two, few, contrast_kernels)).max())
        yield {"what": contrast, "how": how, **row}
    what = f"5 metrics of {N_METHODS} methods"
    yield {"what": what, "how": "dualread", **timed(lambda: ours(answers, answers.draws(replicates), five_kernels), 1)}


def timed(run: Callable[[], object], times: float) -> dict:
    started = time.process_time()
    run()
    return {"CPU seconds": round((time.process_time() - started) * times, 2), "largest difference": None}


def ours(
    answers: Answers, draws: ClusterDraws, kernels_of: Callable[..., dict[str | tuple[str, ...], Kernel]]
) -> np.ndarray:
    """Return the replicates of every kernel, [n_methods * n_metrics, B]; drawing and sorting included."""
    found = [
        image_cluster_replicates(kernels_of(confidence, answers.correct, answers.cluster, answers.n_images), draws)
        for confidence in answers.confidences
    ]
    return np.vstack([values for of_method in found for values in of_method.values()])


def contrast_kernels(confidence: np.ndarray, correct: np.ndarray, *clusters) -> dict[str | tuple[str, ...], Kernel]:
    return {
        "auroc": auroc_kernel(confidence, correct, *clusters),
        "brier": mean_kernel((confidence - correct) ** 2, *clusters),
    }


def five_kernels(confidence: np.ndarray, correct: np.ndarray, *clusters) -> dict[str | tuple[str, ...], Kernel]:
    return {
        "brier": mean_kernel((confidence - correct) ** 2, *clusters),
        ("auroc", "aurc", "e_aurc"): rank_kernel(confidence, correct, *clusters),
        "hce90": mean_kernel(((confidence >= 0.9) & ~correct).astype(float), *clusters),
    }


def contrast_of(answers: Answers, rows: np.ndarray) -> list[float]:
    correct, drawn = answers.correct[rows], [confidence[rows] for confidence in answers.confidences]
    return [value for one in drawn for value in (roc_auc_score(correct, one), brier_score_loss(correct, one))]


def sklearn_loop(answers: Answers, draws: ClusterDraws) -> np.ndarray:
    rows_of = [np.flatnonzero(answers.cluster == image) for image in range(answers.n_images)]
    replicates = []
    for weights in draws.weights():
        for times in weights.T.astype(int):
            rows = np.concatenate([np.tile(of_image, n) for of_image, n in zip(rows_of, times, strict=True)])
            replicates.append(contrast_of(answers, rows))
    return np.array(replicates).T


def scipy_bootstrap(answers: Answers, draws: ClusterDraws) -> None:
    """It makes its own draws, so its replicates differ from ours."""
    rows_of = [np.flatnonzero(answers.cluster == image) for image in range(answers.n_images)]
    stats.bootstrap(
        (np.arange(answers.n_images),),
        lambda images: np.array(contrast_of(answers, np.concatenate([rows_of[int(k)] for k in images]))),
        n_resamples=draws.replicates,
        vectorized=False,
        method="percentile",
        rng=0,
    )


if __name__ == "__main__":
    main()
