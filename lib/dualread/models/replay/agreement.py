"""Tells a replay of the model that generated from a replay of another model, or of other inputs.

Generation and replay of one model differ by rounding alone. How much that is depends on the model and on the text: in
bfloat16 a hundred times more than in float32, and more with every layer. It is therefore measured: some completions are
read twice more, in the model's own precision and in float32. A replay agrees if it differs from its generation by at
most `RATIO` times that.

The check finds other inputs and models that learned much. It cannot exclude an actor that is close to the right one;
digests do. docs/choices.md, "Replay", has what was measured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl

from dualread.errors import ReplayDisagreementError
from dualread.models import own_pass
from dualread.models.actor import Request
from dualread.models.backbones.checkpoint import Opened
from dualread.models.replay.replayed import Replayed
from dualread.schema.replay import Agreement

T = TypeVar("T")
RATIO = 2.0
GAP_RATIO = 30.0  # a greedy token may be worse than the replay's best one by this many times the rounding
SAMPLE = 32  # completions on which rounding is measured
IN_FLOAT32 = 2  # completions of a float32 model that transformers alone reads again
STATES = 1e-3  # the share of its length by which a vector may differ on average, or more where rounding explains it
STATES_RATIO = 10.0  # the vector of one answer may differ by this many times the mean that is allowed


def allowed(configured: Agreement, rounding: float) -> Agreement:
    """Return the bounds of the config, or wider ones where rounding, in nats, explains more."""
    wider = {
        "max_mean_log_prob_difference": max(configured.max_mean_log_prob_difference, RATIO * rounding),
        "argmax_tolerance": max(configured.argmax_tolerance, GAP_RATIO * rounding),
    }
    return configured.model_copy(update=wider)


def sample(n: int, most: int) -> list[int]:
    """Return the positions of at most `most` of `n` completions, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int)).tolist() if n else []


@dataclass(frozen=True, kw_only=True)
class ReferenceLogProbs:
    """What transformers alone says about the completions `rows`, a sample.

    `exact` has the log-probability of every token in float32, [tokens] per row; `rounding` is by how much the model's
    precision changes one, the mean over all tokens: 0 for a float32 model, whose rounding is far below the bounds of
    the config. Both are in nats.
    """

    rows: list[int]
    exact: list[np.ndarray]
    rounding: float

    @classmethod
    def of(
        cls, opened: Opened, requests: Sequence[Request], completions: Sequence[Sequence[int]]
    ) -> "ReferenceLogProbs":
        """Measure a sample; `requests` and `completions` are all of a shard."""
        import torch

        rows = sample(len(requests), IN_FLOAT32 if is_in_float32(opened) else SAMPLE)
        encoder, kind = opened.encoder, opened.encoder.facts.completion_type

        def read() -> list[np.ndarray]:
            asked = ((requests[i], completions[i]) for i in rows)
            of_rows = ((encoder.inputs(to.text, to.images, to.before), completion) for to, completion in asked)
            with torch.inference_mode():
                return [own_pass.log_probs(opened.model, *row, kind) for row in of_rows]

        log_probs, exact = in_both_precisions(opened, read) if rows else ([], [])
        return cls(rows=rows, exact=exact, rounding=own_pass.mean_difference(log_probs, exact) if rows else 0.0)

    def check(self, replayed: Sequence[Replayed], bounds: Agreement, *, where: str) -> None:
        """Check the replay's log-probabilities. Replay and generation share code: both may be wrong in the same way."""
        pairs, most = list(zip(self.rows, self.exact, strict=True)), bounds.max_mean_log_prob_difference
        differences = [np.abs(replayed[i].token_log_probs - exact).mean() for i, exact in pairs]
        difference = float(np.mean(differences)) if pairs else 0.0
        if not difference <= most:  # NaN is no agreement
            raise ReplayDisagreementError(
                f"{where}: log-probabilities of the replay differ from those of transformers alone by {difference:.2e}"
                f" on average over {len(pairs)} completions, expected at most {most:.0e}. Check the checkpoint's"
                " tokenizer, chat template and processor, and the version of transformers."
            )


def is_in_float32(opened: Opened) -> bool:
    """Return whether a model computes in float32, with weights that nobody has rounded."""
    import torch

    return opened.model.dtype == torch.float32 and not getattr(opened.model, "is_quantized", False)


