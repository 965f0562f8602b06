"""VL-Calibration: GRPO whose reward and token weights use how much the <vision> block depends on the image.

After each generation, the policy reads every completion twice more: with the clean image, and with an image in which
random patches are black (Xiao 2026, arXiv 2604.09529). The difference between the two determines
- the visual certainty S of each completion, the target of the stated vision confidence
  (`dualread.training.rewards.vl_calibration`);
- a weight in [0.9, 1.1] of the advantage of each vision token, in completions with negative advantage. All other tokens
  have weight 1.

Choices that the method leaves open:
- There is one blackened image per question and step for all completions of the question, so that their S differ only by
  what they say and not by which patches are black. (The released code draws one per completion.) It depends only on the
  seed, the step and the question.
- KL and H of a completion are means over its vision tokens. As in the released code, S is standardized over the whole
  generation batch on all processes.
- The released code also restricts the policy loss to the 20% of tokens with the largest KL. This is left out: TRL's
  `top_entropy_quantile` is a different mask, by entropy over the batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.backbones.opened import Opened
from dualread.schema.base import Positive
from dualread.seeding import generator
from dualread.training._rollouts import for_sampling
from dualread.training._visual_dependence import Block, blacken, measure
from dualread.training.job import Job
from dualread.training.rewards.vl_calibration import token_weights, visual_certainty
from dualread.training.settings import TrainingSettings
from dualread.training.trainer import run

EXTRA_PASSES = 2  # with the clean and with the blackened image; `dualread plan` reads this


class Settings(TrainingSettings):
    """How an actor is trained."""

    patch_pixels: Positive
    """Side of a blackened patch, in pixels of the image."""


def train(job: Job) -> list[dict[str, Any]]:
    """Train an actor from `job.checkpoint`, save it to `job.out`, and return its log."""
    return run(job, lambda trainer: _with_visual_terms(trainer, job))


def _with_visual_terms(trainer: type, job: Job) -> type:
    class VLCalibrationTrainer(trainer):
        reads_by_itself = True  # in each step, whatever samples
        _blocks: Sequence[Block | None]
        _opened: Opened  # of this step; `trainer` sets it

        def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
            views = _views(self._opened.encoder, inputs, job, self.state.global_step)
            with self.accelerator.autocast(), for_sampling(self._opened.model):
                self._blocks = measure(
                    self._opened,
                    [views[row["sample_id"]] for row in inputs],
                    completion_ids_list,
                    temperature=self.temperature,
                    rows_per_pass=self.args.per_device_train_batch_size,
                )
            columns = _columns(self._blocks, self.accelerator.process_index)
            rows = [{**row, **{name: column[i] for name, column in columns.items()}} for i, row in enumerate(inputs)]
            return super()._calculate_rewards(rows, prompts, completions, completion_ids_list)

        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            output = super()._generate_and_score_completions(inputs)
            output["advantages"] = _shaped(output["advantages"], self._blocks, output["completion_ids"].size(1))
            return output

    return VLCalibrationTrainer


def _views(
    encoder: Encoder, inputs: Sequence[Mapping[str, Any]], job: Job, step: int
) -> dict[str, tuple[EncodedPrompt, EncodedPrompt]]:
    """Return the prompt of each question with the clean and with the blackened image, by sample_id."""
    views = {}
    for sample_id, row in {row["sample_id"]: row for row in inputs}.items():
        rng = generator("blacken", job.seed, step, sample_id)
        images = row["image"], blacken(row["image"], job.chosen(Settings).patch_pixels, rng)
        views[sample_id] = tuple(
            encoder.prompt(row["prompt"][0]["content"], image=image, row=sample_id) for image in images
        )
    return views


def _columns(blocks: Sequence[Block | None], process: int) -> dict[str, list[float | None]]:
    """Return the columns that the reward reads of this process's completions; None for those without a vision block."""
    # S is standardized over the completions of all processes, each of which has the same number of completions.
    from accelerate.utils import gather_object

    kl = [None if block is None else float(block.kl.mean()) for block in blocks]
    entropy = [None if block is None else float(block.entropy.mean()) for block in blocks]
    certainty = visual_certainty(gather_object(kl), gather_object(entropy))
    mine = certainty[process * len(blocks) : (process + 1) * len(blocks)]
    return {"visual_certainty": mine, "visual_kl": kl, "visual_entropy": entropy}


def _shaped(advantages: Any, blocks: Sequence[Block | None], n_tokens: int) -> Any:
    """Return the advantages [n] as [n, n_tokens], with negative advantages weighted at the vision tokens."""
    shaped = advantages[:, None].repeat(1, n_tokens)
    for row, block in zip(shaped, blocks, strict=True):
        if block is not None and row[0] < 0:
            weights = token_weights(block.kl, block.entropy)
            row[list(block.tokens)] *= row.new_tensor(weights)
    return shaped
