"""Sentences for captions that explain the abbreviations of several tables, so that each table can be read alone."""

from collections.abc import Iterable, Sequence

from dualread.evaluation.metrics.grounding import ENOUGH_IMAGES, MINIMUM_IMAGES
from dualread.reporting.tables.format import number

INTERVALS = (
    "Intervals of AUROC and Brier come from resamples of the images, spread as Student's t on the logit; those of "
    "CCG-AUC leave out each source and each donor image in turn (jackknife, Student's t)."
)
SPREAD = "Mean over seeds, with the sample standard deviation as subscript where there are several seeds"
CCG = (
    "CCG-AUC: share of the decisive pairs in which confidence is higher on the source image than on the donor image; "
    "ties count one half, so .500 means no response to the image. The donor has the same question and another "
    "reference answer; a pair is decisive if the answer is correct on the source image and incorrect on the donor "
    "image. Natural: all decisive pairs; Strict: those with the same answer on both images."
)
ECE = (
    "ECE: expected calibration error over 15 bins. It has no interval, because it contains an error by chance, which "
    "resamples would add once more."
)
BY_CHANCE = (
    r"$^{\circ}$~An ECE that calibrated confidences reach by chance, in every seed: on these images, it is not above "
    "the 95th percentile of theirs. Means over data sets have no such mark."
)
CE2 = (
    r"CE$^2$: squared calibration error over 15 bins, from pairs of answers about different images, which contains no "
    "error by chance: it is 0 on average where confidences are calibrated, and can be negative. Its intervals leave "
    "out each image in turn."
)
AURC = "AURC: area under the risk-coverage curve."
HCE = "HCE@.9: high-confidence errors, the share of all answers that are incorrect with a confidence of at least .9."
OOD_SAID = "OOD: out of distribution."
NOTATION = (
    r"Cost in the paper's notation: $t$ is one generated answer, $\rho$ one pass over a prompt alone, "
    r"$\tau$ one replay of prompt and answer; --- where the paper gives none."
)


def few_images(sides: Iterable[str], detectable: Sequence[float] = ()) -> list[str]:
    """Return the sentences that explain the daggers of a table; none if there is none.

    Args:
        sides: The sides, source and donor, of which some printed value has few images; may repeat.
        detectable: The values that these samples tell from .5, where they are known.
    """
    if not (found := sorted(set(sides), reverse=True)):
        return []
    named = " or ".join(f"{side} images ({side[0]})" for side in found)
    few = rf"$^{{\dagger}}$~Underpowered: the decisive pairs have fewer than {MINIMUM_IMAGES} distinct {named}."
    if detectable:
        ends = sorted({number(value) for value in (min(detectable), max(detectable))})
        few += f" Such samples tell a CCG-AUC of {' to '.join(ends)} from .500 (power .8)."
    return [few, f"It takes about {ENOUGH_IMAGES} images on both sides to tell .600 from .500."]
