"""Groups of answers: how often simultaneous intervals, and those of the worst group, hold (`coverage.py`)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from scipy.special import expit, logit, ndtr, ndtri

import dualread
from dualread.apps.text import aligned

REPLICATES = 400
# Images of each group, with 3 answers each; how many groups every image has an answer in, if not one; and how much more
# often the first group is wrong.
SUBGROUPS: Mapping[str, tuple[Sequence[int], int, float]] = {
    "2 of 60": ([60] * 2, 1, 0.0),
    "5 of 20": ([20] * 5, 1, 0.0),
    "10 of 10": ([10] * 10, 1, 0.0),
    "20 of 15": ([15] * 20, 1, 0.0),
    "10, 15, 20, 40 and 80": ([10, 15, 20, 40, 80], 1, 0.0),
    "5 of 40, one worse": ([40] * 5, 1, -0.5),
    "5 families on 60 images": ([60], 5, 0.0),
}
SUBGROUP_METRICS = ("accuracy", "auroc", "brier", "aurc", "squared_calibration_error")


def subgroup_lines(n: int) -> Iterator[str]:
    table: list[tuple[str, ...]] = [
        ("groups", "metric", "all hold", "by themselves", "normal", "worst", "chosen", "none", "Holm p <= .05")
    ]
    for name, (sizes, families, shift) in SUBGROUPS.items():
        rng = np.random.default_rng([6, len(name)])
        truths = [_of_groups([50_000], 1, by, rng) for by in (shift, 0.0)]
        truths = [
            dict(dualread.evaluate(rows, replicates=0).metrics.filter(subset="all").select("metric", "estimate").rows())
            for rows in truths
        ]
        results: dict[str, list[list[float]]] = defaultdict(list)
        for _ in range(n):
            rows = _of_groups(sizes, families, shift, rng)
            groups = dualread.evaluate(rows, by="group", replicates=REPLICATES).groups
            assert groups is not None
            for metric in SUBGROUP_METRICS:
                of_metric = groups.metrics.filter(pl.col("simultaneous_low").is_not_null(), metric=metric).to_dicts()
                [worst] = groups.worst.filter(metric=metric).to_dicts()
                true = {row["group"]: truths[row["group"] != "0"][metric] for row in of_metric}
                if len(of_metric) < 2:
                    continue
                extreme = min if metric in ("accuracy", "auroc") else max
                held = [_holds(row, true[row["group"]], "simultaneous_") for row in of_metric]
                alone = [_holds(row, true[row["group"]]) for row in of_metric]
                steps = ndtri(0.975 ** (1 / len(of_metric))) / ndtri(0.975)
                wide = [_holds(_stretched(row, steps), true[row["group"]]) for row in of_metric]
                ends = _holds(worst, extreme(true.values()))
                chosen = next(a for a, row in zip(alone, of_metric, strict=True) if row["group"] == worst["group"])
                none = len({*rows["group"]}) - len(of_metric)
                found = any((row["p_holm"] or 1.0) <= 0.05 for row in of_metric)
                results[metric].append([all(held), all(alone), all(wide), ends, chosen, none, found])
        for metric, values in results.items():
            table.append((name, metric, *(f"{value:.3f}" for value in np.mean(np.array(values, dtype=float), axis=0))))
    yield from aligned(table, numbers=range(2, 9))


def _holds(row: Mapping, truth: float, which: str = "") -> bool:
    return bool(row[f"{which}low"] <= truth <= row[f"{which}high"])


def _stretched(row: Mapping, steps: float) -> dict[str, float]:
    """Return an interval that is wider by a factor on the logit, or as it is for values that have none."""
    estimate, ends = row["estimate"], {"low": row["low"], "high": row["high"]}
    if not 0 < row["low"] <= estimate <= row["high"] < 1:
        return ends
    return {
        end: float(expit(logit(estimate) + steps * (logit(value) - logit(estimate)))) for end, value in ends.items()
    }


def _of_groups(sizes: Sequence[int], families: int, shift: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return answers about groups of images; with several families, each image has answers of all of them."""
    each = families if families > 1 else 3
    image = np.repeat(np.arange(sum(sizes)), each)
    group = np.tile(np.arange(each), sum(sizes)) if families > 1 else np.repeat(np.arange(len(sizes)), sizes)[image]

    def mixed() -> np.ndarray:
        return np.sqrt(0.3) * rng.standard_normal(sum(sizes))[image] + np.sqrt(0.7) * rng.standard_normal(len(image))

    latent = mixed()
    return {
        "confidence": ndtr(0.8 * (latent + 0.8 * mixed()) + 0.5),
        "correct": latent + np.where(group == 0, shift, 0.0) > -0.4,
        "image_id": np.char.add("i", image.astype(str)),
        "group": group.astype(str),
        "method": np.full(len(image), "mine"),
    }
