"""The part that all GRPO algorithms share: TRL's trainer with explicit settings, an order of rows, a log as a table.

An algorithm that changes more than the reward (`dcpo`, `vl_calibration`) passes an `Algorithm` of its own to `run`. The
reward is a plugin of `dualread.training.rewards`. `_grpo_trainer` is TRL's trainer with what we need of it besides.
"""

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.errors import TrainingError
from dualread.models.backbones.checkpoint import load
from dualread.models.backbones.processor import load_processor, messages
from dualread.models.conditions import Asked
from dualread.progress import NotedStep, note_steps, say, track
from dualread.seeding import generator
from dualread.training import _lora
from dualread.training._arguments import arguments, n_processes
from dualread.training._rollouts import DIFFERENCE, CheckedRollouts, opened_rollouts
from dualread.training.job import Job, newest_complete, seal
from dualread.training.rewards import base

if TYPE_CHECKING:
    from dualread.training._grpo_trainer import ActorTrainer

# Wall-clock time of a step, including its rollouts. It differs between runs, so stages leave it out of their artifacts.
SECONDS = "seconds"
PROCESSES = "processes"  # how many took a step of a sharded training
# Quantities of the trainer's log that are kept, and their names in the train log.
_LOGGED = {
    "reward": "reward",
    "reward_std": "reward_std",
    "frac_reward_zero_std": "groups_without_spread",
    "completions/mean_length": "completion_tokens",
    "completions/clipped_ratio": "truncated",
    "entropy": "entropy",
    "kl": "kl",
    "grad_norm": "gradient_norm",
    "learning_rate": "learning_rate",
    "clip_ratio/region_mean": "clipped",
    "step_time": SECONDS,
    DIFFERENCE: "rollout_difference",
    "sampling/importance_sampling_ratio/mean": "importance_ratio",
    PROCESSES: PROCESSES,
}
SAMPLES = 3  # completions of a step that `machine.samples_every` shows


class Algorithm:
    """What an algorithm adds to GRPO; this one adds nothing.

    Attributes:
        reads_rows: Whether `columns` reads rows with the trained model, in each step and whatever samples.
        teaches_without_spread: Whether a step may teach something although the rewards of each group are equal.
    """

    reads_rows = False
    teaches_without_spread = False

    def columns(self, trainer: "ActorTrainer", completions: Sequence[Sequence[int]]) -> dict[str, list[Any]]:
        """Return what the reward gets besides, one value per completion; they are those of `trainer.rows`."""
        return {}

    def note_rewards(
        self,
        verdicts: Sequence[base.Verdict],
        rewards: Sequence[float],
        log_metric: Callable[[str, float], None],
        **columns: Any,
    ) -> None:
        """Take note of the verdicts on the completions of this process, and of their rewards and columns."""

    def advantages(self, output: Mapping[str, Any]) -> Any:
        """Return the advantages of a step [n], or of its tokens [n, tokens]; `output` is what TRL has made of it."""
        return output["advantages"]

    def loss(self, trainer: "ActorTrainer", inputs: Mapping[str, Any], computed: Callable[[], Any]) -> Any:
        """Return the loss of a pass; `computed` computes that of GRPO, with the pass through the model."""
        return computed()

    def callbacks(self) -> list[Any]:
        """Return callbacks of the trainer: what they write to a checkpoint when it is saved belongs to it."""
        return []


def run(job: Job, algorithm: Algorithm) -> list[dict[str, Any]]:
    """Train an actor and save it to `job.out`, resuming from its newest complete checkpoint if there is one.

    A resumed training has the same order of prompts, rollouts and weights as an uninterrupted one. With several
    processes, the first one writes. The log has one row (step, name, value) per step and quantity, including the steps
    before a kill.
    """
    options = arguments(job)  # several processes are connected by this
    with opened_rollouts(job) as engine:
        return _train(job, algorithm, options, engine)


