"""Whether the completions of an engine were drawn from the policy, judged by the completions alone.

Log-probabilities of an engine may be right, and its completions drawn from another distribution: at another
temperature, from the likeliest tokens alone, or one for a whole group. Two things show it.

- **Surprise.** If tokens are drawn from the policy, the mean of -log p(token) is the mean of the entropies. Tokens that
  are too likely, or too unlikely, add evidence.
- **Copies.** A completion that was made before, of the same question, is evidence if it is improbable.

Evidence is a log-likelihood ratio in nats, or a lower bound of one (an e-value: its expected exponential is at most 1
where all is right). As in CUSUM, it begins again at 0 when it becomes negative, so that a fault is found whenever it
begins. A step whose evidence reaches `ALARM` ends the training. Of n steps of a right training, at most 3 n in 10^9 do,
by Ville's inequality, whatever the policy is and however long completions are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from dualread.models.actor import Rollout

ALARM = 9 * np.log(10)
# How far from right a fault is for which the evidence of tokens is best: small ones take many tokens.
_TILTS = np.array([1 / 64, 1 / 16, 1 / 4, 1])
_LARGEST_SURPRISE = 4.0  # nats above the entropy; a larger one counts as this much
_COPIED = np.array([0.01, 0.5])  # shares of completions that are copies for which the evidence of copies is best
_GRID = np.concatenate([np.logspace(-12, -1, 2000), np.linspace(0.1, 1, 2000)])


@lru_cache
def _extremes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return entropies over `n` ids, and the largest variance of -log p(token) of each, in nats squared."""
    # Of all distributions with one entropy, those have the largest variance that have two probabilities only
    # (Lagrange), and of these, those in which one id has the probability 1 - r and all others share r equally.
    r = _GRID * (1 - 1 / n)
    of_others = np.log((n - 1) / r)  # -log p of each of them
    return r * of_others - (1 - r) * np.log1p(-r), r * (1 - r) * (of_others + np.log1p(-r)) ** 2


def of_tokens(log_probs: np.ndarray, entropies: np.ndarray, vocabulary: int, rounding: float) -> np.ndarray:
    """Return the evidence that drawn tokens are too likely, and that they are too unlikely, for each of 4 tilts [2, 4].

    `log_probs` [tokens] are in nats, `entropies` those of the distributions that tokens should be drawn from, over a
    `vocabulary` of so many ids. The mean of log-probabilities may be off by `rounding` nats.
    """
    surprise, variance = -log_probs - entropies, np.interp(entropies, *_extremes(vocabulary))
    too_likely = _tilted(-surprise - rounding, entropies.clip(1e-3), variance)
    capped = surprise.clip(max=_LARGEST_SURPRISE)
    too_unlikely = _tilted(capped - rounding, np.full_like(entropies, _LARGEST_SURPRISE), variance)
    return np.stack([too_likely, too_unlikely])


def _tilted(excess: np.ndarray, largest: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the sum over tokens of tilt x excess, less a bound of the log of its expected exponential (Bennett)."""
    each = _TILTS[:, None] * largest
    return (_TILTS[:, None] * excess - variance * (np.expm1(each) - each) / largest**2).sum(axis=1)


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Sums over the tokens of a forward pass, in nats; those of a step are added up.

    `difference` is the absolute one between the log-probabilities of loss and engine, `surprise` -log p by the loss,
    `evidence` that of `of_tokens` [2, 4].
    """

    tokens: int = 0
    difference: float = 0.0
    surprise: float = 0.0
    entropy: float = 0.0
    evidence: np.ndarray = field(default_factory=lambda: np.zeros((2, len(_TILTS))))

    @classmethod
    def of(
        cls, log_probs: np.ndarray, theirs: np.ndarray, entropies: np.ndarray, vocabulary: int, rounding: float
    ) -> "Pass":
        """Return the sums; `theirs` are the log-probabilities of the engine, other arguments as in `of_tokens`."""
        return cls(
            tokens=len(log_probs),
            difference=float(np.abs(log_probs - theirs).sum()),
            surprise=float(-log_probs.sum()),
            entropy=float(entropies.sum()),
            evidence=of_tokens(log_probs, entropies, vocabulary, rounding),
        )

    def __add__(self, other: "Pass") -> "Pass":
        return Pass(**{name: value + getattr(other, name) for name, value in vars(self).items()})


class Evidence:
    """The evidence of all steps so far; see the module."""

    def __init__(self) -> None:
        self._tokens, self._copies = np.zeros((2, len(_TILTS))), np.zeros(len(_COPIED))
        self._earlier: dict[str, set[int]] = {}  # hashes of completions, by question, of when it was last asked

    def of_copies(self, questions: Sequence[str], drawn: Sequence[Rollout], top_p: float) -> np.ndarray:
        """Return the evidence that completions of a step are copies of earlier ones, for two shares of copies [2]."""
        evidence, before = np.zeros(len(_COPIED)), {name: self._earlier.pop(name, set()) for name in set(questions)}
        for name, rollout in zip(questions, drawn, strict=True):
            made = self._earlier.setdefault(name, set())
            known, ids = before[name] | made, hash(tuple(rollout.token_ids))
            if known:
                # With top_p, a token is up to 1 / top_p times as probable as the policy says.
                log_prob = min(0.0, sum(rollout.log_probs) - len(rollout.token_ids) * np.log(top_p))
                copied = np.log(_COPIED / len(known)) - log_prob if ids in known else -np.inf
                evidence += np.logaddexp(copied, np.log1p(-_COPIED))
            made.add(ids)
        return evidence

    def fault(self, step: Pass, copies: np.ndarray, top_p: float) -> str | None:
        """Add the evidence of a step; return what is wrong if all of it suffices for an alarm."""
        self._tokens = self._tokens.clip(0) + step.evidence
        self._copies = self._copies.clip(0) + copies
        if top_p < 1:
            self._tokens[0] = 0  # tokens have to be likelier than those of the whole distribution
        if _in_all(self._copies) > ALARM:
            return "too many are copies of others of their question, or of the step in which it was last asked"
        too_likely, too_unlikely = _in_all(self._tokens) > ALARM
        if too_likely or too_unlikely:
            how = (
                "likely, as at a lower temperature or a smaller top_p"
                if too_likely
                else "unlikely, as at a higher temperature"
            )
            return (
                f"-log p(token) is {step.surprise / step.tokens:.3g} nats on average over {step.tokens} tokens,"
                f" expected about their entropy, {step.entropy / step.tokens:.3g}. Over the last steps, tokens are too"
                f" {how}"
            )
        return None


def _in_all(evidence: np.ndarray) -> np.ndarray:
    """Return the evidence where all of the last axis, of tilts or shares, count equally."""
    return np.logaddexp.reduce(evidence, axis=-1) - np.log(evidence.shape[-1])
