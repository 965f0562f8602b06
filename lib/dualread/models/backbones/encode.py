"""Turns a question and an image into token ids; pretraining, training, generation and replay all use this module.

A prompt ends with a user turn with its images first, of most prompts the only turn, and is rendered with the
checkpoint's own chat template (docs/choices.md, "Chat template"). The checkpoint's own processor makes all inputs.
"""

import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.errors import ArtifactError, ConfigError, DataError, in_a_line
from dualread.models.backbones import parts
from dualread.models.backbones.processor import forbidden_token_ids, messages, takes_limits, turn
from dualread.models.backbones.trial import LimitError, within_limits
from dualread.schema.base import Wire
from dualread.schema.recorded import USUAL, Facts

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

    from dualread.models.images.base import Shown

_IMAGES_IN_MEMORY = 512
_TEXTS_IN_MEMORY = 1024
_SHOWN = 80  # characters of a question that an error shows
_TYPES = "token_type_ids"  # how the names of such inputs end
_Turns = tuple[tuple[str, str], ...]  # roles and texts


@dataclass(frozen=True, kw_only=True)
class EncodedPrompt:
    """One encoded prompt.

    Attributes:
        token_ids: The ids, with image placeholders expanded.
        n_turn: How many of them are the user's turn; those that follow it begin a completion.
        types: The token types of the user's turn, by the name of the model's input; empty for most models.
        image_sha256: Digests of the images' contents, with spaces between them; prompts with equal digests share their
            images. Empty without any.
        image: The processor's image tensors, such as pixel_values; none without an image.
        row: Name of the prompt in error messages.
    """

    token_ids: tuple[int, ...]
    n_turn: int
    types: Mapping[str, tuple[int, ...]]
    image_sha256: str = ""
    image: Mapping[str, "Tensor"]
    row: str = ""

    def followed_by(self, token_ids: Sequence[int]) -> "EncodedPrompt":
        """Return the prompt followed by the first ids of a completion."""
        return replace(self, token_ids=(*self.token_ids, *token_ids))


