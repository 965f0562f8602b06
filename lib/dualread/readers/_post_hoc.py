"""What maps of another method's confidences share: the method `of` that they map, and the answers they are fitted on.

A map is fitted on validation answers, whatever the method below was fitted on and whichever views it reads. Answers
without a value of that method are no part of the fit, and stay imputed.
"""

from collections.abc import Callable, Mapping

import numpy as np

from dualread.errors import UnfittedError
from dualread.readers.base import Answers, Examples, FittedReader, Scores, score
from dualread.readers.calibration.log_odds import log_odds

# Confidences of 0 and 1 have no log-odds. Half a percent is the middle between the last two that people state.
SMALLEST = 0.005


def validation_scores(examples: Examples, parents: Mapping[str, FittedReader]) -> tuple[dict[str, Scores], np.ndarray]:
    """Return what each parent says of the validation answers with values of all, and which are correct, bool [n]."""
    validation = examples.require("validation", both_classes=True)
    scores_of = {role: score(parent, validation.answers) for role, parent in parents.items()}
    known = ~np.logical_or.reduce([scores.imputed for scores in scores_of.values()])
    correct = validation.correct[known]
    if correct.all() or not correct.any():
        raise UnfittedError(
            f"partition 'validation': of {len(correct)} answers with values, {int(correct.sum())} are correct; a map"
            " needs correct and wrong ones. Give the validation split more images."
        )
    return {
        role: Scores(score=scores.score[known], confidence=scores.confidence[known], imputed=scores.imputed[known])
        for role, scores in scores_of.items()
    }, correct


def mapped(reader: FittedReader, answers: Answers, confidence: Callable[[dict[str, Scores]], np.ndarray]) -> Scores:
    """Return the confidences of a map, which are also its scores; .5 where a method below has no value."""
    scores_of = {role: score(parent, answers) for role, parent in reader.parents.items()}
    imputed = np.logical_or.reduce([scores.imputed for scores in scores_of.values()])
    values = np.where(imputed, 0.5, confidence(scores_of))
    return Scores(score=values, confidence=values, imputed=imputed)


def log_odds_of(scores: Scores) -> np.ndarray:
    """Return the log-odds of confidences, float64 [n]; those below `SMALLEST`, or above 1 minus it, count as there."""
    return log_odds(np.clip(scores.confidence, SMALLEST, 1 - SMALLEST))
