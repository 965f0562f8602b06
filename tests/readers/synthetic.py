"""Synthetic answers with hidden states: question difficulty, and a signal that only the states carry."""

from types import MappingProxyType

import numpy as np
import polars as pl

from dualread.readers._interface import Answers, Examples, FittedReader, Weights

D = 6
TENSORS = ("h_pre", "h_close", "h_ans", "h_global", "h_evid", "h_mid")
PSR = MappingProxyType(
    {
        "hidden": [16, 8],
        "learning_rate": 3e-3,
        "weight_decay": 2.017e-6,
        "batch_size": 32,
        "max_epochs": 40,
        "patience": 5,
    }
)
P_STATE = MappingProxyType({"steps": 300, "learning_rate": 1e-2, "l2": 1e-4})
P_VISUAL = MappingProxyType({"steps": 300, "learning_rate": 1e-2, "l2": 1e-3})
PRIOR = MappingProxyType({"pseudo_counts": 5})
ROLES = ("fit",) * 7 + ("stop",) + ("calibration",) * 2


def examples(
    n: int = 300, *, seed: int = 0, n_questions: int = D - 1, signal: float = 0.5, role: str | None = None
) -> Examples:
    """Questions of different difficulty; the states hold the question, and whether the answer is correct."""
    rng = np.random.default_rng(seed)
    question = rng.integers(n_questions, size=n)
    difficulty = np.linspace(-2, 2, n_questions)[question]
    correct = rng.random(n) < 1 / (1 + np.exp(-difficulty))
    base = np.eye(D)[question] + 0.15 * rng.normal(size=(n, D))
    base[:, -1] += signal * (correct - 0.5)
    tensors = {name: (base + 0.15 * rng.normal(size=(n, D))).astype(np.float32) for name in TENSORS}
    answer = rng.integers(3, size=n)
    table = pl.DataFrame(
        {
            "sample_id": [f"slake/train/{i:05d}" for i in range(n)],
            "dataset": "slake",
            "split": "train",
            "role": [role or ROLES[i % len(ROLES)] for i in range(n)],
            "condition": "original",
            "question_key": [f"question {q}" for q in question],
            "canonical_answer": [None if a == 0 else f"answer {a}" for a in answer],
            "verbalized_confidence": [None if i % 7 == 0 else (i % 100) / 100 for i in range(n)],
            "parse_status": ["invalid_confidence" if i % 7 == 0 else "valid" for i in range(n)],
        }
    )
    return Examples(answers=Answers(table=table, source=tensors.__getitem__, rows=np.arange(n)), correct=correct)


def relabeled(given: Examples, role: str, seed: int = 0) -> Examples:
    """The same answers with the labels of one role permuted."""
    correct = given.correct.copy()
    index = np.flatnonzero((given.answers.table["role"] == role).to_numpy())
    correct[index] = np.random.default_rng(seed).permutation(correct[index])
    return Examples(answers=given.answers, correct=correct)


def reader(module: str, weights: Weights, settings=None, parents=None) -> FittedReader:
    return FittedReader(module=module, settings=settings or {}, weights=weights, parents=parents or {})
