"""Compares the log-probabilities of the loss with those of the plain model, at the start of every training.

TRL makes the inputs of its loss itself: it renders, tokenizes and pads prompts, and joins them with completions. A
wrong input, such as token types that are shifted by one column, changes log-probabilities by a few tenths of a nat, and
training goes on. So some rows of a training's first step are also read by transformers alone: one row at a time,
without padding, with all inputs from the processor, in float32. The trainer may differ by rounding only. How much that
is in bfloat16 depends on the model; it is measured by reading the same rows in the trainer's precision.
"""

import contextlib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualread.errors import DataError, TrainingError, in_a_line
from dualread.models import own_pass
from dualread.models.backbones import parts
from dualread.models.backbones.opened import Opened
from dualread.training._rollouts import for_sampling

_GENERATED = 6  # tokens that the model's own generation is compared on
ROWS = 8  # rows of each process that are compared
RATIO = 3.0  # the trainer may differ from float32 by this many times the measured rounding
FLOAT32 = 1e-4  # and by so many nats where nothing is rounded to bfloat16: about 100 times what float32 explains


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What the plain model says about one completion: the log-probability of each token, in nats [tokens].

    Attributes:
        exact: In float32.
        rounded: In the trainer's precision; equal to `exact` if that is float32.
    """

    exact: np.ndarray
    rounded: np.ndarray


def compared(trainer: type, completion_type: int) -> type:
    """Return a subclass of a GRPOTrainer that ends its first step if its log-probabilities are not the model's.

    Its `rounding_of_an_engine` is by how much log-probabilities of a model differ whose weights and states are all in
    bfloat16, if the trainer computes in bfloat16: the mean over the tokens that are compared, in nats.
    """
    import torch

    class ComparedTrainer(trainer):
        is_sampled_by_an_engine = False
        rounding_of_an_engine = 0.0
        _awaited: dict[int, Reference] | None = None  # by row of the first step; None before it
        _found: list[tuple[np.ndarray, Reference]]
        _log_probs: Any  # of the last pass, and the entropies
        _entropies: Any
        _opened: Opened  # of this step; `trainer` sets it

        def training_step(self, *arguments: Any, **named: Any) -> Any:
            try:
                return super().training_step(*arguments, **named)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                functions = {frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)}
                if self._awaited == {} or "_calculate_rewards" in functions:  # it has been trained, or a reward fails
                    raise
                what = f"trl cannot make the inputs of this model's loss ({in_a_line(error)})"
                raise TrainingError(f"training: {what}. Expected a model that it knows. Train it elsewhere.") from error

        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            output = super()._generate_and_score_completions(inputs)
            if self._awaited is None:
                self._found, self._awaited = [], self._read(inputs, output)
            return {**output, "row": torch.arange(len(inputs))}  # the loss gets the rows in another order

        def _get_per_token_logps_and_entropies(self, *arguments: Any, **named: Any) -> Any:
            output = super()._get_per_token_logps_and_entropies(*arguments, **named)
            self._log_probs = output[0].detach()
            self._entropies = None if output[1] is None else output[1].detach()
            return output

        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            loss = super()._compute_loss(model, inputs)
            for log_probs, row in zip(self._log_probs, inputs["row"].tolist(), strict=True):
                if self._awaited and row in self._awaited:
                    reference = self._awaited.pop(row)
                    trained = log_probs[: len(reference.exact)].double().cpu().numpy()
                    self._found.append((trained, reference))
                    if not self._awaited:
                        check(self._found)
            return loss

        def _read(self, rows: Sequence[Mapping[str, Any]], output: Mapping[str, Any]) -> dict[int, Reference]:
            def ids_of(part: str) -> list[Any]:
                of_rows = zip(output[f"{part}_ids"], output[f"{part}_mask"].bool(), strict=True)
                return [ids[mask] for ids, mask in of_rows]

            prompts, completions = ids_of("prompt"), ids_of("completion")
            # Prompts of different lengths, because the trainer pads the shorter ones.
            by_length = sorted(range(len(rows)), key=lambda i: len(prompts[i]))
            chosen = sorted({by_length[int(k)] for k in np.linspace(0, len(rows) - 1, ROWS)})
            model, first = self._opened.model, chosen[0]

            # Not kept in memory: with the images of all rows, they are large.
            def read(model: Any = model) -> list[np.ndarray]:
                of_rows = ((self._inputs(rows[i], prompts[i]), completions[i].tolist()) for i in chosen)
                return [own_pass.log_probs(model, *row, completion_type, self.temperature) for row in of_rows]

            with for_sampling(model), parts.in_sdpa(model):
                with torch.autocast(model.device.type, enabled=False), own_pass.in_float32(model):
                    self._check_type(model, rows[first], prompts[first], completions[first][:_GENERATED])
                    exact = read()
                with self.accelerator.autocast():
                    rounded = read() if self.args.bf16 else exact
                if self.args.bf16 and self.is_sampled_by_an_engine:
                    with torch.autocast(model.device.type, enabled=False), self.in_bfloat16() as rounding:
                        self.rounding_of_an_engine = own_pass.mean_difference(read(rounding), exact)
            references = zip(chosen, exact, rounded, strict=True)
            return {i: Reference(exact=in_float32, rounded=in_training) for i, in_float32, in_training in references}

        @contextlib.contextmanager
        def in_bfloat16(self) -> Iterator[Any]:
            """Yield the model with all weights and states in bfloat16."""
            with own_pass.in_bfloat16(self._opened.model):
                yield self._opened.model

        def _check_type(self, model: Any, row: Mapping[str, Any], prompt: Any, completion: Any) -> None:
            """Trainer and reference are told the token type of a completion; the model's own generation is not."""
            inputs, ids = self._inputs(row, prompt), completion.tolist()
            read = own_pass.log_probs(model, inputs, ids, completion_type)
            made = own_pass.generated(model, inputs, ids).double().log_softmax(dim=-1)
            difference = float(np.abs(made[range(len(ids)), ids].cpu().numpy() - read).mean())
            if not difference <= FLOAT32:
                raise TrainingError(
                    f"training: with completions of token type {completion_type}, log-probabilities differ from those"
                    f" of the model's own generation by {difference:.2g} nats on average, expected at most {FLOAT32}."
                    " The facts are not those of this checkpoint: probe it again."
                )

        def _inputs(self, row: Mapping[str, Any], prompt: Any) -> Mapping[str, Any]:
            made = self._opened.encoder.inputs(row["prompt"][0]["content"], row["image"])
            if (theirs := made["input_ids"][0].tolist()) != prompt.tolist():
                raise DataError(
                    f"{row['sample_id']}: the trainer encodes the prompt as {len(prompt)} ids that differ from the"
                    f" {len(theirs)} of its processor. Expected the same ids. Check the checkpoint's tokenizer and chat"
                    " template."
                )
            return made

    return ComparedTrainer


def check(pairs: Sequence[tuple[np.ndarray, Reference]]) -> None:
    """Check the trainer's log-probabilities, float64 [tokens] per row, against those of the plain model.

    Raises:
        TrainingError: The mean difference over all tokens is larger than rounding.
    """
    exact = [reference.exact for _, reference in pairs]
    rounding = own_pass.mean_difference([reference.rounded for _, reference in pairs], exact)
    difference = own_pass.mean_difference([trained for trained, _ in pairs], exact)
    bound = FLOAT32 + RATIO * rounding
    if not difference <= bound:  # NaN is no agreement
        raise TrainingError(
            f"training: the trainer's log-probabilities differ from those of the plain model by {difference:.2g} nats"
            f" on average over {sum(map(len, exact))} tokens of {len(pairs)} completions, expected at most {bound:.2g}"
            " (rounding). The loss gets other inputs than the model was made for: check the checkpoint's tokenizer,"
            " chat template and processor, and the versions of trl and transformers."
        )
