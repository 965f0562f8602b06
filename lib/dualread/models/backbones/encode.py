"""Turns a question and an image into token ids; pretraining, training, generation and replay all use this module.

A prompt is one user turn with the image first, rendered with the checkpoint's own chat template, without a system
message (docs/choices.md, "Chat template"). The processor expands the image placeholders.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.errors import DataError
from dualread.specs.parts import Settings

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

_IMAGES_IN_MEMORY = 512


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One encoded prompt.

    Attributes:
        token_ids: The ids, with image placeholders expanded.
        image_sha256: Digest of the image's content; prompts with equal digests share one image.
        image: The processor's image tensors (pixel_values, and image_grid_thw for Qwen).
        row: Name of the prompt in error messages.
    """

    token_ids: tuple[int, ...]
    image_sha256: str
    image: Mapping[str, "Tensor"]
    row: str

    def followed_by(self, token_ids: Sequence[int]) -> "Prompt":
        """Return the prompt followed by the first ids of a completion."""
        return replace(self, token_ids=(*self.token_ids, *token_ids))


class Encoder:
    """Encodes prompts for one checkpoint; keeps the pixels of recent images in memory.

    Images are identified by their content. Names are not unique: two data sets, or two splits of one, may both have a
    `0.png`.
    """

    def __init__(self, backbone: ModuleType, processor: Any, max_prompt_tokens: int):
        self.backbone = backbone
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.max_prompt_tokens = max_prompt_tokens
        self.image_token_id = backbone.image_token_id(processor)
        self._images: OrderedDict[str, Mapping[str, Tensor]] = OrderedDict()
        self._texts: dict[int, str] = {}
        self._counts: dict[str, int] = {}  # image tokens of each run of placeholders, one run per image size

    def image(self, image: "Image | Path") -> tuple[str, Mapping[str, "Tensor"]]:
        """Return the digest of an image's content, and the processor's tensors for the image.

        A file is read at every call, because its path does not identify its content. It is decoded only if its content
        is not in memory.
        """
        from dualread.data.images import content_sha256, open_image

        digest = content_sha256(image)
        if digest not in self._images:
            opened = open_image(image) if isinstance(image, Path) else image
            self._images[digest] = dict(self.processor.image_processor(images=[opened], return_tensors="pt"))
            if len(self._images) > _IMAGES_IN_MEMORY:
                self._images.popitem(last=False)
        self._images.move_to_end(digest)
        return digest, self._images[digest]

    def prompt(self, text: str, *, image: "Image | Path", row: str) -> Prompt:
        """Encode one user turn: the image, then `text`; `row` names it in error messages.

        Raises:
            DataError: The prompt is longer than `max_prompt_tokens`, its text contains image control tokens, or the
                image cannot be read.
        """
        digest, pixels = self.image(image)
        message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}
        rendered = self.processor.apply_chat_template([message], tokenize=False, add_generation_prompt=True)
        placeholders = self.processor.replace_image_token({"num_crops": [0], **pixels}, 0)
        expanded = rendered.replace(self.processor.image_token, placeholders, 1)
        token_ids = tuple(self.tokenizer(expanded, add_special_tokens=False)["input_ids"])
        expected = self._n_image_tokens(placeholders)
        if (found := token_ids.count(self.image_token_id)) != expected:
            raise DataError(
                f"{row}: the prompt has {found} image tokens, expected {expected}: its text contains image tokens."
                " Remove them from the question."
            )
        if len(token_ids) > self.max_prompt_tokens:
            raise DataError(
                f"{row}: the prompt has {len(token_ids)} tokens with its image, more than max_prompt_tokens = "
                f"{self.max_prompt_tokens}. Lower the backbone's max_pixels or raise the limit; nothing is truncated."
            )
        return Prompt(token_ids=token_ids, image_sha256=digest, image=pixels, row=row)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of `token_ids` without special tokens. The texts of single ids are kept in memory."""
        if len(token_ids) != 1:
            return self.tokenizer.decode(token_ids, skip_special_tokens=True)
        [token] = token_ids
        if token not in self._texts:
            self._texts[token] = self.tokenizer.decode([token], skip_special_tokens=True)
        return self._texts[token]

    def _n_image_tokens(self, placeholders: str) -> int:
        if placeholders not in self._counts:
            ids = self.tokenizer(placeholders, add_special_tokens=False)["input_ids"]
            self._counts[placeholders] = ids.count(self.image_token_id)
        return self._counts[placeholders]

    def batch(
        self,
        prompts: Sequence[Prompt],
        completions: Sequence[Sequence[int]] | None = None,
        *,
        width: int | None = None,
    ) -> dict[str, Any]:
        """Return the text inputs [n, P + C]: prompts padded on the left, completions (if any) padded on the right.

        P is `width`, or else the length of the longest prompt, and C that of the longest completion, in tokens.
        Completion token t is in column P + t of its row.
        """
        import torch

        pad = self.tokenizer.pad_token_id
        width = width or max(len(p.token_ids) for p in prompts)
        tails = [list(c) for c in completions] if completions is not None else [[] for _ in prompts]
        tail_width = max((len(t) for t in tails), default=0)
        ids = torch.full((len(prompts), width + tail_width), pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for i, (prompt, tail) in enumerate(zip(prompts, tails, strict=True)):
            start = width - len(prompt.token_ids)
            ids[i, start : width + len(tail)] = torch.tensor([*prompt.token_ids, *tail])
            mask[i, start : width + len(tail)] = 1
        return {"input_ids": ids, "attention_mask": mask, **self.token_types(ids, width)}

    def token_types(self, ids: "Tensor", width: int) -> dict[str, "Tensor"]:
        """Return the model input that is 1 for the image tokens of prompts: the first `width` columns of `ids`."""
        types = (ids == self.image_token_id).long()
        types[:, width:] = 0  # a completion has no image, even if an image token was sampled
        return {self.backbone.TOKEN_TYPES: types}

    def image_inputs(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """Return the image inputs of a batch with one image per row, as `model.generate` expects them."""
        import torch

        return {name: torch.cat([p.image[name] for p in prompts]) for name in prompts[0].image if name != "num_crops"}

    def shared_images(self, model: Any, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """Return the image arguments of `model.model` for a batch; each distinct image is encoded once."""
        return self.encode_images(model, prompts)(range(len(prompts)))

    def encode_images(self, model: Any, prompts: Sequence[Prompt]) -> Callable[[Sequence[int]], dict[str, Any]]:
        """Encode each distinct image of `prompts` once.

        Returns:
            A function that takes positions in `prompts`, and returns the image arguments of `model.model` for a batch
            of these prompts.
        """
        distinct = {p.image_sha256: p.image for p in prompts}
        position = {digest: i for i, digest in enumerate(distinct)}
        images = [{name: t.to(model.device) for name, t in of.items() if hasattr(t, "to")} for of in distinct.values()]
        shown = self.backbone.encode_images(model, images)
        return lambda rows: shown([position[prompts[i].image_sha256] for i in rows])


def prompt_sha256(token_ids: Sequence[int]) -> str:
    """Return the digest of a prompt's ids as little-endian int32; the replay compares it with the generation's."""
    return hashlib.sha256(np.asarray(token_ids, "<i4").tobytes()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A checkpoint in memory, on the GPU if there is one.

    Attributes:
        model: The model in evaluation mode.
        encoder: Encodes its prompts.
        stop: Ids that end a turn.
        forbidden: Ids that a completion may never contain.
    """

    model: Any
    encoder: Encoder
    stop: frozenset[int]
    forbidden: tuple[int, ...]


def open_checkpoint(checkpoint: Path, backbone: ModuleType, settings: Settings) -> Opened:
    """Load `checkpoint` for generation or replay.

    Args:
        checkpoint: The checkpoint's folder.
        backbone: The module of its backbone.
        settings: The `settings` of the backbone's config entry.
    """
    import torch

    processor = backbone.load_processor(checkpoint, settings)
    model = backbone.load_model(checkpoint, settings).to("cuda" if torch.cuda.is_available() else "cpu")
    stop = model.generation_config.eos_token_id
    return Opened(
        model=model,
        encoder=Encoder(backbone, processor, settings["max_prompt_tokens"]),
        stop=frozenset(stop if isinstance(stop, list) else [stop]),
        forbidden=tuple(backbone.forbidden_token_ids(processor)),
    )
