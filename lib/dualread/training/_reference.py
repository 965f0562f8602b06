"""Compares the log-probabilities of the loss with those of the plain model, at the start of every training.

TRL makes the inputs of its loss itself: it renders, tokenizes and pads prompts, and joins them with completions. A
wrong input, such as token types that are shifted by one column, changes log-probabilities by a few tenths of a nat, and
training goes on. So some rows of a training's first step are also read by transformers alone: one row at a time,
without padding, with all inputs from the processor, in float32. The trainer may differ by rounding only. How much that
is in bfloat16 depends on the model; it is measured by reading the same rows in the trainer's precision.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.errors import DataError, TrainingError
from dualread.models import own_pass
from dualread.models.backbones import parts
from dualread.models.backbones.encode import Encoder

if TYPE_CHECKING:
    from dualread.training._grpo_trainer import ActorTrainer

_GENERATED = 6  # tokens that the model's own generation is compared on
ROWS = 8  # rows of each process that are compared
RATIO = 3.0  # the trainer may differ from float32 by this many times the measured rounding
FLOAT32 = 1e-4  # and by so many nats where nothing is rounded to bfloat16: about 100 times what float32 explains


class Comparison:
    """The rows of a training's first step that are compared, and what was found.

    If the trainer computes in bfloat16, `rounding_of_an_engine` is by how much log-probabilities of a model differ
    whose weights and states are all in bfloat16: the mean over the tokens that are compared, in nats.
    """

    def __init__(self, completion_type: int):
        self._completion_type = completion_type
        # By row of the first step, what the plain model says in float32 and in the trainer's precision; None before.
        self._awaited: dict[int, tuple[np.ndarray, np.ndarray]] | None = None
        self._compared: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.rounding_of_an_engine = 0.0

    @property
    def is_over(self) -> bool:
        """Whether all rows have been compared."""
        return self._awaited == {}

    def add(self, log_probs: Any, rows: Sequence[int]) -> None:
        """Take the log-probabilities of rows in a pass of the loss [rows, tokens]; check them when all are there."""
        for of_row, row in zip(log_probs, rows, strict=True):
            if self._awaited and row in self._awaited:
                exact, rounded = self._awaited.pop(row)
                self._compared.append((of_row[: len(exact)].double().cpu().numpy(), exact, rounded))
                if not self._awaited:
                    check(*zip(*self._compared, strict=True))

    def begin(self, trainer: "ActorTrainer", output: Mapping[str, Any]) -> None:
        """Read some rows of the trainer's first step with any to learn from; `output` is what TRL has made of it."""
        import torch

        if self._awaited is not None:
            return

        def ids_of(part: str) -> list[Any]:
            of_rows = zip(output[f"{part}_ids"], output[f"{part}_mask"].bool(), strict=True)
            return [ids[mask] for ids, mask in of_rows]

        rows, prompts, completions = trainer.rows, ids_of("prompt"), ids_of("completion")
        # Prompts of different lengths, because the trainer pads the shorter ones. A masked completion has no tokens.
        by_length = sorted((i for i in range(len(rows)) if len(completions[i])), key=lambda i: len(prompts[i]))
        if not by_length:
            return
        chosen = sorted({by_length[int(k)] for k in np.linspace(0, len(by_length) - 1, ROWS)})
        encoder, model, first = trainer.opened.encoder, trainer.opened.model, chosen[0]

        # Not kept in memory: with the images of all rows, they are large.
        def read(model: Any = model) -> list[np.ndarray]:
            of_rows = ((_inputs(encoder, rows[i], prompts[i]), completions[i].tolist()) for i in chosen)
            return [own_pass.log_probs(model, *row, self._completion_type, trainer.temperature) for row in of_rows]

        with for_sampling(model), parts.in_attention(model, "sdpa"):
            with torch.autocast(model.device.type, enabled=False), own_pass.in_float32(model):
                self._check_type(model, _inputs(encoder, rows[first], prompts[first]), completions[first].tolist())
                exact = read()
            with trainer.accelerator.autocast():
                rounded = read() if trainer.args.bf16 else exact
            if trainer.args.bf16 and trainer.engine is not None:
                with torch.autocast(model.device.type, enabled=False), trainer.in_bfloat16() as rounding:
                    self.rounding_of_an_engine = own_pass.mean_difference(read(rounding), exact)
        self._awaited = dict(zip(chosen, zip(exact, rounded, strict=True), strict=True))

    def _check_type(self, model: Any, inputs: Mapping[str, Any], completion: Sequence[int]) -> None:
        """Trainer and reference are told the token type of a completion; the model's own generation is not."""
        ids = completion[:_GENERATED]
        read = own_pass.log_probs(model, inputs, ids, self._completion_type)
        made = own_pass.generated(model, inputs, ids).double().log_softmax(dim=-1)
        difference = float(np.abs(made[range(len(ids)), ids].cpu().numpy() - read).mean())
        if not difference <= FLOAT32:
            raise TrainingError(
                f"training: with completions of token type {self._completion_type}, log-probabilities differ from those"
                f" of the model's own generation by {difference:.2g} nats on average, expected at most {FLOAT32}."
                " The facts are not those of this checkpoint: probe it again."
            )


def asked_in(row: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the text of the last turn of a row's prompt, and the turns before it."""
    *before, last = row["prompt"]
    return last["content"], tuple((turn["role"], turn["content"][0]["text"]) for turn in before)


def _inputs(encoder: Encoder, row: Mapping[str, Any], prompt: Any) -> Mapping[str, Any]:
    text, before = asked_in(row)
    made = encoder.inputs(text, row["images"], before)
    if (theirs := made["input_ids"][0].tolist()) != prompt.tolist():
        raise DataError(
            f"{row['sample_id']}: the trainer encodes the prompt as {len(prompt)} ids that differ from the"
            f" {len(theirs)} of its processor. Expected the same ids. Check the checkpoint's tokenizer and chat"
            " template."
        )
    return made


@contextlib.contextmanager
def for_sampling(model: Any) -> Iterator[None]:
    """Let `model`, which is being trained, generate with a cache of keys and values.

    Layers that compute their activations again in the backward pass keep no cache while they train.
    """
    import torch

    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train()


def check(trained: Sequence[np.ndarray], exact: Sequence[np.ndarray], rounded: Sequence[np.ndarray]) -> None:
    """Check the trainer's log-probabilities, float64 [tokens] per row, against those of the plain model."""
    rounding, difference = (own_pass.mean_difference(rows, exact) for rows in (rounded, trained))
    bound = FLOAT32 + RATIO * rounding
    if not difference <= bound:  # NaN is no agreement
        raise TrainingError(
            f"training: the trainer's log-probabilities differ from those of the plain model by {difference:.2g} nats"
            f" on average over {sum(map(len, exact))} tokens of {len(exact)} completions, expected at most {bound:.2g}"
            " (rounding). The loss gets other inputs than the model was made for: check the checkpoint's tokenizer,"
            " chat template and processor, and the versions of trl and transformers."
        )
