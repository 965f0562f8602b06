"""Resamples of clusters, drawn here and not read from the study: could its intervals come from such draws?"""

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from scipy.stats import beta, betabinom, fisher_exact, norm, rankdata, t

from tests.workflow.recount import definitions
from tests.workflow.recount.study import Run
from tests.workflow.recount.values import Values

N_RESAMPLES = 2000
PERCENTILES = (2.5, 97.5)
FEWEST = 5
# The chance that a study whose draws are right is called wrong anywhere; divided among everything that is looked at.
FALSE_ALARM = 1e-6


@dataclass(kw_only=True)
class Resamples:
    """Values of methods in resamples of each data set's images, the same resamples for all methods."""

    values: Values
    _weights: dict = field(default_factory=dict)
    _known: dict = field(default_factory=dict)

    def of_method(self, backbone: str, method: str, dataset: str, split: str, metric: str) -> np.ndarray:
        """Return the mean over seeds in every resample, NaN where a seed has no value."""
        key = (backbone, method, dataset, split, metric)
        if key not in self._known:
            study = self.values.study
            members = study.ood if dataset == "ood6" else [dataset]
            runs = study.runs[backbone, method].values()
            found = [[self._of_run(run, member, split, metric) for member in members] for run in runs]
            self._known[key] = np.mean(np.mean(found, axis=1), axis=0)
        return self._known[key]

    def _of_run(self, run: Run, dataset: str, split: str, metric: str) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # 0 / 0 is a resample without a value
            answers = self.values.study.answers(run, dataset, split, "all")
            weights = self._drawn(dataset, split, answers["cluster"].to_list())
            confidence, correct = answers["confidence"].to_numpy(), answers["correct"].to_numpy()
            images = sorted(set(answers["cluster"]))
            if metric == "squared_calibration_error":
                return self._linear(run, dataset, split, answers)
            if is_uneven(answers):
                return self._left_out(metric, dataset, split, answers)
            rarer = _with_the_rarer_kind(answers)
            if metric == "brier":
                found, value = weights @ (confidence - correct) ** 2 / weights.sum(axis=1), (confidence - correct) ** 2
                if rarer < FEWEST and 0 < value.mean() < 1:
                    return as_binomial(found, float(value.mean()), len(images))
                return spread_as_t(found, float(value.mean()), min(len(images), 2 * rarer + 1), len(images))
            # Every pair of a correct and a wrong row, as often as both are drawn.
            right, wrong = confidence[correct][:, None], confidence[~correct][None, :]
            won = ((weights[:, correct] @ ((right > wrong) + 0.5 * (right == wrong))) * weights[:, ~correct]).sum(
                axis=1
            )
            found = won / (weights[:, correct].sum(axis=1) * weights[:, ~correct].sum(axis=1))
            return spread_as_t(found, float(((right > wrong) + 0.5 * (right == wrong)).mean()), rarer, len(images))

    def _linear(self, run: Run, dataset: str, split: str, answers: pl.DataFrame) -> np.ndarray:
        """Return the squared error plus, for each further draw of an image, what leaving it out takes away."""
        images = sorted(set(answers["cluster"]))
        rarer = _with_the_rarer_kind(answers)
        df = _degrees(answers) if is_uneven(answers) else rarer - 1
        if rarer < 2 or (is_uneven(answers) and _worth(answers) < 6):
            return np.full(N_RESAMPLES, np.nan)
        left, n = definitions.squared_error_left_out(answers, images), len(images)
        whole = definitions.squared_error(answers)
        shift = (np.mean(left) - left) * np.sqrt((n - 1) / n) * t.ppf(0.975, df) / norm.ppf(0.975)
        return whole + (self._drawn(dataset, split, images) - 1) @ shift

    def _left_out(self, metric: str, dataset: str, split: str, answers: pl.DataFrame) -> np.ndarray:
        """Return, for images of very unequal size, what leaving out each one takes away, with the spread of t."""
        images, rarer = sorted(set(answers["cluster"])), _with_the_rarer_kind(answers)
        if _worth(answers) < 6 or (metric == "auroc" and rarer < 2):
            return np.full(N_RESAMPLES, np.nan)
        whole = _value(metric, answers)
        left = np.array([_value(metric, answers.filter(pl.col("cluster") != image)) for image in images])
        shift = (whole - left) * np.sqrt((len(images) - 1) / len(images))
        found = whole + (self._drawn(dataset, split, images) - 1) @ shift
        if metric == "brier" and rarer < FEWEST and 0 < whole < 1:
            return as_binomial(found, whole, _worth(answers))
        rest = _worth(answers) if metric == "brier" else rarer
        return spread_as_t(found, whole, rest, np.inf, df=_degrees(answers))

    def _drawn(self, dataset: str, split: str, images: list[str]) -> np.ndarray:
        """Return how often the image of each row was drawn, [resamples, rows]."""
        key = (dataset, split)
        if key not in self._weights:
            names = sorted(set(self.values.study.clusters(dataset, split).values()))
            generator = np.random.default_rng(sum(map(ord, "/".join(key))))
            draws = generator.integers(0, len(names), size=(N_RESAMPLES, len(names)))
            counts = np.stack([np.bincount(drawn, minlength=len(names)) for drawn in draws])
            self._weights[key] = (names, counts)
        names, counts = self._weights[key]
        return counts[:, [names.index(image) for image in images]].astype(float)


