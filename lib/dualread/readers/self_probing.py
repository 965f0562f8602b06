"""Self-probing: the probability that the actor states when asked about its answer (DualRead, app:baseline_protocols).

The actor sees the image, the question and its answer again and is asked for one integer from 0 to 100; the reply is
greedy. `grading.parse.stated_percent` reads it. An invalid reply is retained at 0.5 and marked. Raw: nothing is
fitted.
"""

from collections.abc import Mapping
from typing import Any

from dualread.readers._stated import mean_stated
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights, check_settings

FEATURES: tuple[str, ...] = ()
PARENTS: tuple[str, ...] = ()
FITTED_ON = None
VIEWS = "score"


def fit(examples: Examples, settings: Mapping[str, Any], parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit nothing."""
    check_settings(settings, (), module="readers.self_probing")
    return Weights()


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the stated percentage, divided by 100, as score and as confidence."""
    return mean_stated([answers.only_view()])
