"""Scorers for scikit-learn: what `cross_val_score`, `GridSearchCV` and others take as `scoring`.

    from dualread.apps.harnesses.scikit_learn import auroc_scorer, neg_squared_calibration_error_scorer, scorer

    cross_val_score(LogisticRegression(), states, is_correct, scoring=neg_squared_calibration_error_scorer)

The estimator predicts whether an answer is correct: its classes are 0 and 1, and the confidence is the probability
of 1. With `scorer(..., top_label=True)`, it predicts the answer itself, and the confidence is its largest probability.
A metric that has no value on a fold is NaN, which scikit-learn counts as a failed fold, and a warning says why.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation import metrics

__all__ = [
    "auroc_scorer",
    "neg_aurc_scorer",
    "neg_brier_scorer",
    "neg_ece_scorer",
    "neg_squared_calibration_error_scorer",
    "scorer",
]

Scorer = Callable[[Any, Any, Any], float]


def scorer(metric: Callable[..., float], *, greater_is_better: bool, top_label: bool = False) -> Scorer:
    """Return a scorer of a metric of `dualread.evaluation.metrics`.

    Args:
        metric: Takes confidence and correctness, both [n].
        greater_is_better: If not, the score is the metric with the other sign.
        top_label: The estimator predicts answers, and not whether an answer is correct.

    Returns:
        `score(estimator, X, y)`. It raises ValueError where `y` has other classes than 0 and 1 without `top_label`.
    """
    sign = 1.0 if greater_is_better else -1.0

    def score(estimator: Any, X: Any, y: Any) -> float:
        probabilities, classes = np.asarray(estimator.predict_proba(X)), np.asarray(estimator.classes_)
        if top_label:
            confidence = probabilities.max(axis=1)
            correct = classes[probabilities.argmax(axis=1)] == np.asarray(y)
        elif set(classes.tolist()) <= {0, 1}:
            confidence = probabilities[:, classes.tolist().index(1)] if 1 in classes else np.zeros(len(probabilities))
            correct = np.asarray(y)
        else:
            raise ValueError(f"classes {classes.tolist()}: expected 0 and 1 (is correct), or give top_label=True.")
        try:
            return sign * float(metric(confidence, correct))
        except UndefinedMetricError as error:
            warnings.warn(f"{metric.__name__} has no value: {error}", stacklevel=2)
            return float("nan")

    return score


auroc_scorer = scorer(metrics.auroc, greater_is_better=True)
neg_aurc_scorer = scorer(metrics.aurc, greater_is_better=False)
neg_brier_scorer = scorer(metrics.brier, greater_is_better=False)
neg_ece_scorer = scorer(metrics.ece, greater_is_better=False)
neg_squared_calibration_error_scorer = scorer(
    lambda confidence, correct: metrics.squared_calibration_error(confidence, correct, np.arange(len(confidence))),
    greater_is_better=False,
)