def in_both_precisions(opened: Opened, read: Callable[[], T]) -> tuple[T, T]:
    """Return what is read in the model's own precision, and in float32: the same where that is its own."""
    values = read()
    if is_in_float32(opened):
        return values, values
    with own_pass.in_float32(opened.model):
        return values, read()


def check_states(
    readings: Sequence[Replayed],
    again: Sequence[Replayed],
    exact: Sequence[Replayed],
    names: Sequence[str],
    bounds: Agreement,
    *,
    where: str,
) -> None:
    """Check that the `readings` of some answers in another pass are those of a replay, which read them `again`.

    `exact` is what their replay in float32 read: by how much it differs is how much rounding explains. `bounds` are
    those of log-probabilities; errors call the answers by their `names`, and the shard `where`.
    """
    for name in sorted((readings[0].vectors if readings else {}).keys() - {"answer_log_prob"}):
        of_pass, of_replay, of_float32 = ([row.vectors[name] for row in group] for group in (readings, again, exact))
        apart, most = _apart(of_pass, of_replay), max(STATES, RATIO * _apart(of_replay, of_float32).mean())
        if not (apart.mean() <= most and apart.max() <= STATES_RATIO * most):  # NaN is no agreement
            order: list[int] = np.argsort(-apart).tolist()
            worst = ", ".join(names[i] for i in order[:5])
            raise _other_states(
                where,
                f"{name} differs by {apart.mean():.1%} of its length on average over {len(readings)} answers (rounding"
                f" explains at most {most:.1%}), by {apart.max():.1%} at most. Worst: {worst}",
            )
    if wrong := [n for n, a, b in zip(names, readings, again, strict=True) if a.n_image_tokens != b.n_image_tokens]:
        raise _other_states(where, f"{wrong[0]} has another number of image tokens")
    differences = [np.abs(a.token_log_probs - b.token_log_probs) for a, b in zip(readings, again, strict=True)]
    mean, most = float(np.concatenate(differences).mean()) if readings else 0.0, bounds.max_mean_log_prob_difference
    if not mean <= most:
        raise _other_states(
            where,
            f"log-probabilities differ by {mean:.2e} on average over {len(readings)} answers (rounding explains at most"
            f" {most:.0e})",
        )


def _apart(vectors: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> np.ndarray:
    """Return how far vectors are from others, in shares of the lengths of the others [n]; 0 where neither exists."""
    apart = np.array(
        [np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-6) for a, b in zip(vectors, other, strict=True)]
    )
    return np.where([np.isnan([a, b]).all() for a, b in zip(vectors, other, strict=True)], 0.0, apart)


def _other_states(where: str, what: str) -> ReplayDisagreementError:
    return ReplayDisagreementError(
        f"{where}: the states that the generation has kept are not those of a replay: {what}. Check that engine and"
        " replay use the same checkpoint, dtype, attention over image tokens and prompt, or leave out `replay.from`."
    )


def check(index: pl.DataFrame, bounds: Agreement, *, where: str) -> None:
    """Check that a replay, the index of its features, reproduces its generation; an error names the worst answers."""
    if index.height == 0:
        return
    n_tokens = index["token_log_probs"].list.len().to_numpy()
    mean = np.average(index["log_prob_mean_difference"].to_numpy(), weights=n_tokens)
    share = index["argmax_mismatches"].to_numpy().sum() / n_tokens.sum()
    most, most_share = bounds.max_mean_log_prob_difference, bounds.max_argmax_mismatch_share
    if mean <= most and share <= most_share:
        return
    worst = index.sort("log_prob_mean_difference", descending=True).head(5)["sample_id"].to_list()
    raise ReplayDisagreementError(
        f"{where}: the replay does not reproduce its generation: log-probabilities differ by {mean:.2e} on average "
        f"(rounding explains at most {most:.0e}), and {share:.2%} of the greedy tokens are worse than the replay's "
        f"best ones by more than {bounds.argmax_tolerance:.0e} (allowed: {most_share:.2%}). Worst: {', '.join(worst)}. "
        "Check that engine and replay use the same checkpoint, dtype, attention over image tokens and prompt."
    )
