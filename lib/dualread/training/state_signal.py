"""State signal: GRPO with a head that predicts from hidden states whether the rollout is correct.

Not in the paper, which leaves open whether states can be a part of training without the collapse that stated
confidences show: few distinct values, and none that follows the image. The head is two logistic regressions of the
correctness z of a rollout: on h_pre, the final-layer state of the last prompt token, and on h_close, that of the token
that closes the answer. They are the states of the replay, taken from the pass of the loss itself. The loss is that of
GRPO plus `weight` x the mean of both cross-entropies over the rollouts. The head's confidence c is the sigmoid of the
mean of its two log-odds, as DualRead fuses its branches.

Arms:
- `weight: 0` has no head. It is GRPO, byte for byte.
- `detach: true`: the head learns, and its loss does not reach the states. A control: the actor is that of weight 0.
- `detach: false`: the states are trained, too.
- the reward `state_signal` with `detach: true`: -(c - z)^2 is added to the reward, as RLCR does with the stated
  confidence. Then each step reads its rollouts once more, before the loss.

The head starts from zero, so that c starts at 0.5, and draws no random number. Adam has its own learning rate for it,
because the one of the actor is too small for a head that is new. The head is saved beside the checkpoint, not in its
folder, where engines take each safetensors file for weights of the model; the confidence method `state_head` reads it.
Other choices: docs/choices.md, "State signal".
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from dualread.artifacts.tensors import write_tensors
from dualread.errors import ConfigError
from dualread.models.prefixes import states_before
from dualread.readers.state_head import HEAD_FILE
from dualread.schema.base import AS_GIVEN, Above0, AtLeast0
from dualread.training._lora import base_of
from dualread.training._reference import for_sampling
from dualread.training.job import Job
from dualread.training.rewards.base import Verdict
from dualread.training.settings import TrainingSettings
from dualread.training.trainer import Algorithm, run

if TYPE_CHECKING:
    from torch import Tensor

    from dualread.training._grpo_trainer import ActorTrainer

_STATE = "state_head.pt"  # in a checkpoint of the trainer: the head, and Adam's moments
_LOGGED = "terms/state_loss/mean"


class Settings(TrainingSettings):
    """How an actor is trained."""

    weight: Annotated[AtLeast0, AS_GIVEN]
    """Weight of the head's cross-entropy in the loss; with 0, there is no head."""
    detach: bool = False
    """Whether the head learns from the states without changing them, by default not."""
    head_learning_rate: Annotated[Above0, AS_GIVEN] | None = None
    """Step size of Adam for the head, which stays the same over the steps; needed unless `weight` is 0."""


def train(job: Job) -> list[dict[str, Any]]:
    """Train an actor from `job.checkpoint`, save it to `job.out` and its head beside it, and return its log."""
    settings = job.settings
    reads_confidence = getattr(job.reward, "READS_STATE_CONFIDENCE", False)
    if settings.weight == 0:
        if reads_confidence:
            raise ConfigError(
                f"training state_signal: weight: 0 leaves out the head, whose confidence the reward"
                f" {job.reward.__name__} reads. Expected a larger weight. Set one, or the reward rlvr."
            )
        return run(job, Algorithm())
    if settings.head_learning_rate is None:
        raise ConfigError(
            "training state_signal: no head_learning_rate. Expected one where `weight` is above 0. Set one."
        )
    return run(job, StateSignal(job, settings.head_learning_rate, reads_rows=reads_confidence))


class Head:
    """Two logistic regressions, on h_pre and on h_close: `weight` [2, D], `bias` [2], and the optimizer of both."""

    def __init__(self, width: int, learning_rate: float, device: Any):
        import torch

        self.weight = torch.zeros(2, width, device=device, requires_grad=True)
        self.bias = torch.zeros(2, device=device, requires_grad=True)
        self.optimizer = torch.optim.Adam([self.weight, self.bias], lr=learning_rate)

    def log_odds(self, states: "Tensor") -> "Tensor":
        """Return the log-odds [n, 2] of states [n, 2, D], in float32 whatever the model computes in."""
        return (states.float() * self.weight).sum(dim=-1) + self.bias  # autocast would round a matrix product

    def step(self) -> None:
        """Take a step with the mean of the gradients of all processes."""
        from accelerate.utils import reduce

        for part in (self.weight, self.bias):
            gradient: Any = reduce(part.grad, reduction="mean")
            part.grad = gradient
        self.optimizer.step()
        self.optimizer.zero_grad()

    def save_state(self, path: Path) -> None:
        """Write all that training goes on from."""
        import torch

        torch.save({"weight": self.weight, "bias": self.bias, "optimizer": self.optimizer.state_dict()}, path)

    def load_state(self, path: Path) -> None:
        """Read what `save_state` wrote."""
        import torch

        saved = torch.load(path, map_location=self.weight.device, weights_only=True)
        with torch.no_grad():
            self.weight.copy_(saved["weight"])
            self.bias.copy_(saved["bias"])
        self.optimizer.load_state_dict(saved["optimizer"])


