"""The noise floors of the ECE: could they come from signs and labels that are drawn here?"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy.stats import betabinom

from tests.workflow.recount import definitions
from tests.workflow.recount.resampling import FALSE_ALARM
from tests.workflow.recount.values import Values

N_DRAWS = 1000
# The floor is the 950th of 999 values.
RANK, OF = 950, 999
MOST_LABELED = 2000


def differences(values: Values) -> list[str]:
    """Return a line for every floor of a run, a data set and a subset that is wrong."""
    path = values.study.results / "metrics" / "metrics.parquet"
    rows = pl.read_parquet(path).filter(metric="ece15_noise_floor").to_dicts()
    alpha = FALSE_ALARM / max(1, len(rows))
    return sorted(line for row in rows for line in _wrong(values, row, alpha))


def _wrong(values: Values, row: dict, alpha: float) -> Iterator[str]:
    run = values.study.runs[row["backbone"], row["method"]][row["seed"]]
    answers = values.study.answers(run, row["dataset"], row["split"], row["subset"])
    where = "/".join(str(row[name]) for name in ("backbone", "seed", "dataset", "split", "subset", "method"))
    for line in implausible(answers, row["estimate"], alpha):
        yield f"floor {where}: {line}"


def implausible(answers: pl.DataFrame, floor: float | None, alpha: float) -> Iterator[str]:
    """Return what of a floor cannot come from the same distribution as signs and labels that are drawn here."""
    images = sorted(set(answers["cluster"]))
    if len(images) < 2 or floor is None:
        if len(images) > 1 or floor is not None:
            yield f"{floor} of {len(images)} images"
        return
    stream = np.random.default_rng(len(answers))
    confidence, correct = answers["confidence"].to_numpy(), answers["correct"].to_numpy()
    inside = np.array([held for _, _, held in definitions.in_bins(confidence)], dtype=float)
    of_image = np.array([images.index(image) for image in answers["cluster"]])
    signs = stream.choice([-1.0, 1.0], size=(len(images), N_DRAWS))[of_image]
    kinds = [np.abs(inside @ (signs * (correct - confidence)[:, None])).sum(axis=0)]
    if len(answers) <= MOST_LABELED:
        drawn = stream.random((len(answers), N_DRAWS)) < confidence[:, None]
        kinds.append(np.abs(inside @ (drawn - confidence[:, None])).sum(axis=0))
    # The larger of two percentiles is that of the kind with fewer values below it.
    end = floor * len(answers)
    below, through = min((int(np.sum(kind < end - 1e-9)), int(np.sum(kind <= end + 1e-9))) for kind in kinds)
    too_many = betabinom.sf(below - 1, N_DRAWS, RANK, OF - RANK + 1)
    too_few = betabinom.cdf(through, N_DRAWS, RANK, OF - RANK + 1)
    if min(too_many, too_few) < alpha:
        yield f"{floor}, below which are {below} of {N_DRAWS} values drawn here"
