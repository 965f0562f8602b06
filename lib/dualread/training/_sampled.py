"""Rollouts by an engine, such as vLLM, which have to be those of the policy, in every step.

An engine has a copy of the weights, caches of its own, and another implementation of attention. A weight that it did
not get, a state that it kept, or image tokens that it reads causally change log-probabilities by .01 to .3 nats, and
training goes on: the completions are those of another policy, and no curve of rewards shows it. So three things are
compared, before the step changes a weight:

- the log-probability that the engine gives each token, with that of the loss. Both are computed anyway. In float32 they
  differ by rounding, 1e-6 nats. In bfloat16 the bound is wider, and is measured;
- the parameters with which the engine drew, as it had them, with those that were said, and the completions' lengths and
  ends with what these allow;
- the completions themselves with the policy (`_evidence`), because log-probabilities may be right and draws wrong.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dualread.errors import DualReadError, TrainingError, in_a_line
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.backbones.opened import Opened
from dualread.models.generation.drawn import Rollout, drawn_with
from dualread.seeding import derive_seed
from dualread.training import _evidence
from dualread.training._lora import merged_weights
from dualread.training._reference import FLOAT32, RATIO
from dualread.training.job import Job
from dualread.training.rollouts.base import Rollouts

DIFFERENCE = "rollouts/difference"  # in the trainer's log: the mean over the tokens of a step, in nats
_ADVICE = " Leave out `rollouts`, and the model samples itself."


@contextlib.contextmanager
def opened_rollouts(job: Job) -> Iterator[Rollouts | None]:
    """Open what samples for a job, before the trained model takes memory; None if the model itself samples.

    Raises:
        TrainingError: It cannot be opened.
    """
    if job.rollouts is None:
        yield None
        return
    settings = job.settings.rollout_settings or {}
    with _explained("the engine of the rollouts cannot be opened"):
        rollouts: Rollouts = job.rollouts.open_rollouts(job.checkpoint, job.model, settings, job.rollout_gpus)
    try:
        yield rollouts
    finally:
        rollouts.close()


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except DualReadError:
        raise
    except Exception as error:  # an engine is another package, which may raise anything
        raise TrainingError(
            f"training: {what} ({in_a_line(error)}). Expected completions. If it is for lack of memory, set smaller"
            f" rollout_settings.{_ADVICE}"
        ) from error


def sampled_by(rollouts: Rollouts, trainer: type, job: Job) -> type:
    """Return a subclass of a compared trainer (`_reference.compared`) whose completions `rollouts` samples.

    Raises (while it trains):
        TrainingError: In some step, the engine failed, or its completions are not those of the policy.
    """
    from accelerate.utils import gather_object

    class SampledTrainer(trainer):
        is_sampled_by_an_engine = True
        _log_probs: Any  # of the last pass of the loss
        _entropies: Any
        _opened: Opened  # of this step; `trainer` sets it
        _passes: list[_evidence.Pass]  # of this step
        _all_steps = _evidence.Evidence()

        def roll_out(
            self, prompts: Sequence[EncodedPrompt], *, first: int
        ) -> tuple[list[Sequence[int]], list[Sequence[float]]]:
            """Return the ids of one completion per row of this process, and their log-probabilities."""
            step, self._passes = self.state.global_step, []
            seeds = [derive_seed("rollout", job.seed, step, first + i) for i in range(len(prompts))]
            weights = merged_weights(self._opened.model)
            with _explained(f"in step {step + 1}, the engine of the rollouts failed"):
                drawn = rollouts.roll_out(weights, prompts, job.decoding, seeds)
            check_drawn(drawn, seeds, job, self._opened, step + 1)
            self._copies = self._all_steps.of_copies([prompt.row for prompt in prompts], drawn, job.settings.top_p)
            return [rollout.token_ids for rollout in drawn], [rollout.log_probs for rollout in drawn]

        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            loss = super()._compute_loss(model, inputs)
            mask, vocabulary = inputs["completion_mask"].bool(), self._opened.model.config.get_text_config().vocab_size
            policy, engine, entropies = (
                values[mask].double().cpu().numpy()
                for values in (self._log_probs, inputs["sampling_per_token_logps"], self._entropies)
            )
            rounding = FLOAT32 + RATIO * self.rounding_of_an_engine
            self._passes.append(_evidence.Pass.of(policy, engine, entropies, vocabulary, rounding))
            if len(self._passes) == self.args.gradient_accumulation_steps:
                step, number = sum(gather_object(self._passes), start=_evidence.Pass()), self.state.global_step + 1
                self._metrics["train"][DIFFERENCE].append(step.difference / step.tokens)
                check(step.difference / step.tokens, step.tokens, self.rounding_of_an_engine, number)
                copies = np.sum(gather_object([self._copies]), axis=0)
                if fault := self._all_steps.fault(step, copies, job.settings.top_p):
                    raise TrainingError(
                        f"training: in step {number}, the completions of the rollouts are not drawn from the policy:"
                        f" {fault}.{_ADVICE}"
                    )
            return loss

    return SampledTrainer


def check_drawn(drawn: Sequence[Rollout], seeds: Sequence[int], job: Job, opened: Opened, step: int) -> None:
    """Check with what an engine drew the completions of a step, and whether they begin and end accordingly.

    Raises:
        TrainingError: Not with what was said: another temperature, length, seed, ...
    """
    decoding, limit = job.decoding, job.decoding.max_completion_tokens
    if len(drawn) != len(seeds):
        raise TrainingError(
            f"training: in step {step}, the engine gave {len(drawn)} of {len(seeds)} completions.{_ADVICE}"
        )
    for number, (rollout, seed) in enumerate(zip(drawn, seeds, strict=True)):
        requested = drawn_with(
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            max_completion_tokens=limit,
            seed=seed,
            stop=opened.stop,
            forbidden=opened.forbidden,
        )
        ids = rollout.token_ids
        where = f"training: in step {step}, completion {number + 1} of {len(drawn)} of the rollouts"
        for name in [
            name for name in {**requested, **rollout.drawn_with} if requested.get(name) != rollout.drawn_with.get(name)
        ]:
            actual, expected = rollout.drawn_with.get(name, "nothing"), requested.get(name, "the engine's default")
            raise TrainingError(
                f"{where} was drawn with {name}: {actual}. Expected {expected}: the engine does not draw as it was"
                f" told.{_ADVICE}"
            )
        ends = [k for k, token in enumerate(ids) if token in opened.stop]
        if not ids or len(ids) > limit or ends not in ([len(ids) - 1], [] if len(ids) == limit else None):
            raise TrainingError(
                f"{where} has {len(ids)} tokens, of which {len(ends)} end a turn. Expected one, the last of at most"
                f" {limit}, or none of {limit}: the engine cuts completions, or goes on after their end.{_ADVICE}"
            )
        if len(rollout.log_probs) != len(ids) or set(ids) & set(opened.forbidden):
            raise TrainingError(
                f"{where} has {len(ids)} tokens, {len(rollout.log_probs)} log-probabilities, and"
                f" {sum(token in opened.forbidden for token in ids)} forbidden ids. Expected a log-probability of each"
                f" token, and none that is forbidden.{_ADVICE}"
            )


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
            f" that is trained.{_ADVICE}"
        )