def _train(job: Job, algorithm: Algorithm, options: Any, engine: CheckedRollouts | None) -> list[dict[str, Any]]:
    from transformers import PrinterCallback

    settings = job.settings
    read = partial(load, job.checkpoint, job.weights)
    if settings.shard:
        from dualread.training._sharding import ShardedTrainer as Trainer
        from dualread.training._sharding import opened_by_the_first

        model = opened_by_the_first(read)
    else:
        from dualread.training._grpo_trainer import ActorTrainer as Trainer

        model = read()
    n_rows = len(job.questions)
    steps = settings.steps_over(n_rows)
    rollouts = steps // settings.num_iterations
    order = training_order(n_rows, steps=rollouts, prompts_per_step=settings.prompts_per_step, seed=job.seed)
    trainer = Trainer(
        job=job,
        algorithm=algorithm,
        engine=engine,
        model=model,
        reward_funcs=[_reward_function(job, algorithm)],
        args=options,
        train_dataset=_dataset(job.questions, job.references, job.images, order),
        processing_class=load_processor(job.checkpoint, job.model),
        callbacks=[*algorithm.callbacks(), _step_callback(job, steps)],
        **_lora.given_to_trainer(job, model),
    )
    trainer.remove_callback(PrinterCallback)
    with warnings.catch_warnings():
        # trl 1.16 uses a name that transformers 5.23 renamed, and warns at every step.
        warnings.simplefilter("ignore", FutureWarning)
        trainer.train(resume_from_checkpoint=_resume_from(job, first=trainer.is_world_process_zero()))
    log = _log_rows(trainer.state.log_history)
    without_spread, groups, unmoved, _ = counted(log, settings.prompts_per_step)
    nothing = unmoved == steps or (without_spread == groups and not algorithm.teaches_without_spread)
    if nothing and not settings.may_learn_nothing:
        raise TrainingError(
            f"training: nothing was learned: {without_spread} of {groups} groups had rewards without spread, {unmoved}"
            f" of {steps} steps moved nothing. Expected completions of one question whose rewards differ. Look at"
            " samples (machine.samples_every): the reward may be constant, or all completions right, wrong or invalid."
            " An actor that need not learn has `may_learn_nothing: true`."
        )
    trainer.save()
    return log


def counted(log: Sequence[Mapping[str, Any]], prompts_per_step: int) -> tuple[int, int, int, int]:
    """Return how many groups had rewards without spread, of how many, and how many steps moved nothing, of how many.

    A step moves nothing where its gradient is 0, and where the learning rate is, as in the first step of a warm-up.
    """
    values = {name: [row["value"] for row in log if row["name"] == name] for name in {row["name"] for row in log}}
    spread, norms, rates = (values[name] for name in ("groups_without_spread", "gradient_norm", "learning_rate"))
    unmoved = sum(norm == 0 or rate == 0 for norm, rate in zip(norms, rates, strict=True))
    return round(sum(spread) * prompts_per_step), len(spread) * prompts_per_step, unmoved, len(norms)


def training_order(n_rows: int, *, steps: int, prompts_per_step: int, seed: int) -> np.ndarray:
    """Return the numbers of the rows to train on, in order, int64 [steps * prompts_per_step].

    The order is a concatenation of random permutations of the rows. The last step of a pass is filled up from the next
    permutation instead of being dropped, and every row occurs n times before any row occurs n + 1 times.
    """
    rng = generator("training order", seed)
    length = steps * prompts_per_step
    permutations = [rng.permutation(n_rows) for _ in range(math.ceil(length / n_rows))]
    return np.concatenate(permutations)[:length]


def _resume_from(job: Job, *, first: bool) -> str | None:
    if job.checkpoints is None:
        return None
    written_by = None if job.settings.shard else n_processes()
    newest = newest_complete(job.checkpoints, written_by, remove=first)
    if newest is None:
        return None
    if first:
        say(f"resuming from {newest}")
    return str(newest)


def _dataset(questions: Sequence[Asked], references: Sequence[Sequence[str]], images: Path, order: np.ndarray) -> Any:
    from datasets import Dataset

    from dualread.data.images import open_image

    rows = Dataset.from_dict({"row": order.tolist()})

    def materialize(batch: Mapping[str, list[int]]) -> dict[str, list[Any]]:
        chosen = [questions[i] for i in batch["row"]]
        return {
            # TRL puts the images into the first user turn whose content is no list.
            "prompt": [[*messages(asked.before), {"role": "user", "content": asked.text}] for asked in chosen],
            "images": [[open_image(images / file) for file in question.image_files] for question in chosen],
            "reference_answers": [list(references[i]) for i in batch["row"]],
            "sample_id": [question.sample_id for question in chosen],
        }

    # Rows are built on access, because the images of a whole training set do not fit into memory.
    return rows.with_transform(materialize)


