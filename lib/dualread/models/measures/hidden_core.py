"""The entropy of the answer with the whole image, and with the core of the image hidden: what VAUQ compares.

The core are those of the image's tokens to which the answer's tokens attend most: the attention to each is averaged
over the answer's tokens, the heads, and the layers between two depths, and a share of the image's tokens, at least one,
is the core. In a second pass no token sees the core, while all positions stay. The entropies are those of the
distributions from which the answer's tokens were chosen, in nats, averaged over these tokens (`replay.positions`).

Both passes compute attention as transformers writes it out ("eager").

References:
    Park et al., VAUQ: Vision-Aware Uncertainty Quantification for LVLM Self-Evaluation, Findings of ACL 2026,
    arXiv 2602.21054, and the code of its authors (deeplearning-wisc/vauq), which averages over all tokens of a
    completion: there it is the answer alone, without a stated confidence.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from pydantic import model_validator

from dualread.errors import ConfigError
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.replay.replayed import entropies_of
from dualread.schema.base import Section, Share

PASSES = 2


class Settings(Section):
    """What of the image is hidden."""

    share: Share
    """The share of the image's tokens that is hidden; 0 hides none."""
    from_depth: Share
    """Where the layers begin whose attention counts; 0 is the first layer."""
    to_depth: Share
    """Where they end; 1 is the last layer."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.from_depth >= self.to_depth:
            raise ValueError(f"has from_depth {self.from_depth} and to_depth {self.to_depth}. Expected a range.")
        return self


def measure(
    opened: Opened, prompts: Sequence[EncodedPrompt], completions: Sequence[Sequence[int]], settings: Settings
) -> list[dict[str, np.ndarray]]:
    """Return `entropy` and `entropy_hidden`, the mean entropy of the answer's tokens with and without the core [1]."""
    import torch

    model, encoder, start = opened.model, opened.encoder, len(prompts[0].token_ids)
    images, answers = [], []
    for prompt, completion in zip(prompts, completions, strict=True):
        image = (torch.tensor(prompt.token_ids) == encoder.image_token_id).nonzero()[:, 0]
        if not len(image):
            raise ConfigError(f"{prompt.row}: no image is shown, so there is none to hide. Choose another condition.")
        images.append(image.to(model.device))
        of_answer = opened.locate(completion).answer
        answers.append(torch.tensor([start + t for t in of_answer], device=model.device))
    inputs = {name: tensor.to(model.device) for name, tensor in encoder.batch(prompts, completions).items()}
    with parts.in_attention(model, "eager"):
        inputs |= encoder.shared_images(model, prompts)
        with parts.positions(model) as seen, _attention(model, answers, images, settings) as attended:
            shown = model.model(**inputs, use_cache=False).last_hidden_state
        if not attended:
            raise ConfigError(
                f"measures.hidden_core: no layer from depth {settings.from_depth} to {settings.to_depth} of this model"
                " says what it attends to. Choose other depths, or a model with attention."
            )
        # Some models would compute other positions where tokens are hidden.
        fixed = {"position_ids": seen[0]} if seen else {}
        mask = inputs["attention_mask"].clone()
        for k, (image, of_layers) in enumerate(zip(images, zip(*attended, strict=True), strict=True)):
            mask[k, image[core_of(torch.stack(of_layers).mean(dim=0), settings.share)]] = 0
        is_same = torch.equal(mask, inputs["attention_mask"])
        hidden = shown if is_same else model.model(**{**inputs, "attention_mask": mask}, **fixed, use_cache=False)[0]
    entropies = (_mean_entropies(model, states, answers) for states in (shown, hidden))
    return [{"entropy": entropy, "entropy_hidden": other} for entropy, other in zip(*entropies, strict=True)]


def core_of(attention: Any, share: float) -> Any:
    """Return the positions of the share of image tokens to which most attention [M] goes; of equal ones the first.

    The number is rounded down, and is at least 1 unless the share is 0.
    """
    import torch

    n = 0 if share == 0 else max(1, math.floor(share * len(attention)))
    return torch.argsort(attention, descending=True, stable=True)[:n]


def _mean_entropies(model: Any, states: Any, answers: Sequence[Any]) -> list[np.ndarray]:
    """Return the mean entropy of the tokens `answers` of each row [1]; the state before a token predicts it."""
    import torch

    predicting = torch.cat([of_row[answer - 1] for of_row, answer in zip(states, answers, strict=True)])
    entropies = entropies_of(parts.head(model, torch.float32), predicting)
    of_rows = np.split(entropies, np.cumsum([len(answer) for answer in answers])[:-1])
    return [of_row.mean(keepdims=True) for of_row in of_rows]


@contextlib.contextmanager
def _attention(
    model: Any, answers: Sequence[Any], images: Sequence[Any], settings: Settings
) -> Iterator[list[list[Any]]]:
    """Collect, for each layer of the range, the mean attention [M] from each row's `answers` to its `images`."""
    attended: list[list[Any]] = []
    n_layers = model.config.get_text_config().num_hidden_layers
    first, end = (math.floor(depth * n_layers + 0.5) for depth in (settings.from_depth, settings.to_depth))

    def note(module: Any, inputs: Any, output: Any) -> None:
        weights: Any = output[1] if isinstance(output, tuple) and len(output) > 1 else None
        if getattr(weights, "ndim", 0) == 4:  # [rows, heads, tokens, tokens]
            rows = zip(weights, answers, images, strict=True)
            attended.append([weight[:, answer][:, :, image].float().mean(dim=(0, 1)) for weight, answer, image in rows])

    layers = range(first, max(end, first + 1))
    handles = [
        module.register_forward_hook(note)
        for name, module in model.model.named_modules()
        if getattr(module, "layer_idx", None) in layers and "vision" not in name and "visual" not in name
    ]
    try:
        yield attended
    finally:
        for handle in handles:
            handle.remove()
