"""VL-Calibration: GRPO whose reward and token weights use how much the <vision> block depends on the image.

After each generation, the policy reads every completion twice more: with the clean image, and with an image in which
random patches are black (Xiao 2026, arXiv 2604.09529). Both passes are teacher-forced over the exact generated ids. At
every token of the block, the full distributions are compared: KL(clean || blackened) = sum over the vocabulary of
p (log p - log q), and H = -sum p log p. This determines
- the visual certainty S of each completion, the target of the stated vision confidence
  (`dualread.training.rewards.vl_calibration`);
- a weight in [0.9, 1.1] of the advantage of each vision token, in completions with negative advantage. All other tokens
  have weight 1.

There is one blackened image per question and step for all completions of the question, so that their S differ only by
what they say and not by which patches are black. It depends only on the seed, the step and the question. KL and H of a
completion are means over its vision tokens. Logits of the whole vocabulary are computed for the tokens of vision blocks
only, in chunks: the passes fit into the memory of any device that can train the model. What the released code does
otherwise: docs/choices.md, "VL-Calibration, rewards" and "VL-Calibration, token weights".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.grading.answers import character_spans, tokens_within
from dualread.grading.parse import block_span
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.prefixes import states_before
from dualread.schema.base import Positive
from dualread.seeding import generator
from dualread.training._reference import asked_in, for_sampling
from dualread.training.job import Job
from dualread.training.rewards.vl_calibration import token_weights, visual_certainty
from dualread.training.settings import TrainingSettings
from dualread.training.trainer import Algorithm, run

if TYPE_CHECKING:
    from PIL.Image import Image

    from dualread.training._grpo_trainer import ActorTrainer

EXTRA_PASSES = 2  # with the clean and with the blackened images; `dualread plan` reads this
# From the released code: probability of a black patch, and upper bound of KL and H.
BLACK_SHARE = 0.8
LARGEST_TERM = 10.0
_CHUNK_TOKENS = 512  # tokens whose vocabulary logits are in memory at once


class Settings(TrainingSettings):
    """How an actor is trained."""

    patch_pixels: Positive
    """Side of a blackened patch, in pixels of the image."""


def train(job: Job) -> list[dict[str, Any]]:
    """Train an actor from `job.checkpoint`, save it to `job.out`, and return its log."""
    return run(job, VLCalibration(job))


class VLCalibration(Algorithm):
    """GRPO whose reward and token weights use how much the vision block depends on the image."""

    reads_rows = True

    def __init__(self, job: Job):
        """Take the job."""
        self._job = job
        self._blocks: Sequence[Block | None] = ()  # of the completions of this process and step

    def columns(self, trainer: "ActorTrainer", completions: Sequence[Sequence[int]]) -> dict[str, list[float | None]]:
        """Return what the reward reads of each completion; None without a vision block."""
        from accelerate.utils import gather_object

        views = _views(trainer.opened.encoder, trainer.rows, self._job, trainer.state.global_step)
        with trainer.accelerator.autocast(), for_sampling(trainer.opened.model):
            self._blocks = blocks = measure(
                trainer.opened,
                [views[row["sample_id"]] for row in trainer.rows],
                completions,
                temperature=trainer.temperature,
                rows_per_pass=trainer.args.per_device_train_batch_size,
            )
        kl = [None if block is None else float(block.kl.mean()) for block in blocks]
        entropy = [None if block is None else float(block.entropy.mean()) for block in blocks]
        # S is standardized over the completions of all processes, each of which has the same number of completions.
        certainty = visual_certainty(gather_object(kl), gather_object(entropy))
        first = trainer.accelerator.process_index * len(blocks)
        return {"visual_certainty": certainty[first : first + len(blocks)], "visual_kl": kl, "visual_entropy": entropy}

    def advantages(self, output: Mapping[str, Any]) -> Any:
        """Return the advantages of tokens [n, tokens]; negative ones are weighted at the vision tokens."""
        shaped = output["advantages"][:, None].repeat(1, output["completion_ids"].size(1))
        for row, block in zip(shaped, self._blocks, strict=True):
            if block is not None and row[0] < 0:
                row[list(block.tokens)] *= row.new_tensor(token_weights(block.kl, block.entropy))
        return shaped


def _views(
    encoder: Encoder, inputs: Sequence[Mapping[str, Any]], job: Job, step: int
) -> dict[str, tuple[EncodedPrompt, EncodedPrompt]]:
    """Return the prompt of each question with the clean and with the blackened images, by sample_id."""
    views = {}
    for sample_id, row in {row["sample_id"]: row for row in inputs}.items():
        rng = generator("blacken", job.seed, step, sample_id)
        black = [blacken(image, job.settings.patch_pixels, rng) for image in row["images"]]
        text, before = asked_in(row)
        views[sample_id] = tuple(
            encoder.prompt(text, images=images, row=sample_id, before=before) for images in (row["images"], black)
        )
    return views


@dataclass(frozen=True, kw_only=True)
class Block:
    """The vision block of one completion: the positions of its tokens, ascending, and KL and H of each [n], in [0, 10]
    nats.
    """

    tokens: tuple[int, ...]
    kl: np.ndarray
    entropy: np.ndarray


def blacken(image: "Image", patch_pixels: int, rng: np.random.Generator) -> "Image":
    """Return a copy of the RGB image in which each square patch is black with probability 0.8.

    As in the released code, the grid of patches starts at the upper left, in pixels of the original image. Patches at
    the right and lower edges are smaller if the size is not a multiple of `patch_pixels`.
    """
    from PIL import Image as images

    pixels = np.asarray(image)
    height, width = pixels.shape[:2]
    black = rng.random((-(-height // patch_pixels), -(-width // patch_pixels))) < BLACK_SHARE
    black = black.repeat(patch_pixels, axis=0).repeat(patch_pixels, axis=1)[:height, :width]
    return images.fromarray(np.where(black[:, :, None], np.uint8(0), pixels))


def vision_tokens(token_ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> tuple[int, ...]:
    """Return the positions of tokens with any character inside the vision block, without tags and outer white space.

    The result is empty unless there is exactly one closed block with text in it.
    """
    text, spans = character_spans(token_ids, decode)
    block = block_span(text, "vision")
    if block is None:
        return ()
    inside = text[block[0] : block[1]]
    return tokens_within(spans, block[0] + len(inside) - len(inside.lstrip()), block[0] + len(inside.rstrip()))


def measure(
    opened: Opened,
    views: Sequence[tuple[EncodedPrompt, EncodedPrompt]],
    completions: Sequence[Sequence[int]],
    *,
    temperature: float,
    rows_per_pass: int,
) -> list[Block | None]:
    """Measure the vision block of each completion, given by its ids; None for completions without one.

    `views` are the prompts of each completion, with the clean and with the blackened images. Logits are divided by
    `temperature`, as in the loss.
    """
    import torch

    tokens = [vision_tokens(ids, opened.encoder.decode) for ids in completions]
    rows = [i for i, positions in enumerate(tokens) if positions]
    blocks: list[Block | None] = [None] * len(completions)
    for start in range(0, len(rows), rows_per_pass):
        part = rows[start : start + rows_per_pass]
        # Tokens after a block do not influence it.
        prefixes = [completions[i][: tokens[i][-1]] for i in part]
        positions = [tokens[i] for i in part]
        with torch.no_grad():
            clean, blackened = (
                states_before(opened, [views[i][side] for i in part], prefixes, positions) for side in (0, 1)
            )
            kl, entropy = _compare(opened.model, clean, blackened, temperature)
        split = np.cumsum([len(p) for p in positions])[:-1]
        for i, block_kl, block_entropy in zip(part, np.split(kl, split), np.split(entropy, split), strict=True):
            blocks[i] = Block(tokens=tokens[i], kl=block_kl, entropy=block_entropy)
    return blocks


def _compare(model: Any, clean: Any, blackened: Any, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Return KL(clean || blackened) and the entropy of clean, both float64 [n], from states [n, D]."""
    import torch

    kl, entropy, head = [], [], parts.head(model)
    for p_states, q_states in zip(clean.split(_CHUNK_TOKENS), blackened.split(_CHUNK_TOKENS), strict=True):
        log_p, log_q = (
            torch.log_softmax(head(states).float() / temperature, dim=-1) for states in (p_states, q_states)
        )
        p = log_p.exp()
        kl.append((p * (log_p - log_q)).sum(dim=-1))
        entropy.append(-(p * log_p).sum(dim=-1))
    terms = torch.stack([torch.cat(kl), torch.cat(entropy)]).clamp(0, LARGEST_TERM).cpu().double().numpy()
    return terms[0], terms[1]
