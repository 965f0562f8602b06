"""VL-Calibration: separate confidences in vision and in reasoning, rewarded together (Xiao 2026, arXiv 2604.09529).

R = z - 2 (Phi - z)^2 + 0.4 fmt - 0.4 (c_v - S)^2

z is 1 for a correct answer and 0 otherwise, Phi is the harmonic mean of the two stated confidences, and c_v is the
stated vision confidence. S is the visual certainty that `dualread.training.vl_calibration` measures on the
tokens of the <vision> block. It is high if the tokens depend on the image (large KL between the predictions with the
clean and with the blackened image) and if the model is certain of them (small entropy H).

fmt is 1 if each of the five parts occurs exactly once, is not empty, and is in the prompt's order, and if
`grading.parse` finds the answer and the confidence valid; otherwise it is 0. Text between the parts is ignored. As in
the released code, an undefined term has its worst value: (Phi - z)^2 = 1 without a valid confidence, (c_v - S)^2 = 1
without a valid confidence or without a vision block. Omitting a part therefore never pays.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dualread.grading.parse import block_span
from dualread.training.rewards.base import Verdict, or_nan

CONTRACT = "dual"
PARTS = ("vision", "reasoning", "answer", "analysis", "confidence")

# Constants of the method, with the values of its released code (github.com/Mr-Loevan/VL-Calibration).
ANSWER_WEIGHT = 2.0
FORMAT_WEIGHT = 0.4
VISION_WEIGHT = 0.4
WORST_ERROR = 1.0
EPSILON = 1e-8
LOWEST_TOKEN_WEIGHT, HIGHEST_TOKEN_WEIGHT = 0.9, 1.1
_NO_SPREAD = 1e-6


def reward(verdicts: Sequence[Verdict], *, visual_certainty: Sequence[float | None], **columns: Any) -> list[float]:
    """Return R in [-2.4, 1.4] for each completion; `visual_certainty` is S in [0, 1], None without a vision block."""
    return [_reward(verdict, certainty) for verdict, certainty in zip(verdicts, visual_certainty, strict=True)]


def terms(
    verdicts: Sequence[Verdict],
    *,
    visual_certainty: Sequence[float | None],
    visual_kl: Sequence[float | None],
    visual_entropy: Sequence[float | None],
    **columns: Any,
) -> dict[str, list[float]]:
    """Return the terms for the train log, NaN if undefined; `five_parts` is fmt, and flags are 0 or 1."""
    return {
        "five_parts": [float(has_five_parts(v)) for v in verdicts],
        "vision_confidence": or_nan([_vision_confidence(v) for v in verdicts]),
        "visual_certainty": or_nan(visual_certainty),
        "visual_kl": or_nan(visual_kl),
        "visual_entropy": or_nan(visual_entropy),
        "no_vision_block": [float(s is None) for s in visual_certainty],
    }


def has_five_parts(verdict: Verdict) -> bool:
    """Return whether the completion has the five parts that the VL-Calibration prompt asks for (fmt)."""
    completion = verdict.completion
    spans = [block_span(completion, part) for part in PARTS]
    filled = [span for span in spans if span is not None and completion[span[0] : span[1]].strip()]
    return verdict.valid and len(filled) == len(PARTS) and all(a[1] < b[0] for a, b in pairwise(filled))


def visual_certainty(kl: Sequence[float | None], entropy: Sequence[float | None]) -> list[float | None]:
    """Return S = sigmoid(zscore(log(KL + 1e-8) - log(H + 1e-8))) of each completion; None without a vision block.

    `kl` and `entropy` are means over each completion's vision tokens, in nats. The z-score is over the completions with
    a vision block. S is relative to the other completions of the batch, so the whole batch has to be passed in one
    call. If there is no spread, or a single completion, every S is 0.5.
    """
    pairs = [(k, h) for k, h in zip(kl, entropy, strict=True) if k is not None and h is not None]
    standing = iter(_standing(*np.array(pairs).reshape(-1, 2).T))
    return [None if k is None else float(next(standing)) for k in kl]


def token_weights(kl: np.ndarray, entropy: np.ndarray) -> np.ndarray:
    """Return w = 1.1 - 0.2 sigmoid(zscore(log(KL + 1e-8) - log(H + 1e-8))) in [0.9, 1.1] of one completion's n tokens.

    `kl` and `entropy` are those of each token in nats [n]. The less one depends on the image, the larger its weight.
    The z-score is over the tokens of the completion's vision block, so that weights shift credit within a block and not
    between completions. The token of a block with a single token has weight 1. (The released code standardizes over all
    tokens of the completion, although only the vision tokens are weighted.)
    """
    return HIGHEST_TOKEN_WEIGHT - (HIGHEST_TOKEN_WEIGHT - LOWEST_TOKEN_WEIGHT) * _standing(kl, entropy)


def _standing(kl: np.ndarray, entropy: np.ndarray) -> np.ndarray:
    """Return the sigmoid of the z-score of log KL - log H (population standard deviation; z = 0 without spread)."""
    score = np.log(kl + EPSILON) - np.log(entropy + EPSILON)
    if not len(score) or score.std() < _NO_SPREAD:
        return np.full(len(score), 0.5)
    return 1 / (1 + np.exp((score.mean() - score) / score.std()))


def _reward(verdict: Verdict, certainty: float | None) -> float:
    z, phi, seen = float(verdict.correct), verdict.parsed.confidence, _vision_confidence(verdict)
    answer_error = WORST_ERROR if phi is None else (phi - z) ** 2
    vision_error = WORST_ERROR if seen is None or certainty is None else (seen - certainty) ** 2
    fmt = float(has_five_parts(verdict))
    return z - ANSWER_WEIGHT * answer_error + FORMAT_WEIGHT * fmt - VISION_WEIGHT * vision_error


def _vision_confidence(verdict: Verdict) -> float | None:
    """Return c_v in [0, 1], or None if the confidence is invalid."""
    return None if verdict.parsed.parts is None else verdict.parsed.parts[0]
