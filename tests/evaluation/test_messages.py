"""What the functions of evaluation say about input that they refuse, and about metrics that have no value."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from dualread.evaluation import answer_metrics, metrics
from dualread.evaluation.claim_filter import certified_filter
from dualread.evaluation.columns import Columns
from dualread.evaluation.costs import generation_cost, scoring_cost
from dualread.evaluation.decimals import as_float64
from dualread.evaluation.metric import measure
from dualread.evaluation.metrics import calibration_chance, calibration_error, grounding, selective
from dualread.evaluation.metrics.risk_control import certified_threshold
from dualread.evaluation.pair_metrics import detectable, ties
from dualread.evaluation.planning import Expected
from dualread.evaluation.statistics import kernels
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.statistics.drift import ConfidenceSample, drift
from dualread.evaluation.statistics.jackknife import Variance, over_retrained_seeds, pair_shifts
from dualread.evaluation.statistics.t_replicates import t_replicates
from tests.drawn import attempt
from tests.evaluation.statistics.test_drift import sample
from tests.evaluation.test_claim_filter import claims
from tests.evaluation.test_costs import generations
from tests.evaluation.test_pair_metrics import NATURAL, of_values
from tests.golden import check

TWO, RIGHT_WRONG = [0.2, 0.4], [True, False]
IMPUTED = Columns.of(pl.DataFrame({"confidence": [0.5, 0.5], "imputed": [True, True]}))
DRAWS = ClusterDraws(names=("x",), cluster_ids=("a", "b", "c"), replicates=1)
OF_CONFIDENCES = {
    **{name: getattr(metrics, name) for name in ("auroc", "ece", "brier", "aurc", "hce")},
    **{name: getattr(metrics, name) for name in ("calibration_in_the_large", "calibration_slope")},
    "within_question_auroc": lambda c, z: metrics.within_question_auroc(c, z, ["q"] * len(z)),
}
MALFORMED = {
    "nan": ([0.5, np.nan], RIGHT_WRONG),
    "below 0": ([0.5, -0.01], RIGHT_WRONG),
    "above 1": ([0.5, 1.0000001], RIGHT_WRONG),
    "infinite": ([0.5, np.inf], RIGHT_WRONG),
    "two lengths": ([0.5, 0.6, 0.7], RIGHT_WRONG),
    "floats for booleans": ([0.5, 0.6], [1.0, float("nan")]),
    "two dimensions": ([[0.5, 0.6]], [RIGHT_WRONG]),
    "no rows": ([], []),
}
NO_NUMBERS = {
    "None": [0.9, None],
    "NA": [0.9, pd.NA],
    "text": np.array(["0.9"]),
    "text among numbers": [0.9, "0.8"],
    "complex": np.array([1j]),
    "masked": np.ma.masked_array([0.1, 0.2], [0, 1]),
    "ragged": [[0.1], [0.2, 0.3]],
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
}


def certified(n, *, n_images=None, level=0.9, risk=0.1, right=None, **options):
    images = np.arange(n) % (n_images or n or 1)
    return certified_threshold([level] * n, right or [True] * n, images, target_risk=risk, **options)


def cost(*rows, n_samples=None):
    return generation_cost(generations(rows), ("a", "b"), n_samples=n_samples, where="view/samples")


CASES = {
    **{f"number: {name}": lambda bad=bad: as_float64(bad, name="c") for name, bad in NO_NUMBERS.items()},
    "accuracy: no rows": lambda: metrics.accuracy([]),
    "accuracy: 2": lambda: metrics.accuracy([0, 2]),
    "accuracy: None": lambda: metrics.accuracy([True, None]),
    "accuracy: masked": lambda: metrics.accuracy(np.ma.masked_array([True, False], [1, 0])),
    "auroc: one class": lambda: metrics.auroc(TWO, [True, True]),
    "auroc: the other class": lambda: metrics.auroc(TWO, [False, False]),
    "within_question_auroc: no question": lambda: metrics.within_question_auroc(TWO, RIGHT_WRONG, ["a", "b"]),
    "within_question_auroc: None": lambda: metrics.within_question_auroc(TWO, RIGHT_WRONG, ["q", None]),
    "in the large: one class": lambda: calibration_error.calibration_in_the_large(TWO, [True, True]),
    "in the large: an end": lambda: calibration_error.calibration_in_the_large([0.2, 1.0], RIGHT_WRONG),
    "slope: one class": lambda: calibration_error.calibration_slope(TWO, [True, True]),
    "slope: an end": lambda: calibration_error.calibration_slope([0.2, 1.0], RIGHT_WRONG),
    "slope: constant": lambda: calibration_error.calibration_slope([0.4] * 3, [True, False, True]),
    "slope: separated": lambda: calibration_error.calibration_slope([0.1, 0.2, 0.8], [False, False, True]),
    "slope: separated downwards": lambda: calibration_error.calibration_slope([0.1, 0.2, 0.8], [True, True, False]),
    "slope: separated with a tie": lambda: calibration_error.calibration_slope(
        [0.1, 0.5, 0.5, 0.8], [False, False, True, True]
    ),
    "slope: separated downwards with a tie": lambda: calibration_error.calibration_slope(
        [0.1, 0.5, 0.5, 0.8], [True, True, False, False]
    ),
    "squared error: lengths": lambda: calibration_chance.squared_calibration_error(TWO, RIGHT_WRONG, ["a"]),
    "squared error: no rows": lambda: calibration_chance.squared_calibration_error([], [], []),
    "squared error: nan": lambda: calibration_chance.squared_calibration_error(TWO, RIGHT_WRONG, [np.nan, 1.0]),
    "squared error: one image": lambda: calibration_chance.squared_calibration_error(TWO, RIGHT_WRONG, ["a", "a"]),
    "noise floor: one image": lambda: calibration_chance.ece_noise_floor(TWO, RIGHT_WRONG, np.array([3, 3]), 5, ("a",)),
    "natural: no decisive pair": lambda: grounding.natural_ccg_auc([0.5], [0.5], [True], [True]),
    "natural: nan": lambda: grounding.natural_ccg_auc([0.5], [np.nan], [True], [False]),
    "natural: above 1": lambda: grounding.natural_ccg_auc([0.5], [1.5], [True], [False]),
    "natural: lengths": lambda: grounding.natural_ccg_auc(TWO, TWO, [True], [False]),
    "strict: other answers": lambda: grounding.strict_ccg_auc([0.5], [0.5], [True], [False], ["a"], ["b"]),
    "strict: lengths": lambda: grounding.strict_decisive([True], [False], ["a", "b"], ["a", "b"]),
    "vrs: no rows": lambda: grounding.vrs([], []),
    "vbr: no rows": lambda: grounding.vbr([], []),
    "threshold: none": lambda: selective.threshold([0.9, 0.9, 0.1], [True, False, False], target_risk=0.1),
    "threshold: a risk of 10": lambda: selective.threshold([0.9], [True], target_risk=10),
    "coverage: no rows": lambda: selective.coverage([], 0.5),
    "kept risk: nothing is kept": lambda: selective.kept_risk([0.9], [True], threshold=0.95),
    "certified: none": lambda: certified(300, right=RIGHT_WRONG * 150),
    "certified: no rows": lambda: certified(0),
    "certified: 37 images": lambda: certified(37),
    "certified: 37 images, high": lambda: certified(37, level=0.99),
    "certified: two images": lambda: certified(200, n_images=2),
    "certified: too many answers": lambda: certified(60, n_images=20, risk=0.2, max_per_image=2),
    "certified: a risk of 0": lambda: certified(900, risk=0.0),
    "certified: a risk of -0.1": lambda: certified(1, risk=-0.1),
    "certified: a risk of 1": lambda: certified(1, risk=1.0),
    "certified: a delta of 0": lambda: certified(1, delta=0.0),
    "unique: no valid confidence": lambda: answer_metrics.unique_confidences(IMPUTED),
    "endpoints: no valid confidence": lambda: answer_metrics.endpoint_share(IMPUTED),
    "imputed: no rows": lambda: answer_metrics.imputed_share(IMPUTED.where(np.zeros(2, dtype=np.bool_))),
    "kernel: a cluster beyond the draws": lambda: kernels.auroc_kernel(
        np.array(TWO), np.array(RIGHT_WRONG), np.array([0, 2]), 2
    ),
    "replicates: a signed metric": lambda: t_replicates(np.array([-0.3, -0.1]), -0.2, df=4.0, widening=1.0, rest_on=5),
    "draws: not sorted": lambda: ClusterDraws(names=("x",), cluster_ids=("b", "a"), replicates=1),
    "draws: twice": lambda: ClusterDraws(names=("x",), cluster_ids=("a", "a"), replicates=1),
    "draws: another image": lambda: DRAWS.cluster_of(["elsewhere"]),
    **{
        f"drift: {name}": lambda of=of: drift(*of)
        for name, of in {
            "19 served images": (sample(0, 20), sample(1, 19)),
            "3 validation images": (sample(0, 3), sample(1, 30)),
            "equal confidences": (ConfidenceSample(np.full(40, 0.5), np.arange(40)),) * 2,
        }.items()
    },
    **{
        f"metric of a plugin: {value}": lambda value=value: measure(
            "open", "mine", lambda rows: value, IMPUTED, n=3, n_clusters=2
        )
        for value in (np.nan, np.inf)
    },
    # Every claim is unsupported, so that none may be kept; the risk of keeping none is 0.
    "filter: no claim is kept": lambda: certified_filter(
        claims([0.9, 0.8] * 100, [0, 0] * 100, np.repeat(np.arange(100), 2)), "any", target_risk=0.1
    ),
    **{
        f"detectable: {name}": lambda values=values: detectable(NATURAL)(of_values(values))
        for name, values in {"two pairs": [1.0, 0.0], "three wins": [1.0] * 3, "10 pairs": [1.0, 0.0] * 5}.items()
    },
    "ties: no decisive pair": lambda: ties(NATURAL)(of_values([])),
    "jackknife: no pair": lambda: pair_shifts(np.array([np.nan]), np.array([0]), np.array([1])),
    "jackknife: one seed": lambda: over_retrained_seeds(Variance(value=0.02, df=20.0, n=21.0), [0.1]),
    **{
        f"planned: {wrong}": lambda wrong=wrong: Expected(**{"accuracy": 0.7, "auroc": 0.8, **wrong})
        for wrong in (
            *({"accuracy": 0.0}, {"accuracy": 1.0}, {"auroc": 0.5}, {"auroc": 1.0}, {"per_image": 0}, {"per_image": 3}),
            {"per_image": 2, "max_per_image": 2},
        )
    },
    "cost: another answer": lambda: cost(("a", 0, 10, 3), ("b", 0, 20, 5), ("c", 0, 20, 5), n_samples=1),
    "cost: one sample of two": lambda: cost(("a", 0, 10, 3), ("b", 0, 20, 5), n_samples=2),
    "cost: two and one": lambda: cost(("a", 0, 10, 3), ("a", 1, 10, 3), ("b", 0, 20, 5)),
    "cost: one sample twice": lambda: cost(("a", 0, 10, 3), ("a", 0, 10, 3), ("b", 0, 20, 5), n_samples=1),
    "cost: two prompts": lambda: cost(("a", 0, 10, 3), ("a", 1, 11, 3), ("b", 0, 20, 5), ("b", 1, 20, 5)),
    "cost: choices of another answer": lambda: scoring_cost(
        pl.DataFrame({"sample_id": ["a", "c"], "n_prompt_tokens": [12, 12]}), ("a", "b"), where="p_true"
    ),
}


def said(case):
    _, error = attempt(case, Exception)
    return f"{type(error).__name__}: {error}"


def test_the_messages():
    found = {name: said(case) for name, case in CASES.items()}
    for name, given in MALFORMED.items():
        of_metrics = {said(lambda metric=metric, given=given: metric(*given)) for metric in OF_CONFIDENCES.values()}
        found[f"every metric of confidences: {name}"] = "\n".join(sorted(of_metrics))
    check(Path(__file__).with_name("messages.txt"), found)
