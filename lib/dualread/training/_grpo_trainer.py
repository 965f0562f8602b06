"""TRL's trainer for one actor: our rollouts and prompts, algorithms with advantages of tokens, and what is compared.

TRL's hooks are used where it has them: `rollout_func`, reward functions, callbacks, `log`, `compute_loss`. Three
private methods are overridden, because it has none for what they do. Each says why.
"""

import contextlib
import functools
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from trl.trainer.grpo_trainer import GRPOTrainer

from dualread.errors import TrainingError, in_a_line
from dualread.models import own_pass
from dualread.models.backbones.checkpoint import Opened, load
from dualread.models.backbones.encode import EncodedPrompt
from dualread.training import _lora
from dualread.training._reference import Comparison, asked_in, for_sampling
from dualread.training._rollouts import CheckedRollouts, roll_out
from dualread.training.job import Job
from dualread.training.trainer import Algorithm


class ActorTrainer(GRPOTrainer):
    """Trains the actor of a job.

    In each step, it has the `rows` of the completions of this process, the `opened` model with the encoder of its
    `prompts` (by sample_id), the `log_probs` and `entropies` of the tokens of the last pass of the loss [completions,
    tokens], and what the log of the step has besides TRL's quantities (`measured`).
    """

    rows: Sequence[Mapping[str, Any]]
    opened: Opened
    prompts: Mapping[str, EncodedPrompt]
    log_probs: torch.Tensor
    entropies: Any
    # What TRL types as one of several things, or as None before it trains.
    accelerator: Any
    model: Any

    def __init__(self, *, job: Job, algorithm: Algorithm, engine: CheckedRollouts | None, **named: Any):
        self.job, self.algorithm, self.engine = job, algorithm, engine
        self.comparison, self.measured = Comparison(job.facts.completion_type), dict[str, float]()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "You are using 'rollout_func'")  # experimental; TRL's version is pinned
            super().__init__(rollout_func=_roll_out, **named)
        # Otherwise several processes keep every gradient twice: 17 GB more for 4.3e9 parameters.
        self.accelerator.ddp_handler.gradient_as_bucket_view = True

    @property
    def plain(self) -> Any:
        """The model as transformers knows it: not wrapped for several processes, all weights in this one."""
        return self.model

    def save(self) -> None:
        """Write the trained checkpoint, in the first process; all processes have to call it."""
        if self.is_world_process_zero():
            _lora.save(self.plain, self.job)

    @contextlib.contextmanager
    def in_bfloat16(self) -> Iterator[Any]:
        """Yield the model with all weights and states in bfloat16."""
        with own_pass.in_bfloat16(self.opened.model):
            yield self.opened.model

    def training_step(self, *arguments: Any, **named: Any) -> Any:
        try:
            return super().training_step(*arguments, **named)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            functions = {frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)}
            if self.comparison.is_over or "rewarded" in functions:  # it has been trained, or a reward fails
                raise
            what = f"trl cannot make the inputs of this model's loss ({in_a_line(error)})"
            raise TrainingError(f"training: {what}. Expected a model that it knows. Train it elsewhere.") from error

    def compute_loss(self, model: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
        computed = functools.partial(super().compute_loss, model, inputs, *arguments, **named)
        loss = self.algorithm.loss(self, inputs, computed)
        self.comparison.add(self.log_probs, inputs["row"].tolist())
        # Completions were drawn from the policy of the first step that learns from them; in later steps, it has moved.
        if self.engine is not None and self.state.global_step % self.job.settings.num_iterations == 0:
            self.engine.compare(self, inputs)
        return loss

    def log(self, logs: dict[str, float], *arguments: Any, **named: Any) -> None:
        super().log({**logs, **self.measured}, *arguments, **named)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if self.job.settings.lora is not None or self.job.settings.shard is not None:
            return super()._load_from_checkpoint(resume_from_checkpoint, model)
        # transformers 5.23 looks for the current names of the weights. Gemma 3 is saved under older names, so that
        # no weight would be loaded, with only a warning.
        saved = load(Path(resume_from_checkpoint), self.job.weights)
        (self.model if model is None else model).load_state_dict(saved.state_dict())

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        # TRL 1.16 tells `rollout_func` only messages, and takes one advantage per completion. The loss gets the rows in
        # another order, so that each needs its number. And where `use_vllm` is set, TRL pushes weights to its own vLLM
        # before it calls `rollout_func`.
        self.rows, self.use_vllm = inputs, False
        output = super()._generate_and_score_completions(inputs)
        output["advantages"] = self.algorithm.advantages(output)
        self.comparison.begin(self, output)
        return {**output, "row": torch.arange(len(inputs))}

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, mask: Any, logits_to_keep: int, *arguments: Any, **named: Any
    ) -> Any:
        # TRL takes token types from a second tokenization of the prompt, to which a tokenizer may add BOS again, and
        # those of a completion are 0 for it.
        width = input_ids.size(1) - logits_to_keep
        by_ids = {prompt.token_ids: prompt for prompt in self.prompts.values()}
        rows = zip(input_ids[:, :width], mask[:, :width].bool(), strict=True)
        prompts = [by_ids[tuple(row[is_prompt].tolist())] for row, is_prompt in rows]
        batch = self.opened.encoder.batch(prompts, input_ids[:, width:].tolist(), width=width)
        types = {name: batch[name].to(input_ids.device) for name in prompts[0].types}
        output = super()._get_per_token_logps_and_entropies(
            model, input_ids, mask, logits_to_keep, *arguments, **{**named, **types}
        )
        # Neither the loss nor the log of TRL tells the log-probabilities of single tokens.
        self.log_probs = output[0].detach()
        self.entropies = None if output[1] is None else output[1].detach()
        return output


def _roll_out(_: Any, trainer: Any) -> dict[str, Any]:
    """Return the rollouts of `trainer.rows` as TRL's `rollout_func`, with the columns of the algorithm."""
    job, rows, step = trainer.job, trainer.rows, trainer.state.global_step
    # A new one for each step, because an encoder keeps the pixels of its images in memory.
    trainer.opened = opened = Opened.of(_lora.base_of(trainer.plain), trainer.processing_class, job.model, job.facts)
    trainer.prompts = {
        name: opened.encoder.prompt(text, images=row["images"], row=name, before=before)
        for name, row in {row["sample_id"]: row for row in rows}.items()
        for text, before in [asked_in(row)]
    }
    prompts = [trainer.prompts[row["sample_id"]] for row in rows]
    first = trainer.accelerator.process_index * len(rows)
    if trainer.engine is not None:
        completions, log_probs = trainer.engine.roll_out(prompts, opened, step=step, first=first)
    else:
        with trainer.accelerator.autocast(), for_sampling(opened.model):
            completions, log_probs = roll_out(opened, prompts, job, step=step, first=first), None
    trainer.use_vllm = job.settings.importance_sampling is not None  # the correction, which the loss reads from here on
    return {
        "prompt_ids": [list(prompt.token_ids) for prompt in prompts],
        "completion_ids": completions,
        "logprobs": log_probs,
        **trainer.algorithm.columns(trainer, completions),
    }
