"""Synthetic answers with hidden states: question difficulty, and a signal that only the states carry.

`with_views` adds what the actor was asked or shown besides; every view carries some signal.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl

from dualread.artifacts.tensors import write_tensors
from dualread.readers.base import Answers, Examples, FittedReader, ViewAnswers, Weights, settings_of
from dualread.readers.state_head import HEAD_FILE
from dualread.schema.base import NoSettings

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
SAPLMA = MappingProxyType({**PSR, "hidden": [16, 8, 4]})
BICR = MappingProxyType(
    {**PSR, "brier_weight": 0.25, "ranking_weight": 0.1, "margin": 0.15, "dropout": 0.1, "clip_norm": 1.0}
)
P_STATE = MappingProxyType({"steps": 300, "learning_rate": 1e-2, "l2": 1e-4})
P_VISUAL = MappingProxyType({"steps": 300, "learning_rate": 1e-2, "l2": 1e-3})
PRIOR = MappingProxyType({"pseudo_counts": 5})
ROLES = ("fit",) * 7 + ("stop",) + ("calibration",) * 2
# sigmoid(2 * score - 1)
PLATT = Weights(notes={"platt_slope": 2.0, "platt_intercept": -1.0, "platt_clipped": False})


def write_head(actor: Path) -> None:
    """Write the head of an actor that was trained with a state signal."""
    weight = np.linspace(-1, 1, 2 * D, dtype=np.float32).reshape(2, D)
    write_tensors(actor / HEAD_FILE, {"weight": weight, "bias": np.array([0.5, -1.0], dtype=np.float32)}, {})


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
    other = np.random.default_rng([seed, 1])  # so that a new tensor leaves the old ones as they are
    tensors["h_think"] = tensors["h_close"] + 0.15 * np.random.default_rng([seed, 2]).normal(size=(n, D)).astype(
        np.float32
    )
    tensors["answer_log_prob"] = -other.exponential(np.where(correct, 0.3, 0.6)).astype(np.float32)[:, np.newaxis]
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
    tokens, tensors["token_entropies"] = _tokens(correct, np.random.default_rng([seed, 2]))
    answers = Answers(table=table, source=tensors.__getitem__, rows=np.arange(n), tokens=tokens)
    return Examples(answers=answers, correct=correct)


def _tokens(correct: np.ndarray, rng: np.random.Generator) -> tuple[pl.DataFrame, np.ndarray]:
    """Completions of 3 to 6 tokens, the first two of which are the answer; the entropies [n, 6] end in NaN."""
    lengths = rng.integers(3, 7, size=len(correct))
    log_probs = [-rng.exponential(0.3 if right else 0.6, size=n) for n, right in zip(lengths, correct, strict=True)]
    entropies = rng.exponential(np.where(correct, 0.5, 1.0)[:, np.newaxis], size=(len(correct), 6)).astype(np.float32)
    entropies[np.arange(6) >= lengths[:, np.newaxis]] = np.nan
    columns = {"token_log_probs": [of.tolist() for of in log_probs], "answer_positions": [[0, 1]] * len(correct)}
    schema = {"token_log_probs": pl.List(pl.Float32), "answer_positions": pl.List(pl.Int32)}
    return pl.DataFrame(columns, schema=schema), entropies


def with_views(given: Examples, names: Sequence[str], seed: int = 0) -> Examples:
    """The same answers with the views `names`; a view does not depend on which others there are."""
    views = tuple(_VIEWS[name](name, given, np.random.default_rng([seed, *name.encode()])) for name in names)
    return Examples(answers=replace(given.answers, views=views), correct=given.correct)


def _black(name: str, given: Examples, rng: np.random.Generator) -> ViewAnswers:
    """A replay without the signal, in a row order of its own."""
    states = given.answers.features("h_pre") + 0.1 * rng.normal(size=(len(given), D)).astype(np.float32)
    states[:, -1] = 0.1 * rng.normal(size=len(given))
    rows = rng.permutation(len(given))
    tensor = np.empty_like(states)
    tensor[rows] = states
    return ViewAnswers(name=name, source={"h_pre": tensor}.__getitem__, rows=rows)


def _layers(name: str, given: Examples, rng: np.random.Generator) -> ViewAnswers:
    """States of one layer."""
    return ViewAnswers(
        name=name, source={"h_ans_at_0.5": given.answers.features("h_ans")}.__getitem__, rows=np.arange(len(given))
    )


def _core(name: str, given: Examples, rng: np.random.Generator) -> ViewAnswers:
    """Entropies that are lower for correct answers, and rise more for them where the core is hidden."""
    whole = rng.exponential(np.where(given.correct, 0.5, 1.0))
    hidden = whole + rng.exponential(np.where(given.correct, 1.0, 0.5))
    columns = {"entropy": whole[:, np.newaxis], "entropy_hidden": hidden[:, np.newaxis]}
    tensors = {of: column.astype(np.float32) for of, column in columns.items()}
    return ViewAnswers(name=name, source=tensors.__getitem__, rows=np.arange(len(given)))


def _samples(name: str, given: Examples, rng: np.random.Generator) -> ViewAnswers:
    """Eight samples; correct answers are repeated more often, and one sample in ten is invalid."""
    texts = []
    for committed, correct in zip(given.answers.table["canonical_answer"], given.correct, strict=True):
        forms = [f"<answer>{committed or 'Answer 0'}</answer>", "<answer>other</answer>", "<answer>third</answer>", ""]
        shares = [0.7, 0.1, 0.1, 0.1] if correct else [0.4, 0.3, 0.2, 0.1]
        texts.append(tuple(rng.choice(forms, size=8, p=shares).tolist()))
    tokens = [[(-rng.exponential(size=2)).tolist() for _ in of_one] for of_one in texts]
    log_probs = pl.Series(tokens, dtype=pl.List(pl.List(pl.Float32)))
    return ViewAnswers(name=name, texts=tuple(texts), token_log_probs=log_probs)


def _replies(name: str, given: Examples, rng: np.random.Generator) -> ViewAnswers:
    percent = (40 + 20 * given.correct + rng.integers(40, size=len(given))).tolist()
    texts = tuple((f"{p}%" if rng.random() < 0.8 else "I do not know.",) for p in percent)
    return ViewAnswers(name=name, texts=texts)


def _choices(name: str, given: Examples, rng: np.random.Generator) -> ViewAnswers:
    names = ("Yes", "No") if name == "yes_no" else tuple(str(percent) for percent in range(101))
    log_probs = np.log(rng.dirichlet(np.ones(len(names)), size=len(given)))
    log_probs[:, 0] += given.correct
    return ViewAnswers(name=name, log_probs=dict(zip(names, log_probs.T, strict=True)))


_VIEWS = {
    "black": _black,
    "layers": _layers,
    "core": _core,
    "samples": _samples,
    "distorted": _samples,
    "yes_no": _choices,
    "integers": _choices,
}
_VIEWS |= dict.fromkeys(("asked_1", "asked_2", "asked_3"), _replies)


def relabeled(given: Examples, role: str, seed: int = 0) -> Examples:
    """The same answers with the labels of one role permuted."""
    correct = given.correct.copy()
    index = np.flatnonzero((given.answers.table["role"] == role).to_numpy())
    correct[index] = np.random.default_rng(seed).permutation(correct[index])
    return Examples(answers=given.answers, correct=correct)


def reader(module: str, weights: Weights, settings=None, parents=None) -> FittedReader:
    return FittedReader(
        module=module,
        settings=settings_of(module, settings) if settings else NoSettings(),
        weights=weights,
        parents=parents or {},
    )


def seen(n: int, *views: ViewAnswers) -> Answers:
    """Some answers with these views."""
    return replace(examples(n).answers, views=views)


def sampled(*rows: tuple[str | None, list[str]], role: str = "validation") -> Answers:
    """Answers from (committed canonical answer, sampled answers); "" is a sample without an answer block."""
    table = examples(len(rows), role=role).answers.table.with_columns(
        canonical_answer=pl.Series([committed for committed, _ in rows], dtype=pl.String)
    )
    texts = tuple(tuple(f"<answer>{a}</answer>" if a else "lost" for a in samples) for _, samples in rows)
    view = ViewAnswers(name="samples", texts=texts)
    return Answers(table=table, source={}.__getitem__, rows=np.arange(len(rows)), views=(view,))


def flat(value: float = -60.0, n: int = 3) -> dict[str, np.ndarray]:
    """The same log-probability of every percent."""
    return {str(percent): np.full(n, value) for percent in range(101)}


def percents(log_probs: dict[str, np.ndarray]) -> Answers:
    return seen(len(next(iter(log_probs.values()))), ViewAnswers(name="integers", log_probs=log_probs))
