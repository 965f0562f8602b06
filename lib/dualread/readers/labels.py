"""Labels without reference answers: whether another method's score of a training answer is high or low.

The scores are divided where the squared distances to the means of both sides add up to least. A linear probe of labels
by semantic uncertainty is a semantic entropy probe (Kossen et al., Semantic Entropy Probes, 2024).
"""

import numpy as np

from dualread.readers.answers import Examples
from dualread.readers.base import FittedReader, score

_LEARNED = ("fit", "stop")  # what a reader learns of; its calibration is by correctness


def labels_by(teacher: FittedReader, examples: Examples) -> tuple[Examples, str | None]:
    """Return the examples with the teacher's labels of the roles fit and stop, and None; or why there are none.

    A score at the split or above it stands in the place of a correct answer. Answers of these roles of which the
    teacher has no value are left out.
    """
    where = f"target ({teacher.provenance.get('method', teacher.module)})"
    if teacher.unfitted is not None:
        return examples, f"{where}: {teacher.unfitted}"
    scores, role = score(teacher, examples.answers), examples.answers.table["role"]
    learned = role.is_in(_LEARNED).to_numpy()
    known = learned & ~scores.imputed
    values = scores.score[known & (role == "fit").to_numpy()]
    if len(np.unique(values)) < 2:
        return examples, f"{where}: all {len(values)} training answers have one score, so that none is high or low."
    labels, rows = np.where(learned, scores.score >= best_split(values), examples.correct), known | ~learned
    return Examples(answers=examples.answers.take(np.flatnonzero(rows)), correct=labels[rows]), None


def best_split(values: np.ndarray) -> float:
    """Return the least value of the upper side, for at least two different values; the lowest of equally good ones."""
    ordered = np.sort(values.astype(np.float64))
    n, sums = np.arange(1, len(ordered)), np.cumsum(ordered)
    # The squared distances of a side are its squares minus (its sum)^2 / n, and all squares have one sum.
    explained = sums[:-1] ** 2 / n + (sums[-1] - sums[:-1]) ** 2 / (len(ordered) - n)
    between = ordered[1:] > ordered[:-1]
    return float(ordered[1:][between][np.argmax(explained[between])])
