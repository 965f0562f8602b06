"""VL-Calibration: GRPO whose reward and token credit know how much the <vision> block depends on the image.

Once a generation, the policy that generated reads every completion again with the clean image and with one in which
random patches are black (Xiao 2026, arXiv 2604.09529). What differs gives each completion its visual certainty S, a
target for the stated vision confidence (`dualread.models.rewards.vl_calibration`), and each vision token of a
completion with negative advantage its share of the blame, a weight in [0.9, 1.1]; all other tokens have weight 1.

What the method leaves open, decided here:
- One blackened view a question and step, shared by its completions: they are then told apart by what they say, not by
  luck with the patches (the released code draws one a completion). It is a function of (seed, step, question) alone.
- KL and H of a completion are means over its vision tokens; S is standardized over the whole generation batch, of all
  processes, as in the released code.
- The released code also keeps the policy loss of only the 20% of tokens with the largest KL. That mask is not here:
  TRL's `top_entropy_quantile` is another one (entropy, over the batch).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dualread.models.backbones.encode import Encoder, Prompt
from dualread.models.rewards.vl_calibration import token_weights, visual_certainty
from dualread.models.training._visual_dependence import Block, blacken, measure
from dualread.models.training.trainer import Job, run
from dualread.seeding import generator

SETTINGS_OF = "grpo"
SETTINGS = {
    "patch_pixels": {"type": "integer", "minimum": 1},  # side of a blackened patch, in pixels of the image
}
EXTRA_PASSES = 2  # with the clean and with the blackened image; `dualread plan` reads this


def train(job: Job) -> list[dict[str, Any]]:
    """Train an actor from `job.checkpoint`, save it to `job.out`, and return its log."""
    return run(job, lambda trainer: _with_visual_terms(trainer, job))


def _with_visual_terms(trainer: type, job: Job) -> type:
    class VLCalibrationTrainer(trainer):
        _blocks: Sequence[Block | None]

        def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
            # A new encoder each time: it remembers the pixels of its images.
            encoder = Encoder(job.backbone, self.processing_class, job.max_prompt_tokens)
            views = _views(encoder, inputs, job, self.state.global_step)
            with self.accelerator.autocast():
                self._blocks = measure(
                    self.model,
                    encoder,
                    [views[row["sample_id"]] for row in inputs],
                    completion_ids_list,
                    temperature=self.temperature,
                    rows_a_pass=self.args.per_device_train_batch_size,
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
) -> dict[str, tuple[Prompt, Prompt]]:
    """Return each question's prompt with the clean and with the blackened image, by sample id."""
    views = {}
    for sample_id, row in {row["sample_id"]: row for row in inputs}.items():
        rng = generator("blacken", job.seed, step, sample_id)
        images = row["image"], blacken(row["image"], job.settings["patch_pixels"], rng)
        views[sample_id] = tuple(
            encoder.prompt(row["prompt"][0]["content"], image=image, row=sample_id) for image in images
        )
    return views


def _columns(blocks: Sequence[Block | None], process: int) -> dict[str, list[float | None]]:
    """Return what the reward gets to know of this process's completions, None without a vision block.

    Every process has equally many completions; S is that of all of them together.
    """
    from accelerate.utils import gather_object

    kl = [None if block is None else float(block.kl.mean()) for block in blocks]
    entropy = [None if block is None else float(block.entropy.mean()) for block in blocks]
    certainty = visual_certainty(gather_object(kl), gather_object(entropy))
    mine = certainty[process * len(blocks) : (process + 1) * len(blocks)]
    return {"visual_certainty": mine, "visual_kl": kl, "visual_entropy": entropy}


def _shaped(advantages: Any, blocks: Sequence[Block | None], n_tokens: int) -> Any:
    """Return the advantages [n] as [n, n_tokens], those of vision tokens with negative advantage weighted."""
    shaped = advantages[:, None].repeat(1, n_tokens)
    for row, block in zip(shaped, blocks, strict=True):
        if block is not None and row[0] < 0:
            weights = token_weights(block.kl, block.entropy)
            row[list(block.tokens)] *= row.new_tensor(weights)
    return shaped
