"""What readers of samples share: the canonical answers of the first K, and the Platt map from the validation split."""

from typing import Any

import numpy as np

from dualread.errors import ConfigError
from dualread.grading.canonical import canonical
from dualread.grading.parse import parse
from dualread.readers.base import Answers, Examples, FittedReader, Scores
from dualread.readers.calibration.log_odds import CalibrationError
from dualread.readers.calibration.platt import Platt, fit_platt


def sampled_answers(answers: Answers, k: int) -> list[list[str | None]]:
    """Return the canonical answers of the first `k` samples of each answer; None is an invalid one.

    Raises:
        ConfigError: There is not exactly one view, it has no completions, or fewer than `k` of an answer.
    """
    view = answers.only_view()
    texts = view.completions()
    for sample_id, samples in zip(answers.table["sample_id"], texts, strict=True):
        if len(samples) < k:
            raise ConfigError(
                f"views.{view.name}: {sample_id} has {len(samples)} samples, but the method reads the first {k}. "
                "Sample more for the view, or lower the method's k."
            )
    return [[_canonical_answer(text) for text in samples[:k]] for samples in texts]


def platt_notes(score: np.ndarray, validation: Examples, *, module: str, k: int) -> dict[str, Any]:
    """Fit the Platt map of `score` [n] on the validation answers; the notes that record it.

    Raises:
        CalibrationError: There is no finite map; the message names the reader, the partition and its counts.
    """
    try:
        found = fit_platt(score, validation.correct)
    except CalibrationError as error:
        raise CalibrationError(
            f"{module} with k = {k}, partition 'validation', {int(validation.correct.sum())} correct of "
            f"{len(validation)} answers: {error} Give the validation split more images, or choose another k."
        ) from error
    return {"platt_slope": found.slope, "platt_intercept": found.intercept, "platt_clipped": found.clipped}


def platt_scores(reader: FittedReader, score: np.ndarray) -> Scores:
    """Return `score` [n] with the confidence of the reader's Platt map; nothing is imputed."""
    notes = reader.weights.notes
    platt = Platt(slope=notes["platt_slope"], intercept=notes["platt_intercept"], clipped=notes["platt_clipped"])
    return Scores(score=score, confidence=platt.confidence(score), imputed=np.zeros(len(score), dtype=np.bool_))


def _canonical_answer(text: str) -> str | None:
    # The contract decides about confidences only, so the default one finds the answer of any actor.
    answer = parse(text).answer
    return None if answer is None else canonical(answer) or None
