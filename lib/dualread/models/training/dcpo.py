"""DCPO: GRPO with two advantages a completion, for its answer and for its confidence (Ma 2026, arXiv 2603.09117).

Tokens before the confidence block get the group-normalized reward z + R_fmt, tokens of the block the group-normalized
calibration reward R_c (`rewards/dcpo.py`; DualRead, app:baseline_protocols). The released code routes the two the other
way round and forms groups by position; we follow the paper.

What the paper leaves open, decided here:
- The block starts with the token that holds the first character of the last `<confidence>` (a token that straddles the
  boundary belongs to the block) and lasts to the end of the completion, the end-of-turn token included. Tags repeated
  before it are part of what R_fmt punishes. A completion without the tag has no block.
- A group is every completion of a step with the same prompt, on any process; a prompt drawn twice is one group of 2 G.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from dualread.errors import ConfigError
from dualread.grading.spans import character_spans
from dualread.models.training.trainer import Job, log_terms, run

SETTINGS_OF = "grpo"
SETTINGS = {"gamma": {"type": "number", "minimum": 0, "maximum": 1}}

_STABLE = 1e-4  # TRL's epsilon


def train(job: Job) -> list[dict[str, Any]]:
    """Train an actor from `job.checkpoint`, save it to `job.out`, and return its log.

    Raises:
        ConfigError: The actor's reward has no calibration part.
    """
    if not hasattr(job.reward, "calibration_reward"):
        raise ConfigError(
            f"training dcpo: reward {job.reward.__name__} defines no `calibration_reward`. Name one that does: dcpo."
        )
    return run(job, lambda trainer: _segmented(trainer, job.reward, job.settings["gamma"]))


def _segmented(trainer: type, reward: ModuleType, gamma: float) -> type:
    from accelerate.utils import gather_object

    class Segmented(trainer):
        def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
            rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
            rows = [
                (row["sample_id"], completion[0]["content"], row["reference_answers"])
                for row, completion in zip(inputs, completions, strict=True)
            ]
            # Of all processes, as the rewards are: a group may lie on several.
            groups, texts, references = zip(*gather_object(rows), strict=True)
            calibration = reward.calibration_reward(texts, references, groups=groups, gamma=gamma)
            log_terms({"calibration": calibration}, self._log_metric)
            first = self.accelerator.process_index * len(prompts)
            mine = slice(first, first + len(prompts))
            self._token_advantages = [
                token_advantages(confidence_start(ids, self._decode), len(ids), answer, confidence)
                for ids, answer, confidence in zip(
                    completion_ids_list,
                    group_normalized(rewards[:, 0].tolist(), groups)[mine],
                    group_normalized(calibration, groups)[mine],
                    strict=True,
                )
            ]
            return rewards

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            advantages = output["advantages"].new_zeros(output["completion_ids"].shape)
            for row, values in zip(advantages, self._token_advantages, strict=True):
                row[: len(values)] = row.new_tensor(values)
            return {**output, "advantages": advantages}

        def _decode(self, token_ids: Sequence[int]) -> str:
            return self._tokenizer.decode(token_ids, skip_special_tokens=True)

    return Segmented


def group_normalized(values: Sequence[float], groups: Sequence[str]) -> list[float]:
    """Return (value - mean) / (standard deviation + 1e-4) within each group, in the order of `values`.

    The deviation is the sample one (ddof 1), as in TRL; a value alone in its group gets 0. Members of a group need not
    be neighbours.
    """
    found, index = np.array(values, dtype=float), np.unique(groups, return_inverse=True)[1]
    normalized = np.zeros(len(found))
    for group in range(index.max(initial=-1) + 1):
        rows = index == group
        if rows.sum() > 1:
            normalized[rows] = (found[rows] - found[rows].mean()) / (found[rows].std(ddof=1) + _STABLE)
    return normalized.tolist()


def confidence_start(token_ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> int:
    """Return the position of the first token of the confidence block; `len(token_ids)` where there is no block.

    Args:
        token_ids: Generated ids.
        decode: Ids to text, special tokens left out.
    """
    text, spans = character_spans(token_ids, decode)
    start = text.rfind("<confidence>")
    if start < 0:
        return len(token_ids)
    return next(t for t, (_, right) in enumerate(spans) if right > start)


def token_advantages(start: int, n_tokens: int, answer: float, confidence: float) -> list[float]:
    """Return the advantage of each token: `answer` for those before `start`, `confidence` for the others."""
    return [answer] * start + [confidence] * (n_tokens - start)
