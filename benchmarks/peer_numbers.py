"""Print what a peer computes of small given inputs: the literal values of tests/readers/test_peer.py.

    python -m venv peer && peer/bin/pip install medvlm==0.1.0 hedge-bench==0.1.2
    peer/bin/python benchmarks/peer_numbers.py medvlm

The others have environments of their own: uqlm (uqlm==0.6.7), and torch_uncertainty (torch-uncertainty==0.13.0
lightning torchvision glest). medvlm (pypi.org/project/medvlm) has methods of the same names as ours, and takes VASE and
RadFlag from hedge-bench. Nothing of this library is imported.
"""

import argparse
import json
from typing import Any

import numpy as np

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
# Where uqlm is asked: a committed answer, samples, and the log-probabilities of an answer's tokens.
COMMITTED, SAMPLES = "liver", ["liver", "liver", "spleen", "lung", "lung", "liver", "kidney", "spleen"]
LOG_PROBS = [-0.1, -0.2, -0.9, -1.6]
STATED = ("85%", "100%", "7", "62 %", "1%", "1", "0.5%", "150%", "-5%")
IN_WORDS = ("almost certain", "likely", "unlikely", "not likely")
ANSWERS = (("liver", "liver"), ("not liver", "liver"), ("left lung", "lung"), ("no", "nodule"))
YES_OR_NO = ("yes", "no", "normal", "not sure", "nodule")


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers = {"medvlm": of_medvlm, "uqlm": of_uqlm, "torch_uncertainty": of_torch_uncertainty}
    parser.add_argument("peer", choices=peers)
    print(json.dumps(peers[parser.parse_args().peer](), indent=4))


def of_uqlm() -> dict[str, object]:
    """Return scores of a committed answer and its samples, which mean the same if they are equal, and metrics."""
    from uqlm.black_box import consistency, match  # pyright: ignore[reportMissingImports]
    from uqlm.calibration import evaluate  # pyright: ignore[reportMissingImports]
    from uqlm.nli import cluster, entropy_utils  # pyright: ignore[reportMissingImports]
    from uqlm.white_box import single_logprobs  # pyright: ignore[reportMissingImports]

    class Equality:
        def get_nli_results_batch(self, pairs: list[tuple[str, str]]) -> list[dict[str, float | bool]]:
            names = ("noncontradiction_score", "entailment", "entailment_score")
            return [dict.fromkeys(names, first == second) for first, second in pairs]

    def negentropy(texts: list[str]) -> float:
        _, uniform = entropy_utils.compute_response_probabilities(None, len(texts))
        _, _, shares, _ = cluster.SemanticClusterer(Equality()).evaluate(texts, response_probabilities=uniform)
        entropy = entropy_utils.compute_semantic_entropy(shares)
        return 1 - entropy_utils.normalize_entropy([entropy], len(texts) - 1)[0]

    tokens = [[{"logprob": value} for value in LOG_PROBS]]
    between = [c - 0.01 for c in CONFIDENCES]  # none is the edge of a bin
    judged, apart = (evaluate._evaluate_single_calibrator(c, CORRECT, 5, plot=False) for c in (CONFIDENCES, between))
    return {
        "exact match": match.MatchScorer._compute_score(COMMITTED, SAMPLES),
        "noncontradiction": consistency.ConsistencyScorer(nli=Equality()).evaluate([COMMITTED], [SAMPLES])[
            "noncontradiction"
        ],
        "negentropy": negentropy([COMMITTED, *SAMPLES]),
        "negentropy of samples alone": negentropy(SAMPLES),
        "tokens": single_logprobs.SingleLogprobsScorer().evaluate(tokens),
        "metrics": {name: judged[name] for name in ("brier_score", "log_loss", "ece")},
        "ece between edges": apart["ece"],
    }