def _with_the_rarer_kind(answers: pl.DataFrame) -> int:
    return min(len(set(answers.filter(kind)["cluster"])) for kind in (answers["correct"], ~answers["correct"]))


def _value(metric: str, answers: pl.DataFrame) -> float:
    confidence, correct = answers["confidence"].to_numpy(), answers["correct"].to_numpy()
    if metric == "brier":
        return float(((confidence - correct) ** 2).mean())
    right, wrong = confidence[correct][:, None], confidence[~correct][None, :]
    return float(((right > wrong) + 0.5 * (right == wrong)).mean()) if right.size and wrong.size else float("nan")


def _worth(answers: pl.DataFrame) -> float:
    """Return how many images of equal size would hold the rows as unequally."""
    sizes = answers["cluster"].value_counts()["count"].to_numpy().astype(float)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if len(sizes) else 0.0


def is_uneven(answers: pl.DataFrame) -> bool:
    return _worth(answers) < min(0.75 * answers["cluster"].n_unique(), 100)


def _degrees(answers: pl.DataFrame) -> float:
    """Return the degrees of freedom of a mean over such images, by the matrix of Bell and McCaffrey."""
    n = answers["cluster"].value_counts()["count"].to_numpy().astype(float)
    a = 1 / (1 - n / n.sum())
    b = np.sqrt(np.outer(a, a)) * (np.diag(n) - np.outer(n, n) / n.sum())
    kinds = (answers.filter("correct"), answers.filter(~answers["correct"]))
    return min(np.trace(b) ** 2 / np.trace(b @ b), *(max(_worth(rows), 1.0) for rows in kinds if len(rows)))


def as_binomial(values: np.ndarray, estimate: float, n: float) -> np.ndarray:
    """Return, at the same ranks, what Clopper and Pearson's limits of a share of n rows are at every level."""
    q = (rankdata(values.round(12)) - 0.5) / len(values)
    x, found, low = estimate * n, np.empty(len(q)), q < 0.5
    found[low], found[~low] = beta.ppf(q[low], x, n - x + 1), beta.ppf(q[~low], x + 1, n - x)
    return found


def spread_as_t(
    values: np.ndarray, estimate: float, n_images: float, n_drawn: float, df: float | None = None
) -> np.ndarray:
    """Return the values at the same ranks, spread around the estimate as Student's t on the logit."""
    found, defined = np.full(len(values), np.nan), ~np.isnan(values)
    if n_images < 2 or not defined.any():
        return found
    n = int(defined.sum())
    if estimate in (0.0, 1.0):
        share = ((np.arange(n) + 0.5) / n) ** (1 / n_images)
        found[defined] = share if estimate else 1 - share
        return found
    error = values[defined].std() * np.sqrt(1 + 1 / max(n_drawn - 1, 1))
    if error < 1e-12:
        return values
    odds = estimate / (1 - estimate)
    z = norm.ppf((rankdata(values[defined].round(12)) - 0.5) / n) * t.ppf(0.975, df or n_images - 1) / norm.ppf(0.975)
    odds = odds * np.exp(z * error / (estimate * (1 - estimate)))
    found[defined] = odds / (1 + odds)
    return found


def implausible(low: float, high: float, n_undefined: int, n_drawn: int, own: np.ndarray, alpha: float) -> list[str]:
    """Return what of an interval cannot come from the same distribution as our resamples, at the level `alpha`.

    An end is a percentile of B stored resamples, between the k-th and the next. How many of n resamples of our own are
    below the k-th of B others has a beta-binomial distribution, whatever the statistic: the share of its distribution
    below the k-th is Beta(k, B - k + 1). Ties are counted in favor of the study. Undefined ones: Fisher's exact test.
    Tied resamples share a rank, and so a place on Student's t, which differs between any two sets of B resamples by
    some standard errors of a rank: values so near to an end count as ties with it.
    """
    found, defined, n_defined = [], own[~np.isnan(own)], n_drawn - n_undefined
    table = [[n_undefined, n_defined], [len(own) - len(defined), len(defined)]]
    if fisher_exact(table).pvalue < alpha:
        found.append(f"{n_undefined} of {n_drawn} undefined, here {len(own) - len(defined)} of {len(own)}")
    near = 4 * defined.std() / np.sqrt(max(n_defined, 1)) if len(defined) else 0.0
    for name, end, percentile in (("low", low, PERCENTILES[0]), ("high", high, PERCENTILES[1])):
        place = percentile / 100 * (n_defined - 1)
        k, following = int(np.floor(place)) + 1, int(np.ceil(place)) + 1
        below, through = np.sum(defined < end - near - 1e-9), np.sum(defined <= end + near + 1e-9)
        too_many = betabinom.sf(below - 1, len(defined), following, n_defined - following + 1)
        too_few = betabinom.cdf(through, len(defined), k, n_defined - k + 1)
        if min(too_many, too_few) < alpha:
            found.append(f"{name} {end}, below which are {below} of {len(defined)} resamples drawn here")
    return found
