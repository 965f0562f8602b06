"""DCPO: GRPO with two advantages per completion, for its answer and for its confidence (Ma 2026, arXiv 2603.09117).

The advantage of tokens before the confidence block is the group-normalized reward z + R_fmt. That of tokens in the
block is the group-normalized calibration reward R_c (`rewards/dcpo.py`; DualRead, app:baseline_protocols). The released
code assigns the two advantages the other way round and forms groups by position; this implementation follows the paper.

The block starts with the token that holds the first character of the last `<confidence>`, even if the token holds
earlier characters, too, and ends with the end-of-turn token; R_fmt penalizes earlier repetitions of the tag. A
completion without the tag has no block. If a prompt is drawn twice in a step, its 2 G completions are one group, on
whatever processes. Other choices: docs/choices.md, "DCPO".
"""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from dualread.errors import ConfigError
from dualread.grading.answers import character_spans
from dualread.schema.base import AS_GIVEN, Share
from dualread.training.job import Job
from dualread.training.rewards.base import Verdict
from dualread.training.settings import TrainingSettings
from dualread.training.trainer import Algorithm, log_terms, run

if TYPE_CHECKING:
    from dualread.training._grpo_trainer import ActorTrainer

_EPSILON = 1e-4  # as in TRL


class Settings(TrainingSettings):
    """How an actor is trained."""

    gamma: Annotated[Share, AS_GIVEN]
    """Weight of the group's accuracy, beside the answer's own correctness, in what the confidence should be."""


def train(job: Job) -> list[dict[str, Any]]:
    """Train an actor from `job.checkpoint`, save it to `job.out`, and return its log."""
    if not hasattr(job.reward, "calibration_reward"):
        raise ConfigError(
            f"training dcpo: reward {job.reward.__name__} defines no `calibration_reward`. Expected a reward that does."
            " Set the actor's reward to dcpo."
        )
    return run(job, Dcpo(job.reward, job.settings))


class Dcpo(Algorithm):
    """GRPO with an advantage of its own for each token."""

    teaches_without_spread = True

    def __init__(self, reward: ModuleType, settings: Settings):
        """Take the reward's module, and how an actor is trained."""
        self._reward, self._gamma, self._scale = reward, settings.gamma, settings.scale_rewards
        self._token_advantages: list[list[float]] = []  # of the completions of this process and step

    def columns(self, trainer: "ActorTrainer", completions: Sequence[Sequence[int]]) -> dict[str, list[int]]:
        """Return where the confidence block of each completion starts."""
        decode = trainer.opened.encoder.decode
        return {"confidence_start": [confidence_start(ids, decode) for ids in completions]}

    def note_rewards(
        self,
        verdicts: Sequence[Verdict],
        rewards: Sequence[float],
        log_metric: Callable[[str, float], None],
        *,
        sample_id: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        confidence_start: Sequence[int],
        **columns: Any,
    ) -> None:
        """Compute the advantages of the tokens of each completion."""
        from accelerate import PartialState
        from accelerate.utils import gather_object

        # Gathered from all processes, as the rewards are: a group may be spread over several.
        everyone = gather_object(list(zip(sample_id, verdicts, rewards, strict=True)))
        groups, judged, values = (list(column) for column in zip(*everyone, strict=True))
        calibration = self._reward.calibration_reward(judged, groups=groups, gamma=self._gamma)
        log_terms({"calibration": calibration}, log_metric)
        first = PartialState().process_index * len(rewards)
        mine = slice(first, first + len(rewards))
        of_tokens = zip(
            completion_ids,
            confidence_start,
            group_normalized(values, groups, self._scale)[mine],
            group_normalized(calibration, groups, self._scale)[mine],
            strict=True,
        )
        self._token_advantages = [
            [answer] * start + [confidence] * (len(ids) - start) for ids, start, answer, confidence in of_tokens
        ]

    def advantages(self, output: Mapping[str, Any]) -> Any:
        """Return the advantages of tokens [n, tokens], 0 for padding."""
        advantages = output["advantages"].new_zeros(output["completion_ids"].shape)
        for row, values in zip(advantages, self._token_advantages, strict=True):
            row[: len(values)] = row.new_tensor(values)
        return advantages


def group_normalized(values: Sequence[float], groups: Sequence[str], scale: str = "group") -> list[float]:
    """Return (value - mean) / (standard deviation + 1e-4) within each group, in the order of `values`.

    This is the sample standard deviation (ddof 1), as in TRL: of the group, or as `scale` says, of all values ("batch")
    or none. The only value of a group becomes 0. Members of a group need not be adjacent.
    """
    array, index = np.array(values, dtype=float), np.unique(groups, return_inverse=True)[1]
    normalized = np.zeros(len(array))
    for group in range(index.max(initial=-1) + 1):
        rows = index == group
        if rows.sum() > 1:
            normalized[rows] = array[rows] - array[rows].mean()
            if scale != "none":
                normalized[rows] /= (array if scale == "batch" else array[rows]).std(ddof=1) + _EPSILON
    return normalized.tolist()


def confidence_start(token_ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> int:
    """Return the position of the first token of the confidence block, or `len(token_ids)` if there is no block."""
    text, spans = character_spans(token_ids, decode)
    start = text.rfind("<confidence>")
    if start < 0:
        return len(token_ids)
    return next(t for t, (_, right) in enumerate(spans) if right > start)