class Encoder:
    """Encodes prompts for one checkpoint; keeps the pixels of recent images in memory.

    Images are identified by their content. Names are not unique: two data sets, or two splits of one, may both have a
    `0.png`. Of the settings, it reads max_prompt_tokens, min_pixels, max_pixels, chat_template and forbidden_tokens.
    The ids `stop` end a turn, and no completion may contain those that are `forbidden`.
    """

    def __init__(self, processor: Any, config: Any, settings: Wire, facts: Facts = USUAL, ends: Any = ()):
        """`ends` is what a generation config has as eos_token_id."""
        self.facts, self.processor, self.tokenizer = facts, processor, processor.tokenizer
        self.stop = frozenset(ends if isinstance(ends, list | tuple) else [ends])
        self.forbidden = forbidden_token_ids(processor, config, self.stop, settings.get("forbidden_tokens", ()))
        self.image_token_id: int = config.image_token_id
        self._settings = settings
        self._images: OrderedDict[str, _Shown] = OrderedDict()
        control = (str(processor.image_token), self.tokenizer.convert_ids_to_tokens(self.image_token_id))
        self._control: tuple[str, ...] = tuple(dict.fromkeys(control))
        self._template: Mapping[str, Any] = settings.get("chat_template", {})
        self._typed: dict[str, Mapping[str, Set[int]]] = {}  # of images that are processed alone, by placeholder
        self._ids = lru_cache(maxsize=_TEXTS_IN_MEMORY)(self._composed_ids)  # a text is shown with many images
        if unknown := [name for name in self._template if name not in processor.chat_template]:
            raise ConfigError(
                f"chat_template: {unknown[0]!r} does not occur in the checkpoint's chat template. Expected arguments"
                " that it reads. Correct the name or leave it out."
            )

    def prompt(self, text: str, *, images: "Sequence[Shown]", row: str, before: _Turns = ()) -> EncodedPrompt:
        """Encode the turns `before` and a user turn: the images in their order, then `text`; `row` is for errors.

        A file is read at every call, because its path does not identify its content. It is decoded only if its content
        is not in memory.

        Raises:
            DataError: The prompt is longer than `max_prompt_tokens`, its text contains image control tokens, or an
                image cannot be read, is refused, or has another number of pixels than the settings say.
            ConfigError: The chat template refuses a turn, or leaves out its text.
        """
        from dualread.data.images import content_sha256

        turns = (*before, ("user", text))
        if tokens := [token for token in self._control for _, words in turns if token in words]:
            raise DataError(f"{row}: the text contains image tokens ({tokens[0]}). Remove them from the question.")
        pictures = [image() if callable(image) else image for image in images]
        digest = " ".join(map(content_sha256, pictures))
        if not pictures:
            made = replace(self._processed(turns, []), image={})
        elif len(pictures) == 1:
            made = self._with_image(turns, pictures[0], digest, row)
        else:  # what a processor makes of several is not always what it makes of each
            with _refused(row, "images"):
                made = self._processed(turns, pictures)
            self._check_pixels(made.image["pixel_values"], len(pictures), row)
        return self._named(made, digest, row)

    def inputs(self, text: str, images: "Sequence[Shown]", before: _Turns = ()) -> Mapping[str, "Tensor"]:
        """Return the model's inputs for the turns `before` and a user turn, as the processor alone makes them."""
        from dualread.data.images import open_image

        self._rendered((*before, ("user", text)))  # the same text by itself first, within limits
        made = (image() if callable(image) else image for image in images)
        pictures = [open_image(picture) if isinstance(picture, Path) else picture for picture in made]
        return self._inputs([*messages(before), *turn(text, pictures)])

    def conversation(self, turns: Sequence[Mapping[str, Any]], *, row: str) -> EncodedPrompt:
        """Encode a whole conversation: other turns than the user's alone, no image or several, in any order.

        Turns are as chat templates take them: {"role", "content"}, whose content is a list of {"type": "text", "text"}
        and {"type": "image", "image"}. What the chat template or the processor refuses is a DataError.
        """
        from dualread.data.images import content_sha256

        parts_of = [part for turn in turns for part in turn["content"]]
        images = [part["image"] for part in parts_of if part["type"] == "image"]
        if tokens := [token for token in self._control for part in parts_of if token in part.get("text", "")]:
            raise DataError(f"{row}: the text contains image tokens ({tokens[0]}). Remove them.")
        try:
            with within_limits():
                self.processor.apply_chat_template(turns, add_generation_prompt=True, **self._template)
            made = _of_inputs(self._inputs(turns))
        except Exception as error:  # whatever a chat template raises for turns that its model does not know
            raise DataError(f"{row}: the model cannot be given this conversation ({in_a_line(error)}).") from error
        return self._named(made, " ".join(map(content_sha256, images)), row)

    def _inputs(self, turns: Sequence[Mapping[str, Any]]) -> Mapping[str, "Tensor"]:
        made = self.processor.apply_chat_template(
            turns, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt", **self._template
        )
        return {name: value for name, value in made.items() if hasattr(value, "shape") and name != "labels"}

    def _with_image(self, turns: _Turns, picture: "Image | Path", digest: str, row: str) -> EncodedPrompt:
        # The image that was shown last comes last, and the first one is forgotten.
        known = self._images[digest] = self._images.pop(digest, None) or self._shown(turns, picture, row)
        if len(self._images) > _IMAGES_IN_MEMORY:
            self._images.popitem(last=False)
        if known.placeholder is None:
            return replace(self._processed(turns, [picture]), image=known.inputs)
        return self._composed(turns, known, known.placeholder)

    def _processed(self, turns: _Turns, images: "Sequence[Shown]") -> EncodedPrompt:
        """Return a prompt as the processor makes it."""
        return _of_inputs(self.inputs(turns[-1][1], images, turns[:-1]))

    def _composed(self, turns: _Turns, shown: "_Shown", placeholder: str) -> EncodedPrompt:
        """Return a prompt with the placeholder of an image that is in memory."""
        ids = self._ids(turns, placeholder)
        types = {name: tuple(int(token in ones) for token in ids) for name, ones in shown.typed.items()}
        return EncodedPrompt(token_ids=ids, n_turn=len(ids), types=types, image=shown.inputs)

    def _composed_ids(self, turns: _Turns, placeholder: str) -> tuple[int, ...]:
        rendered, bos = self._rendered(turns), self.tokenizer.bos_token
        prompt = rendered.replace(self.processor.image_token, placeholder, 1)
        has_bos = bos is not None and rendered.startswith(bos)
        return tuple(self.tokenizer(prompt, add_special_tokens=not has_bos)["input_ids"])

    def _rendered(self, turns: _Turns) -> str:
        """Return what the chat template makes of a prompt, within limits that it kept for other questions."""
        *before, (_, text) = turns
        roles = ", ".join(role for role, _ in before)
        advice = f"Choose a prompt without such parts ({roles}), or another model."
        try:
            asked = [*messages(before), *turn(text)]
            with within_limits():
                rendered = self.processor.apply_chat_template(asked, add_generation_prompt=True, **self._template)
        except LimitError as error:
            raise ArtifactError(
                f"the chat template of this checkpoint {error} for the question {text[:_SHOWN]!r}. Correct the"
                " template, or choose another model."
            ) from error
        except Exception as error:  # whatever a chat template raises for roles that its model does not know
            if not before:
                raise
            raise ConfigError(
                f"the checkpoint's chat template refuses a turn ({in_a_line(error)}). {advice}"
            ) from error
        if absent := [f"[{role}] {words[:_SHOWN]!r}" for role, words in before if words.strip() not in rendered]:
            raise ConfigError(f"the checkpoint's chat template leaves out or changes {absent[0]}. {advice}")
        return rendered

    def _shown(self, turns: _Turns, image: "Image | Path", row: str) -> "_Shown":
        """Return an image as it is kept in memory; `turns` and `row` are of the first prompt about it."""
        with _refused(row, "image"):
            shown = self._alone(image, self._typed) if self._typed else None
            shown = shown or self._with_text(turns, image)
        self._check_pixels(shown.inputs["pixel_values"], 1, row)
        return shown

    def _with_text(self, turns: _Turns, image: "Image | Path") -> "_Shown":
        """Let the processor make a prompt, and see whether its text and its image, made apart, are the same."""
        made = self._processed(turns, [image])
        ids, inputs = made.token_ids, made.image
        typed = {n: {token for token, kind in zip(ids, kinds, strict=True) if kind} for n, kinds in made.types.items()}
        [placeholder] = getattr(self.processor, "placeholders", None) or [None]
        shown = _Shown(inputs=inputs, placeholder=placeholder, typed=typed)
        if placeholder is None:
            return shown
        composed = self._composed(turns, shown, placeholder)
        if (composed.token_ids, composed.types) != (ids, made.types):
            return replace(shown, placeholder=None)
        alone = self._alone(image, {placeholder: typed})
        if alone is not None and alone.inputs.keys() == inputs.keys():
            pairs = ((tensor, inputs[name]) for name, tensor in alone.inputs.items())
            if all(tensor.dtype == other.dtype and tensor.equal(other) for tensor, other in pairs):
                self._typed[placeholder] = typed
        return shown

    def _alone(self, image: "Image | Path", known: Mapping[str, Mapping[str, Set[int]]]) -> "_Shown | None":
        """Return an image that is processed without a text; None if its placeholder is not `known`, with its types."""
        from dualread.data.images import open_image

        made, [placeholder] = self.processor.image_alone(open_image(image) if isinstance(image, Path) else image)
        if (typed := known.get(placeholder)) is None:
            return None
        unused = self.processor.unused_input_names
        inputs = {name: value for name, value in made.items() if hasattr(value, "shape") and name not in unused}
        return _Shown(inputs=inputs, placeholder=placeholder, typed=typed)

    def _named(self, prompt: EncodedPrompt, digest: str, row: str) -> EncodedPrompt:
        """Return a prompt with the digests of its images and its name, unless it is too long."""
        n, limit = len(prompt.token_ids), self._settings["max_prompt_tokens"]
        if n > limit:
            raise DataError(
                f"{row}: the prompt has {n} tokens with its image, more than max_prompt_tokens = {limit}. Lower the"
                " backbone's max_pixels or raise the limit; nothing is truncated."
            )
        return replace(prompt, image_sha256=digest, row=row)

    def _check_pixels(self, pixels: "Tensor", n_images: int, row: str) -> None:
        """Refuse images of other sizes than the settings say, where the image processor takes no limits."""
        low, high = self._settings.get("min_pixels", 0), self._settings.get("max_pixels", float("inf"))
        if takes_limits(self.processor.image_processor) or pixels.ndim < 4:
            return
        if not low <= (actual := pixels_of(pixels) // n_images) <= high:
            raise DataError(
                f"{row}: the image processor makes {actual} pixels of an image, and takes no limits. Expected {low} to"
                f" {high}, as min_pixels and max_pixels say. Correct them or leave them out."
            )

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of `token_ids` without special tokens."""
        return self.tokenizer.decode(token_ids, skip_special_tokens=True)

    def batch(
        self,
        prompts: Sequence[EncodedPrompt],
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
        types = {name: torch.zeros_like(ids) for name in prompts[0].types}
        for i, (prompt, tail) in enumerate(zip(prompts, tails, strict=True)):
            start, end = width - len(prompt.token_ids), width + len(tail)
            ids[i, start:end] = torch.tensor([*prompt.token_ids, *tail])
            mask[i, start:end] = 1
            for name, of_row in types.items():
                turn = prompt.types[name][: end - start]
                # A completion has no image, even if an image token was sampled.
                of_row[i, start:end] = torch.tensor([*turn, *[self.facts.completion_type] * (end - start - len(turn))])
        return {"input_ids": ids, "attention_mask": mask, **types}

    def shared_images(self, model: Any, prompts: Sequence[EncodedPrompt]) -> dict[str, Any]:
        """Return the image arguments of `model.model` for a batch; a distinct image is encoded once if it may be."""
        if self.facts.images_once:
            return parts.encode_images(model, prompts)(range(len(prompts)))
        [prompt] = prompts  # others would have to be padded in ways that differ between models
        return parts.on_device(model, prompt.image)


def _of_inputs(inputs: Mapping[str, "Tensor"]) -> EncodedPrompt:
    """Return the prompt of which a processor has made these inputs of a model."""
    image = {name: value for name, value in inputs.items() if name != "attention_mask"}
    [ids] = image.pop("input_ids").tolist()
    types = {name: tuple(image.pop(name)[0].tolist()) for name in list(image) if name.endswith(_TYPES)}
    return EncodedPrompt(token_ids=tuple(ids), n_turn=len(ids), types=types, image=image)


@contextlib.contextmanager
def _refused(row: str, what: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # such as that of Qwen's processors for an image 200 times as wide as high
        raise DataError(f"{row}: the processor refuses its {what} ({in_a_line(error)}). Give another.") from error


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """An image in memory: what the model gets of it, and the ids whose token type is 1, by the name of the input.

    `placeholder` stands for it in the text that the tokenizer reads; None where a processor does more to a text than to
    put this in, so that it has to make each prompt as a whole.
    """

    inputs: Mapping[str, "Tensor"]
    placeholder: str | None
    typed: Mapping[str, Set[int]]


def pixels_of(pixels: "Tensor") -> int:
    """Return how many pixels the image processor made of an image, in all its tiles [..., channels, H, W]."""
    return pixels.numel() // pixels.shape[-3]


def prompt_sha256(token_ids: Sequence[int]) -> str:
    """Return the digest of a prompt's ids as little-endian int32; the replay compares it with the generation's."""
    return hashlib.sha256(np.asarray(token_ids, "<i4").tobytes()).hexdigest()
