"""The completions of a training step, sampled with the trained model itself or by an engine such as vLLM.

TRL would generate all completions of a process in one call: 256 rows of paper.yaml, whose keys and values alone take
more memory than a GPU has. Here a call generates at most `rollouts_per_pass` of them, and reads each prompt once for
all its completions. A completion has random numbers of its own, which depend only on the training's seed, the step, and
the completion's position in the step: neither the size of a piece nor the number of processes changes them.

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
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.errors import DualReadError, TrainingError, in_a_line
from dualread.models.actor import EncodedRequest, Rollout, SeededDecoding, drawn_with
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.generation._transformers_stream import complete
from dualread.seeding import derive_seed
from dualread.training import _evidence
from dualread.training._lora import merged_weights
from dualread.training._reference import FLOAT32, RATIO
from dualread.training.job import Job
from dualread.training.rollouts import Rollouts

if TYPE_CHECKING:
    from dualread.training._grpo_trainer import ActorTrainer

DIFFERENCE = "rollouts/difference"  # in the trainer's log: the mean over the tokens of a step, in nats
_ADVICE = " Leave out `rollouts`, and the model samples itself."


def roll_out(opened: Opened, prompts: Sequence[EncodedPrompt], job: Job, *, step: int, first: int) -> list[list[int]]:
    """Return the ids of one completion per row of this process; adjacent rows with one prompt share it.

    `step` counts the steps before this one; `first` is the position of the first row among the rows of all processes.
    """
    decoding, most = job.decoding, job.settings.sampled_at_once
    made: dict[int, list[int]] = {}
    for start in range(0, len(prompts), most):
        piece = range(start, min(start + most, len(prompts)))
        rows_of: dict[str, list[int]] = {}
        for i in piece:
            rows_of.setdefault(prompts[i].row, []).append(i)
        asked = [
            EncodedRequest(
                name=name,
                prompt=prompts[rows[0]],
                decoding=decoding.model_copy(update={"n_samples": len(rows)}),
                drawn_by=[("rollout", job.seed, step, first + i) for i in rows],
            )
            for name, rows in rows_of.items()
        ]
        for rows, completions in zip(rows_of.values(), complete(opened, asked), strict=True):
            made |= {i: list(completion.token_ids) for i, completion in zip(rows, completions, strict=True)}
    return [made[i] for i in range(len(prompts))]


@contextlib.contextmanager
def opened_rollouts(job: Job) -> Iterator["CheckedRollouts | None"]:
    """Open what samples for a job, before the trained model takes memory; None if the model itself samples."""
    if job.rollouts is None:
        yield None
        return
    settings = job.settings.rollout_settings or {}
    with _explained("the engine of the rollouts cannot be opened"):
        rollouts: Rollouts = job.rollouts.open_rollouts(job.checkpoint, job.model, settings, job.rollout_gpus)
    try:
        yield CheckedRollouts(rollouts, job)
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


class CheckedRollouts:
    """The rollouts of an engine, which have to be those of the policy, in every step."""

    def __init__(self, rollouts: Rollouts, job: Job):
        self._rollouts, self._job = rollouts, job
        self._all_steps = _evidence.Evidence()
        self._passes: list[_evidence.Pass] = []  # of this step
        self._copies = np.zeros(0)

    def roll_out(
        self, prompts: Sequence[EncodedPrompt], opened: Opened, *, step: int, first: int
    ) -> tuple[list[Sequence[int]], list[Sequence[float]]]:
        """Return the ids of one completion per row, and their log-probabilities; the arguments are as in `roll_out`."""
        job, self._passes = self._job, []
        seeds = [derive_seed("rollout", job.seed, step, first + i) for i in range(len(prompts))]
        weights = merged_weights(opened.model)
        with _explained(f"in step {step + 1}, the engine of the rollouts failed"):
            drawn = self._rollouts.roll_out(weights, prompts, job.decoding, seeds)
        check_drawn(drawn, seeds, job, opened, step + 1)
        self._copies = self._all_steps.of_copies([prompt.row for prompt in prompts], drawn, job.settings.top_p)
        return [rollout.token_ids for rollout in drawn], [rollout.log_probs for rollout in drawn]

    def compare(self, trainer: "ActorTrainer", inputs: Mapping[str, Any]) -> None:
        """Compare the rollouts of a pass with the loss, and after the last pass of a step those of the step."""
        from accelerate.utils import gather_object

        vocabulary, mask = trainer.opened.model.config.get_text_config().vocab_size, inputs["completion_mask"].bool()
        read: Sequence[Any] = (trainer.log_probs, inputs["sampling_per_token_logps"], trainer.entropies)
        policy, engine, entropies = (values[mask].double().cpu().numpy() for values in read)
        rounding, top_p = trainer.comparison.rounding_of_an_engine, self._job.settings.top_p
        self._passes.append(_evidence.Pass.of(policy, engine, entropies, vocabulary, FLOAT32 + RATIO * rounding))
        if len(self._passes) < trainer.args.gradient_accumulation_steps:
            return
        step, number = sum(gather_object(self._passes), start=_evidence.Pass()), trainer.state.global_step + 1
        if not step.tokens:  # all completions were cut, and are masked
            return
        difference = trainer.measured[DIFFERENCE] = step.difference / step.tokens
        check(difference, step.tokens, rounding, number)
        copies = np.sum(gather_object([self._copies]), axis=0)
        if fault := self._all_steps.fault(step, copies, top_p):
            raise TrainingError(
                f"training: in step {number}, the completions of the rollouts are not drawn from the policy: {fault}."
                f"{_ADVICE}"
            )


def check_drawn(drawn: Sequence[Rollout], seeds: Sequence[int], job: Job, opened: Opened, step: int) -> None:
    """Check with what an engine drew the completions of a step, and whether they begin and end accordingly."""
    if len(drawn) != len(seeds):
        raise TrainingError(
            f"training: in step {step}, the engine gave {len(drawn)} of {len(seeds)} completions.{_ADVICE}"
        )
    for number, (rollout, seed) in enumerate(zip(drawn, seeds, strict=True), start=1):
        if problem := _problem(rollout, job.decoding.model_copy(update={"seed": seed}), opened.encoder):
            raise TrainingError(
                f"training: in step {step}, completion {number} of {len(drawn)} of the rollouts {problem}.{_ADVICE}"
            )


def _problem(rollout: Rollout, decoding: SeededDecoding, encoder: Encoder) -> str | None:
    """Return in what a completion differs from what was asked of the engine; None if in nothing."""
    ids, limit = rollout.token_ids, decoding.max_completion_tokens
    requested = drawn_with(
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        max_completion_tokens=limit,
        seed=decoding.seed,
        stop=encoder.stop,
        forbidden=encoder.forbidden,
    )
    for name in {**requested, **rollout.drawn_with}:
        if requested.get(name) == rollout.drawn_with.get(name):  # None is as good as nothing
            continue
        actual, expected = rollout.drawn_with.get(name, "nothing"), requested.get(name, "the engine's default")
        return f"was drawn with {name}: {actual}. Expected {expected}: the engine does not draw as it was told"
    ends = [k for k, token in enumerate(ids) if token in encoder.stop]
    if not ids or len(ids) > limit or ends not in ([len(ids) - 1], [] if len(ids) == limit else None):
        return (
            f"has {len(ids)} tokens, of which {len(ends)} end a turn. Expected one, the last of at most {limit}, or"
            f" none of {limit}: the engine cuts completions, or goes on after their end"
        )
    if len(rollout.log_probs) != len(ids) or set(ids) & set(encoder.forbidden):
        return (
            f"has {len(ids)} tokens, {len(rollout.log_probs)} log-probabilities, and"
            f" {sum(token in encoder.forbidden for token in ids)} forbidden ids. Expected a log-probability of each"
            " token, and none that is forbidden"
        )
    return None


def check(difference: float, tokens: int, rounding: float, step: int) -> None:
    """Check the mean difference between the log-probabilities of engine and loss over the `tokens` of a step, in nats.

    `rounding` says by how much the precision of the engine changes a log-probability; steps count from 1.
    """
    bound = FLOAT32 + RATIO * rounding
    if not difference <= bound:  # NaN is no agreement
        raise TrainingError(
            f"training: in step {step}, the log-probabilities of the rollouts differ from those of the loss by"
            f" {difference:.2g} nats on average over {tokens} tokens, expected at most {bound:.2g} (rounding): the"
            " completions are not those of the policy. The engine has other weights, caches or attention than the model"
            f" that is trained.{_ADVICE}"
        )