class StateSignal(Algorithm):
    """GRPO with the head's cross-entropy in its loss."""

    head: Head

    def __init__(self, job: Job, learning_rate: float, *, reads_rows: bool):
        """Take the job; `reads_rows` says whether the reward reads the head's confidence."""
        self._job, self._settings, self._learning_rate = job, job.settings, learning_rate
        self.reads_rows, self.teaches_without_spread = reads_rows, not self._settings.detach
        self._close: Sequence[int] = ()  # t_close of the completions of this process and step
        self._correct: Sequence[bool] = ()  # and z
        self._losses: list[float] = []  # of the passes of this step

    def columns(self, trainer: "ActorTrainer", completions: Sequence[Sequence[int]]) -> dict[str, list[float]]:
        """Return the head's confidence in each completion where the reward reads it."""
        import torch

        opened, size = trainer.opened, trainer.args.per_device_train_batch_size
        self._close = [opened.locate(ids).close for ids in completions]
        if not self.reads_rows:
            return {}
        prompts = [trainer.prompts[row["sample_id"]] for row in trainer.rows]
        log_odds = []
        with trainer.accelerator.autocast(), for_sampling(opened.model):
            for start in range(0, len(completions), size):
                part = slice(start, start + size)
                ends = [close + 1 for close in self._close[part]]
                read = [ids[:end] for ids, end in zip(completions[part], ends, strict=True)]
                states = states_before(opened, prompts[part], read, [(0, end) for end in ends])
                log_odds.append(self.head.log_odds(states.reshape(len(ends), 2, -1)))
        return {"state_confidence": torch.cat(log_odds).mean(dim=1).sigmoid().tolist()}

    def note_rewards(
        self,
        verdicts: Sequence[Verdict],
        rewards: Sequence[float],
        log_metric: Callable[[str, float], None],
        **columns: Any,
    ) -> None:
        """Keep the correctness of each completion."""
        self._correct = [verdict.correct for verdict in verdicts]

    def loss(self, trainer: "ActorTrainer", inputs: Mapping[str, Any], computed: Callable[[], Any]) -> Any:
        """Return the loss of GRPO and, with its weight, that of the head."""
        import torch
        from accelerate.utils import gather_object
        from torch.nn.functional import binary_cross_entropy_with_logits

        with _final_states(base_of(trainer.plain)) as passes:
            loss = computed()
        [final] = passes
        rows, width = inputs["row"].tolist(), inputs["prompt_ids"].size(1)
        places = torch.tensor([[width - 1, width + self._close[row]] for row in rows], device=final.device)
        states = final[torch.arange(len(rows), device=final.device)[:, None], places]
        log_odds = self.head.log_odds(states.detach() if self._settings.detach else states)
        z = log_odds.new_tensor([float(self._correct[row]) for row in rows])[:, None].expand(-1, 2)
        counts = inputs["completion_mask"].any(dim=1)
        cross_entropy = binary_cross_entropy_with_logits(log_odds, z, reduction="none").mean(dim=1)
        of_head = torch.where(counts, cross_entropy, 0.0).mean()
        self._losses.append(float(of_head.detach()))
        n_passes = trainer.current_gradient_accumulation_steps
        if len(self._losses) == n_passes:
            trainer.measured[_LOGGED] = float(np.mean(gather_object(self._losses)))
            self._losses = []
        return loss + self._settings.weight * of_head / n_passes

    def callbacks(self) -> list[Any]:
        """Return the callback that makes, restores, moves and saves the head."""
        from transformers import TrainerCallback

        signal, job = self, self._job

        class OfHead(TrainerCallback):
            def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any, **named: Any) -> None:
                width = model.config.get_text_config().hidden_size
                signal.head = Head(width, signal._learning_rate, args.device)
                if state.global_step and job.checkpoints is not None:
                    signal.head.load_state(job.checkpoints / f"checkpoint-{state.global_step}" / _STATE)

            def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **named: Any) -> None:
                signal.head.step()

            def on_save(self, args: Any, state: Any, control: Any, **named: Any) -> None:
                if state.is_world_process_zero:
                    signal.head.save_state(Path(args.output_dir, f"checkpoint-{state.global_step}", _STATE))

            def on_train_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
                if state.is_world_process_zero:
                    tensors = {name: getattr(signal.head, name).detach().cpu().numpy() for name in ("weight", "bias")}
                    write_tensors(job.out.parent / HEAD_FILE, tensors, {})

        return [OfHead()]


@contextlib.contextmanager
def _final_states(model: Any) -> Iterator[list[Any]]:
    """Collect the final-layer states [rows, tokens, D] of each pass through `model`."""
    passes: list[Any] = []
    hook = model.model.register_forward_hook(lambda module, inputs, output: passes.append(output.last_hidden_state))
    try:
        yield passes
    finally:
        hook.remove()
