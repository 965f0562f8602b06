"""Rollouts by an engine, such as vLLM, whose log-probabilities have to be those of the loss in every step.

An engine has a copy of the weights, caches of its own, and another implementation of attention. A weight that it did
not get, a state that it kept, or image tokens that it reads causally change log-probabilities by .01 to .3 nats, and
training goes on: the completions are those of another policy, and no curve of rewards shows it. So the log-probability
that the engine gives each token is compared with that of the loss, before the step changes a weight. Both are computed
anyway. In float32 they differ by rounding, 1e-6 nats. In bfloat16 the bound is wider, and is measured.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from dualread.errors import TrainingError
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.backbones.opened import Opened
from dualread.models.rollouts.base import Rollouts
from dualread.models.training._lora import merged_weights
from dualread.models.training._reference import FLOAT32, RATIO
from dualread.models.training.job import Job
from dualread.seeding import derive_seed

DIFFERENCE = "rollouts/difference"  # in the trainer's log: the mean over the tokens of a step, in nats


@contextlib.contextmanager
def opened_rollouts(job: Job) -> Iterator[Rollouts | None]:
    """Open what samples for a job, before the trained model takes memory; None if the model itself samples."""
    if job.rollouts is None:
        yield None
        return
    settings = job.settings.rollout_settings or {}
    rollouts: Rollouts = job.rollouts.open_rollouts(job.checkpoint, job.model, settings, job.rollout_gpus)
    try:
        yield rollouts
    finally:
        rollouts.close()


def sampled_by(rollouts: Rollouts, trainer: type, job: Job) -> type:
    """Return a subclass of a compared trainer (`_reference.compared`) whose completions `rollouts` samples.

    Raises (while it trains):
        TrainingError: In some step, the log-probabilities differ by more than rounding.
    """
    from accelerate.utils import gather_object

    class SampledTrainer(trainer):
        is_sampled_by_an_engine = True
        _log_probs: Any  # of the last pass of the loss
        _opened: Opened  # of this step; `trainer` sets it
        _passes: list[tuple[float, int]]  # of this step: sum of the differences, and tokens

        def roll_out(
            self, prompts: Sequence[EncodedPrompt], *, first: int
        ) -> tuple[list[list[int]], list[list[float]]]:
            """Return the ids of one completion per row of this process, and their log-probabilities."""
            step, self._passes = self.state.global_step, []
            seeds = [derive_seed("rollout", job.seed, step, first + i) for i in range(len(prompts))]
            made = rollouts.roll_out(merged_weights(self._opened.model), prompts, job.decoding, seeds)
            return [ids for ids, _ in made], [log_probs for _, log_probs in made]

        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            loss = super()._compute_loss(model, inputs)
            differences = (self._log_probs.double() - inputs["sampling_per_token_logps"].double()).abs()
            of_tokens = differences[inputs["completion_mask"].bool()]
            self._passes.append((float(of_tokens.sum()), of_tokens.numel()))
            if len(self._passes) == self.args.gradient_accumulation_steps:
                total, tokens = (sum(of) for of in zip(*gather_object(self._passes), strict=True))
                self._metrics["train"][DIFFERENCE].append(total / tokens)
                check(total / tokens, tokens, self.rounding_of_an_engine, self.state.global_step + 1)
            return loss

    return SampledTrainer


def check(difference: float, tokens: int, rounding: float, step: int) -> None:
    """Check the mean difference between the log-probabilities of engine and loss over the `tokens` of a step, in nats.

    Args:
        difference: The difference.
        tokens: The tokens of the step.
        rounding: By how much the precision of the engine changes a log-probability.
        step: The number of the step, from 1.

    Raises:
        TrainingError: The difference is larger than rounding.
    """
    bound = FLOAT32 + RATIO * rounding
    if not difference <= bound:  # NaN is no agreement
        raise TrainingError(
            f"training: in step {step}, the log-probabilities of the rollouts differ from those of the loss by"
            f" {difference:.2g} nats on average over {tokens} tokens, expected at most {bound:.2g} (rounding): the"
            " completions are not those of the policy. The engine has other weights, caches or attention than the model"
            " that is trained: leave out `rollouts`, and the model samples itself."
        )
