"""The spread of Student's t on the logit, or on the logarithm, written out."""

import numpy as np
import scipy.stats
from scipy.special import expit, logit


def spread_as_t(values, estimate, n_images, n_drawn, *, has_end=True):
    """The value of rank k gets the k-th of as many quantiles of a normal distribution on the logit."""
    values = np.round(values, 12)  # so that values that only rounding tells apart have one rank
    defined = ~np.isnan(values)
    if estimate in (0, 1):  # the rank k of the draws is ((k - .5) / B)^(1 / n) away from the other end
        away = ((np.arange(defined.sum()) + 0.5) / defined.sum()) ** (1 / n_images)
        found = np.full(len(values), np.nan)
        found[defined] = np.abs(estimate - 1 + away)
        return found
    ranks = scipy.stats.rankdata(values[defined])
    error = values[defined].std() * np.sqrt(n_drawn / (n_drawn - 1)) / (estimate * (1 - estimate * has_end))
    error *= scipy.stats.t.ppf(0.975, n_images - 1) / scipy.stats.norm.ppf(0.975)
    found = np.full(len(values), np.nan)
    quantiles = error * scipy.stats.norm.ppf((ranks - 0.5) / defined.sum())
    found[defined] = expit(logit(estimate) + quantiles) if has_end else np.exp(np.log(estimate) + quantiles)
    return found