def of_torch_uncertainty() -> dict[str, object]:
    """Return metrics of confidences; those of ten classes get the rest evenly, so that the first one is the largest."""
    import torch
    from torch_uncertainty.metrics import classification as metrics  # pyright: ignore[reportMissingImports]

    tied = [0.9, 0.9, 0.5, 0.5]

    def binary(
        metric: metrics.BrierScore, confidences: list[float] = CONFIDENCES, correct: list[int] = CORRECT
    ) -> float:
        metric.update(torch.tensor(confidences, dtype=torch.float64), torch.tensor(correct))
        return float(metric.compute())

    def of_classes(metric: Any, confidences: list[float] = CONFIDENCES, correct: list[int] = CORRECT) -> float:
        rows = torch.tensor([[c, *[(1 - c) / 9] * 9] for c in confidences], dtype=torch.float64)
        metric.update(rows, 1 - torch.tensor(correct))
        return float(metric.compute())

    sets = torch.tensor([[1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 1, 1]]).bool()
    coverage, size = metrics.CoverageRate(num_classes=3), metrics.SetSize()
    coverage.update(sets, torch.tensor([0, 1, 1, 2]))
    size.update(sets)
    adaptive = {"task": "multiclass", "num_classes": 10}
    return {
        "aurc": of_classes(metrics.AURC()),
        "aurc of ties": [of_classes(metrics.AURC(), tied, z) for z in ([1, 0, 1, 0], [0, 1, 0, 1])],
        "fpr95": binary(metrics.FPR95(pos_label=1)),
        "fpr95 of ties": binary(metrics.FPR95(pos_label=1), tied, [1, 0, 1, 0]),
        "brier": binary(metrics.BrierScore(num_classes=1)),
        "ece": {n: binary(metrics.CalibrationError(task="binary", num_bins=n)) for n in (5, 15)},
        "adaptive": {n: of_classes(metrics.AdaptiveCalibrationError(num_bins=n, **adaptive)) for n in (4, 5, 15)},
        "sets": [float(coverage.compute()), float(size.compute())],
    }


def of_medvlm() -> dict[str, object]:
    """Return maps, bins, scores of samples, and what the peer reads in words."""
    from medvlm.confidence import sampling, verbalized  # pyright: ignore[reportMissingImports]
    from medvlm.evaluation.calibration import parse_yes_no  # pyright: ignore[reportMissingImports]

    return {
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


def mapped(method: str, fitted: list[float], asked: list[float], correct: list[int] | None = None) -> list[float]:
    from medvlm.evaluation.calibration import CalibrationPipeline  # pyright: ignore[reportMissingImports]

    pipeline = CalibrationPipeline(method, num_bins=5).fit(np.array(fitted), np.array(correct or CORRECT))
    return pipeline.transform(np.array(asked)).tolist()


def lowered(method: str) -> list[float]:
    """Return HAC without the peer's penalty on the weight of the hallucination score, which has no unit."""
    from medvlm.evaluation.calibration import CalibrationPipeline  # pyright: ignore[reportMissingImports]

    CalibrationPipeline.HAC_LAMBDA = 0.0
    pipeline = CalibrationPipeline(method)
    pipeline.fit(np.array(CONFIDENCES), np.array(CORRECT), hallucination_scores=np.array(HALLUCINATION))
    return pipeline.transform(np.array(ASKED), hallucination_scores=np.array(ASKED_HALLUCINATION)).tolist()


def of_samples(clusters: list[int], clean: list[float], distorted: list[float]) -> dict[str, float]:
    from hedge_bench import algorithms  # pyright: ignore[reportMissingImports]

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
    from medvlm import api  # pyright: ignore[reportMissingImports]

    rng = np.random.default_rng(0)
    confidence, correct = rng.uniform(size=200), rng.random(200) < 0.5
    report = api.evaluate_calibration(correct, confidence, num_bins=10, calibration_method="histogram_binning")
    return {"before": report["raw_metrics"]["ece"], "after": report["ece"]}


if __name__ == "__main__":
    main()
