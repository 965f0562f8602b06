"""DCPO: GRPO with two advantages per completion, for its answer and for its confidence (Ma 2026, arXiv 2603.09117).

The advantage of tokens before the confidence block is the group-normalized reward z + R_fmt. That of tokens in the
block is the group-normalized calibration reward R_c (`rewards/dcpo.py`; DualRead, app:baseline_protocols). The released
code assigns the two advantages the other way round and forms groups by position; this implementation follows the paper.

Choices that the paper leaves open:
- The block starts with the token that holds the first character of the last `<confidence>`, even if the token holds
  earlier characters, too. It ends with the completion, including the end-of-turn token. Earlier repetitions of the tag
  are outside the block; R_fmt penalizes them. A completion without the tag has no block.
- A group consists of all completions of a step with the same prompt, on any process. If a prompt is drawn twice in a
  step, its 2 G completions are one group.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Annotated, Any

import numpy as np

from dualread.errors import ConfigError
from dualread.grading.spans import character_spans
from dualread.models.backbones.opened import Opened
from dualread.schema.base import AS_GIVEN, Share
from dualread.training.job import Job
from dualread.training.rewards.base import verdicts
from dualread.training.settings import TrainingSettings
from dualread.training.trainer import log_terms, run

_EPSILON = 1e-4  # as in TRL


class Settings(TrainingSettings):
    """How an actor is trained."""

    gamma: Annotated[Share, AS_GIVEN]
    """Weight of the group's accuracy, beside the answer's own correctness, in what the confidence should be."""


def train(job: Job) -> list[dict[str, Any]]:
    """Train an actor from `job.checkpoint`, save it to `job.out`, and return its log.

    Raises:
        ConfigError: The actor's reward defines no `calibration_reward`.
    """
    if not hasattr(job.reward, "calibration_reward"):
        raise ConfigError(
            f"training dcpo: reward {job.reward.__name__} defines no `calibration_reward`. Expected a reward that does."
            " Set the actor's reward to dcpo."
        )
    gamma = job.chosen(Settings).gamma
    return run(job, lambda trainer: _segmented(trainer, job.reward, gamma))


def _segmented(trainer: type, reward: ModuleType, gamma: float) -> type:
    from accelerate.utils import gather_object

    class Segmented(trainer):
        has_own_advantages = True
        _opened: Opened  # of this step; `trainer` sets it

        def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
            rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
            rows = [
                (row["sample_id"], completion[0]["content"], row["reference_answers"])
                for row, completion in zip(inputs, completions, strict=True)
            ]
            # Gathered from all processes, as the rewards are: a group may be spread over several.
            groups, texts, references = zip(*gather_object(rows), strict=True)
            judged = verdicts(texts, references, reward.CONTRACT)
            calibration = reward.calibration_reward(judged, groups=groups, gamma=gamma)
            log_terms({"calibration": calibration}, self._log_metric)
            first = self.accelerator.process_index * len(prompts)
            mine = slice(first, first + len(prompts))
            of_answers = group_normalized(rewards[:, 0].tolist(), groups)[mine]
            of_confidences = group_normalized(calibration, groups)[mine]
            self._token_advantages = []
            for ids, answer, confidence in zip(completion_ids_list, of_answers, of_confidences, strict=True):
                start = confidence_start(ids, self._opened.encoder.decode)
                self._token_advantages.append([answer] * start + [confidence] * (len(ids) - start))
            return rewards

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            advantages = output["advantages"].new_zeros(output["completion_ids"].shape)
            for row, values in zip(advantages, self._token_advantages, strict=True):
                row[: len(values)] = row.new_tensor(values)
            return {**output, "advantages": advantages}

    return Segmented


def group_normalized(values: Sequence[float], groups: Sequence[str]) -> list[float]:
    """Return (value - mean) / (standard deviation + 1e-4) within each group, in the order of `values`.

    This is the sample standard deviation (ddof 1), as in TRL. The only value of a group becomes 0. Members of a group
    need not be adjacent.
    """
    array, index = np.array(values, dtype=float), np.unique(groups, return_inverse=True)[1]
    normalized = np.zeros(len(array))
    for group in range(index.max(initial=-1) + 1):
        rows = index == group
        if rows.sum() > 1:
            normalized[rows] = (array[rows] - array[rows].mean()) / (array[rows].std(ddof=1) + _EPSILON)
    return normalized.tolist()


def confidence_start(token_ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> int:
    """Return the position of the first token of the confidence block, or `len(token_ids)` if there is no block."""
    text, spans = character_spans(token_ids, decode)
    start = text.rfind("<confidence>")
    if start < 0:
        return len(token_ids)
    return next(t for t, (_, right) in enumerate(spans) if right > start)
