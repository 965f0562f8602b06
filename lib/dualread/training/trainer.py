"""The part that all GRPO algorithms share: TRL's trainer with explicit settings, an order of rows, a log as a table.

An algorithm that changes more than the reward (`dcpo`, `vl_calibration`) passes a function to `run` that subclasses the
trainer. The reward is a plugin of `dualread.training.rewards`.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dualread.errors import TrainingError
from dualread.models.backbones.checkpoint import load
from dualread.models.backbones.opened import Opened
from dualread.models.backbones.processor import load_processor
from dualread.models.conditions import Asked
from dualread.progress import NotedStep, note_steps, say, track
from dualread.seeding import generator
from dualread.training import _lora, _watched
from dualread.training._arguments import arguments, n_processes
from dualread.training._checkpoints import newest_complete, seal
from dualread.training._reference import compared
from dualread.training._rollouts import for_sampling, roll_out
from dualread.training._sampled import DIFFERENCE, opened_rollouts, sampled_by
from dualread.training._sharding import PROCESSES, opened_by_the_first, sharded
from dualread.training.job import Job
from dualread.training.rewards import base
from dualread.training.rollouts.base import Rollouts

# Wall-clock time of a step, including its rollouts. It differs between runs, so stages leave it out of their artifacts.
SECONDS = "seconds"
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
    PROCESSES: "processes",
}


def run(job: Job, subclass: Callable[[type], type] = lambda trainer: trainer) -> list[dict[str, Any]]:
    """Train an actor and save it to `job.out`, resuming from its newest complete checkpoint if there is one.

    A resumed training has the same order of prompts, rollouts and weights as an uninterrupted one. With several
    processes, the first one writes. `subclass` takes TRL's GRPOTrainer and returns the class to train with.

    Returns:
        The train log, one row (step, name, value) per step and quantity, including the steps before a kill.
    """
    options = arguments(job)  # several processes are connected by this
    with opened_rollouts(job) as rollouts:
        return _train(job, options, rollouts, subclass)


def _train(job: Job, options: Any, rollouts: Rollouts | None, subclass: Callable[[type], type]) -> list[dict[str, Any]]:
    from transformers import PrinterCallback
    from trl.trainer.grpo_trainer import GRPOTrainer

    settings = job.settings
    processor = load_processor(job.checkpoint, job.model)
    read = partial(_load, job, job.checkpoint)
    model = opened_by_the_first(read) if settings.shard else read()
    n_rows = len(job.questions)
    steps = settings.steps_over(n_rows)
    order = training_order(n_rows, steps=steps, prompts_per_step=settings.prompts_per_step, seed=job.seed)
    checked = compared(subclass(GRPOTrainer), job.facts.completion_type)
    careful = _careful(sampled_by(rollouts, checked, job) if rollouts else checked, job)
    trainer = (sharded(careful, adapted=settings.lora is not None) if settings.shard else careful)(
        model=model,
        reward_funcs=[_reward_function(job.reward)],
        args=options,
        train_dataset=_dataset(job.questions, job.references, job.images, order),
        processing_class=processor,
        callbacks=[_step_callback(job, steps)],
        **_lora.given_to_trainer(job, model),
    )
    trainer.remove_callback(PrinterCallback)
    # Read by the loss alone: `_careful` has its own rollouts.
    trainer.use_vllm = settings.importance_sampling is not None
    with warnings.catch_warnings():
        # trl 1.16 uses a name that transformers 5.23 renamed, and warns at every step.
        warnings.simplefilter("ignore", FutureWarning)
        trainer.train(resume_from_checkpoint=_resume_from(job, first=trainer.is_world_process_zero()))
    log = _log_rows(trainer.state.log_history)
    without_spread, groups, unmoved, _ = counted(log, settings.prompts_per_step)
    nothing = unmoved == steps or (without_spread == groups and not getattr(trainer, "has_own_advantages", False))
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


def _load(job: Job, checkpoint: Path, **how: bool) -> Any:
    return load(checkpoint, {**job.model, "dtype": _lora.weights_of(job)}, **how)


def _careful(trainer: type, job: Job) -> type:
    class CarefulTrainer(trainer):
        def _build_accelerator_args(self, **kwargs: Any) -> dict[str, Any]:
            made = super()._build_accelerator_args(**kwargs)
            # Otherwise several processes keep every gradient twice: 17 GB more for 4.3e9 parameters.
            [ddp] = made["kwargs_handlers"]
            ddp.gradient_as_bucket_view = True
            return made

        def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
            if job.settings.lora is not None or job.settings.shard is not None:
                return super()._load_from_checkpoint(resume_from_checkpoint, model)
            # transformers 5.23 looks for the current names of the weights. Gemma 3 is saved under older names, so that
            # no weight would be loaded, with only a warning.
            saved = _load(job, Path(resume_from_checkpoint))
            (self.model if model is None else model).load_state_dict(saved.state_dict())

        @property
        def plain(self) -> Any:
            """The model as transformers knows it: not wrapped for several processes, all weights in this one."""
            return self.model

        def save(self) -> None:
            """Write the trained checkpoint, in the first process; all processes have to call it."""
            if self.is_world_process_zero():
                _lora.save(self.plain, job)

        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            # A new one for each step, because an encoder keeps the pixels of its images in memory.
            self._opened = Opened.of(_lora.base_of(self.plain), self.processing_class, job.model, job.facts)
            encode, self._rows = self._opened.encoder.prompt, inputs
            one_of = {row["sample_id"]: row for row in inputs}
            self._prompts = {
                name: encode(row["prompt"][0]["content"], image=row["image"], row=name) for name, row in one_of.items()
            }
            output = super()._generate_and_score_completions(inputs)
            if _watched.are_due(step := self.state.global_step) and self.is_world_process_zero():
                names, n = [row["sample_id"] for row in inputs], len(inputs)  # TRL has those of all processes
                texts = [made[0]["content"] for made in list(self._logs["completion"])[:n]]
                [rewards] = self._logs["rewards"].values()
                for line in _watched.samples(step, names, texts, list(rewards)[:n]):
                    say(line)
            return output

        def _tokenize_prompts(self, prompts: Any) -> tuple[list[list[int]], list[list[Any]], dict[str, Any]]:
            # The ids that generation and replay read; TRL calls processors in a way that not all of them allow.
            ids = [list(self._prompts[row["sample_id"]].token_ids) for row in self._rows]
            return ids, [[row["image"]] for row in self._rows], {}

        def _get_per_token_logps_and_entropies(
            self, model: Any, input_ids: Any, mask: Any, logits_to_keep: int, *arguments: Any, **named: Any
        ) -> Any:
            # TRL takes token types from a second tokenization of the prompt, to which a tokenizer may add BOS again.
            types = self._token_types(input_ids, mask, input_ids.size(1) - logits_to_keep)
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, mask, logits_to_keep, *arguments, **{**named, **types}
            )

        def _generate_single_turn(self, prompt_ids: Any, *arguments: Any, **named: Any) -> Any:
            first = self.accelerator.process_index * len(self._rows)
            prompts = [self._prompts[row["sample_id"]] for row in self._rows]
            if self.is_sampled_by_an_engine:
                return self.roll_out(prompts, first=first)
            with self.accelerator.autocast(), for_sampling(self._opened.model):
                made = roll_out(self._opened, prompts, job, step=self.state.global_step, first=first)
            return made, None  # no log-probabilities: TRL reads them only from another engine

        def _token_types(self, input_ids: Any, mask: Any, width: int) -> dict[str, Any]:
            by_ids = {prompt.token_ids: prompt for prompt in self._prompts.values()}
            rows = zip(input_ids[:, :width], mask[:, :width].bool(), strict=True)
            prompts = [by_ids[tuple(row[is_prompt].tolist())] for row, is_prompt in rows]
            batch = self._opened.encoder.batch(prompts, input_ids[:, width:].tolist(), width=width)
            return {name: batch[name].to(input_ids.device) for name in prompts[0].types}

    return CarefulTrainer


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
            "prompt": [[{"role": "user", "content": question.text}] for question in chosen],
            "image": [open_image(images / question.image_file) for question in chosen],
            "reference_answers": [list(references[i]) for i in batch["row"]],
            "sample_id": [question.sample_id for question in chosen],
        }

    # Rows are built on access, because the images of a whole training set do not fit into memory.
    return rows.with_transform(materialize)


def _reward_function(reward: ModuleType) -> Callable[..., list[float]]:
    """Return TRL's reward function for a reward plugin; it also logs the reward's terms."""
    from accelerate.utils import gather_object

    def total(
        completions: list[Any],
        reference_answers: list[Sequence[str]],
        sample_id: list[str],
        log_metric: Callable[[str, float], None],
        **columns: Any,
    ) -> list[float]:
        texts = [completion[0]["content"] for completion in completions]
        judged = base.verdicts(texts, reference_answers, reward.CONTRACT)
        columns["sample_id"] = sample_id
        terms = base.terms(judged) | (reward.terms(judged, **columns) if hasattr(reward, "terms") else {})
        # Gathered from all processes: mean and deviation over the defined values cannot be computed from those of each.
        log_terms({name: gather_object(values) for name, values in terms.items()}, log_metric)
        return base.checked(reward.reward(judged, **columns), sample_id)

    return total


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
        if "reward" not in entry:
            continue
        named = {key if key.startswith("terms/") else _LOGGED.get(key): value for key, value in entry.items()}
        # Sorted by name, because a checkpoint does not keep the trainer's own order.
        for name, value in sorted((name, value) for name, value in named.items() if name and value is not None):
            rows.append({"step": entry["step"], "name": name, "value": float(value)})
    return rows