def _reward_function(job: Job, algorithm: Algorithm) -> Callable[..., list[float]]:
    """Return TRL's reward function for the job's reward; it also logs the reward's terms, and shows samples."""
    from accelerate.utils import gather_object

    reward = job.reward

    def rewarded(
        completions: list[Any],
        reference_answers: list[Sequence[str]],
        sample_id: list[str],
        trainer_state: Any,
        log_metric: Callable[[str, float], None],
        **columns: Any,
    ) -> list[float]:
        texts = [completion[0]["content"] for completion in completions]
        judged = base.verdicts(texts, reference_answers, reward.CONTRACT)
        columns |= {"sample_id": sample_id, "reference_answers": reference_answers}
        terms = base.terms(judged) | (reward.terms(judged, **columns) if hasattr(reward, "terms") else {})
        # Gathered from all processes: mean and deviation over the defined values cannot be computed from those of each.
        log_terms({name: gather_object(values) for name, values in terms.items()}, log_metric)
        values = base.checked(reward.reward(judged, **columns), sample_id)
        algorithm.note_rewards(judged, values, log_metric, **columns)
        # The environment says it, as specs do not: an actor is not trained again to be watched.
        every, step = int(os.environ.get("DUALREAD_SAMPLES_EVERY", "0")), trainer_state.global_step
        if every > 0 and step % every == 0 and trainer_state.is_world_process_zero:
            for line in samples(step, sample_id, texts, values):
                say(line)
        return values

    return rewarded


def samples(step: int, names: Sequence[str], texts: Sequence[str], rewards: Sequence[float]) -> Iterator[str]:
    """Yield a line per sample: completions that are evenly spread over those of a `step`, which counts from 0."""
    n = len(texts)
    for i in sorted({k * (n - 1) // max(SAMPLES - 1, 1) for k in range(SAMPLES)}):
        text = " ".join(texts[i].split())
        yield f"step {step + 1}, question {names[i]}, reward {rewards[i]:.3g}: {text}"


def log_terms(terms: Mapping[str, Sequence[float]], log_metric: Callable[[str, float], None]) -> None:
    """Log mean and population standard deviation of each term over its defined values; nothing if all are NaN."""
    for name, values in terms.items():
        defined = np.array(values, dtype=float)
        defined = defined[~np.isnan(defined)]  # NaN: such as the confidence of an invalid completion
        if len(defined):
            log_metric(f"terms/{name}/mean", float(defined.mean()))
            log_metric(f"terms/{name}/std", float(defined.std()))


def _step_callback(job: Job, n_steps: int) -> Any:
    from transformers import TrainerCallback

    class Steps(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            remaining = range(state.global_step, n_steps) if state.is_world_process_zero else ()
            self.bar = iter(track(remaining, total=len(remaining), label="training (steps)"))
            self._note(state, state.log_history, anew=True)  # those before an interruption

        def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if not math.isfinite(norm := state.log_history[-1].get("grad_norm", 0.0)):
                raise TrainingError(
                    f"training: in step {state.global_step}, the norm of the gradient is {norm}. Expected a finite"
                    " number. Lower learning_rate, or look for what is not finite in the checkpoint."
                )
            self._note(state, state.log_history[-1:])

        def _note(self, state: Any, history: Sequence[Mapping[str, Any]], **how: bool) -> None:
            if state.is_world_process_zero:
                rows = ((entry["step"], {row["name"]: row["value"] for row in _log_rows([entry])}) for entry in history)
                note_steps(job.steps_file, [NotedStep(step=k, of=n_steps, values=v) for k, v in rows if v], **how)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            next(self.bar, None)

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            seal(Path(args.output_dir, f"checkpoint-{state.global_step}"), args.process_index, args.world_size)

    return Steps()


def _log_rows(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for entry in history:
        if "grad_norm" not in entry:
            continue
        named = {key if key.startswith("terms/") else _LOGGED.get(key): value for key, value in entry.items()}
        # Sorted by name, because a checkpoint does not keep the trainer's own order.
        for name, value in sorted((name, value) for name, value in named.items() if name and value is not None):
            rows.append({"step": entry["step"], "name": name, "value": float(value)})
    return rows
