"""Print what the peer medvlm computes of small given inputs: the literal values of tests/readers/test_peer.py.

    python -m venv peer && peer/bin/pip install medvlm==0.1.0 hedge-bench==0.1.2
    peer/bin/python benchmarks/peer_numbers.py

medvlm (pypi.org/project/medvlm) has methods of the same names as ours, and takes VASE and RadFlag from hedge-bench.
Nothing of this library is imported.
"""

import json

import numpy as np
from hedge_bench import algorithms  # pyright: ignore[reportMissingImports]
from medvlm import api  # pyright: ignore[reportMissingImports]
from medvlm.confidence import sampling, verbalized  # pyright: ignore[reportMissingImports]
from medvlm.evaluation.calibration import CalibrationPipeline, parse_yes_no  # pyright: ignore[reportMissingImports]

# Validation answers: their confidence, a hallucination score, and whether they are correct; and confidences to map.
CONFIDENCES = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5, 0.4, 0.3, 0.2]
HALLUCINATION = [0.1, 0.4, 1.2, 0.2, 0.6, 1.5, 0.3, 1.1, 0.9, 0.8, 1.4, 1.3]
CORRECT = [1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0]
ASKED, ASKED_HALLUCINATION = [0.97, 0.82, 0.55, 0.25], [0.2, 1.0, 0.5, 1.6]
MAPS = ("temperature_scaling", "platt_confidence", "isotonic")
# Evenly spread, so that bins of equal width, which the peer has, hold equally many answers, as ours do.
EVEN = [(2 * k + 1) / 30 for k in range(15)]
EVEN_CORRECT = [0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1]
EVEN_ASKED = [0.1, 0.3, 0.5, 0.7, 0.9]
# The clusters of a committed answer, of four samples on the image, and of one on each of four distorted images; and
# the mean log-probability of each sample. In the second case, no sample says what the committed answer says.
SAMPLED = {
    "first": ([0, 0, 0, 1, 2, 0, 1, 1, 3], [-0.1, -0.2, -0.9, -1.6], [-0.3, -0.5, -0.4, -2.0]),
    "second": ([0, 1, 1, 2, 1, 1, 2, 2, 2], [-0.1, -0.2, -0.9, -1.6], [-0.3, -0.5, -0.4, -2.0]),
}
STATED = ("85%", "100%", "7", "62 %", "1%", "1", "0.5%", "150%", "-5%")
IN_WORDS = ("almost certain", "likely", "unlikely", "not likely")
ANSWERS = (("liver", "liver"), ("not liver", "liver"), ("left lung", "lung"), ("no", "nodule"))
YES_OR_NO = ("yes", "no", "normal", "not sure", "nodule")


def main() -> None:
    """Print one JSON object."""
    found = {
        "maps": {name: mapped(name, CONFIDENCES, ASKED) for name in MAPS},
        "bins": mapped("histogram_binning", EVEN, EVEN_ASKED, EVEN_CORRECT),
        "hac": {name: lowered(name) for name in ("hac_platt", "hac_gate")},
        "sampled": {name: of_samples(*given) for name, given in SAMPLED.items()},
        "stated": {text: verbalized.parse_confidence_numeric(f"Confidence: {text}") for text in STATED},
        "words": {text: verbalized.parse_confidence_linguistic(f"Confidence: {text}") for text in IN_WORDS},
        "correct": {" for ".join(pair): sampling.check_answer_correct(*pair, "open") for pair in ANSWERS},
        "yes or no": {text: parse_yes_no(text) for text in YES_OR_NO},
        "a confidence of 0": mapped("histogram_binning", [0.0, 0.0, 0.5, 1.0], [0.0], [1, 1, 0, 1]),
        "judged where it is fitted": judged_where_fitted(),
    }
    print(json.dumps(found, indent=4))


def mapped(method: str, fitted: list[float], asked: list[float], correct: list[int] | None = None) -> list[float]:
    pipeline = CalibrationPipeline(method, num_bins=5).fit(np.array(fitted), np.array(correct or CORRECT))
    return pipeline.transform(np.array(asked)).tolist()


def lowered(method: str) -> list[float]:
    """Return HAC without the peer's penalty on the weight of the hallucination score, which has no unit."""
    CalibrationPipeline.HAC_LAMBDA = 0.0
    pipeline = CalibrationPipeline(method)
    pipeline.fit(np.array(CONFIDENCES), np.array(CORRECT), hallucination_scores=np.array(HALLUCINATION))
    return pipeline.transform(np.array(ASKED), hallucination_scores=np.array(ASKED_HALLUCINATION)).tolist()


def of_samples(clusters: list[int], clean: list[float], distorted: list[float]) -> dict[str, float]:
    n = len(clean)
    entropy, p = algorithms.sentence_semantic_entropy(clean, clusters[1 : 1 + n])
    _, q = algorithms.sentence_semantic_entropy(distorted, clusters[1 + n :])
    return {
        "entropy": float(entropy),
        "radflag": algorithms.radflag(clusters, n),
        "vase": algorithms.vase(n, clusters, p, q, 1.0),
    }


def judged_where_fitted() -> dict[str, float]:
    """Return the peer's calibration error of coins, before and after its binning; their outcomes are random."""
    rng = np.random.default_rng(0)
    confidence, correct = rng.uniform(size=200), rng.random(200) < 0.5
    report = api.evaluate_calibration(correct, confidence, num_bins=10, calibration_method="histogram_binning")
    return {"before": report["raw_metrics"]["ece"], "after": report["ece"]}


if __name__ == "__main__":
    main()
