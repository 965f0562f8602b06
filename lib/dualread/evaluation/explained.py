"""What each metric that `dualread evaluate` knows means, as its declaration says."""

from dualread.evaluation.answer_metrics import ANSWER_METRICS, ECE, ECE_NOISE_FLOOR
from dualread.evaluation.further_metrics import FURTHER_METRICS
from dualread.evaluation.metric import Metric
from dualread.evaluation.pair_metrics import PAIR_METRICS

_DECLARED: dict[str, Metric] = {**ANSWER_METRICS, **FURTHER_METRICS, **PAIR_METRICS}
# What is said of a sample, not of confidences: first of its images and pairs, then of each CCG-AUC.
_OF_SAMPLE = (
    *("images_with_right", "images_with_wrong", "images_in_effect"),
    *("decisive_pairs", "source_images", "donor_images"),
    *("strict_decisive_pairs", "strict_source_images", "strict_donor_images", "natural_ties", "strict_ties"),
    *(f"{kind}_{what}" for kind in ("natural", "strict") for what in ("few_sources", "few_donors", "detectable")),
)

COUNTS = {name: _DECLARED[name].meaning for name in _OF_SAMPLE}
METRICS = {
    metric.name: metric.meaning
    for declared in _DECLARED.values()
    for metric in (declared, *([ECE_NOISE_FLOOR] if declared is ECE else []))
    if metric.meaning and metric.name not in COUNTS
}
