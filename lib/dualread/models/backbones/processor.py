"""Loads the processor of any checkpoint: transformers' own class, with its image processor and its tokenizer alone.

Many classes also want a processor of videos or sounds. Those of videos need torchvision, which cannot be imported
together with a CPU build of torch, and no prompt here has a video. What such a processor saves would name other parts
than the checkpoint's own files, so these files are copied as they came (`checkpoint.copy_processor`).
"""

import contextlib
import importlib
import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.errors import ArtifactError, ConfigError, in_a_line
from dualread.models.backbones import trial
from dualread.models.backbones._checkpoint_files import AGAIN, read_config, read_json, readable
from dualread.models.backbones.tokenizer import load_tokenizer
from dualread.schema.base import Wire

if TYPE_CHECKING:
    from transformers import ProcessorMixin

# Where there is no chat template, as for PaliGemma, the processor itself places the image before the text.
_NO_TURNS = "{%%- for message in messages -%%}{{- '%s' + message['content'][-1]['text'] -}}{%%- endfor -%%}"
_NO_TEMPLATE = (
    "no chat template. Expected chat_template.jinja, chat_template.json, or `chat_template` in tokenizer_config.json."
)
_A_DAY = "{%%- macro %s(form) -%%}another day{%%- endmacro -%%}"  # in place of the date in a chat template
_NO_IMAGE = "the chat template cannot show an image and a text"
_RANDOM_TEMPLATE = "the chat template writes another prompt each time. Expected the same one for the same question."
_DATED_TEMPLATE = (
    "the chat template writes the date, so that prompts differ from day to day. Expected one that is given the date as"
    " an argument (`chat_template` in the settings)."
)
_IMAGES = ("preprocessor_config.json", "processor_config.json")  # either has the settings of the image processor
_SPELLED = "Expected tokens as tokenizer.json spells them. Correct the setting or leave it out."
_PARTS = ("image_processor", "tokenizer")
_MOST_WORDS, _TIMES = 4000, 4
_MOST_PIXELS, _LONGEST_EDGE, _EDGES = 2**24, 2**14, ("shortest_edge", "longest_edge")
_OTHER_MEDIA = ("video", "feature_extractor", "audio")  # processors of what no prompt here contains


def load_processor(checkpoint: Path, settings: Wire) -> "ProcessorMixin":
    """Load the processor of `checkpoint`; its tokenizer pads on the left.

    The tokenizer may have fewer tokens than the model has embeddings, whose number is often padded to a round one.
    Where the image processor takes limits, image sizes are those of the settings min_pixels and max_pixels. A processor
    that needs other parts, or whose prompts do not show an image and the whole text, is refused.
    """
    config, tokenizer = read_config(checkpoint), load_tokenizer(checkpoint)
    largest, n_embeddings = max(tokenizer.get_vocab().values()), config.get_text_config().vocab_size
    if largest >= n_embeddings:
        raise _unfit(
            checkpoint,
            f"the tokenizer has ids up to {largest}, expected less than the {n_embeddings} embeddings (vocab_size).",
        )
    _show(tokenizer, settings.get("shown_tokens") or ())
    processor = _assemble(checkpoint, config, tokenizer, load_images(checkpoint, settings))
    arguments = settings.get("chat_template", {})
    text = long_text(settings.get("max_prompt_tokens", _MOST_WORDS))
    if problem := _problem(processor, config, arguments, text):
        raise _unfit(checkpoint, problem)
    return processor


def _show(tokenizer: Any, tokens: Sequence[str]) -> None:
    """Let special tokens stay in decoded texts."""
    from tokenizers import Tokenizer

    if unknown := [token for token in tokens if token not in tokenizer.get_vocab()]:
        raise ConfigError(f"shown_tokens: {unknown[0]!r} is not in the vocabulary of this checkpoint. {_SPELLED}")
    if tokens:
        # What is added again under the same name stays special, so the whole is read again.
        entries = json.loads(tokenizer.backend_tokenizer.to_str())
        for added in entries["added_tokens"]:
            added["special"] = added["special"] and added["content"] not in tokens
        tokenizer._tokenizer = Tokenizer.from_str(json.dumps(entries))


def without_other_media(processor_class: Any) -> Any:
    """Return a subclass of the same name whose only parts are the image processor and the tokenizer.

    Its objects keep in `placeholders` what stands for the images in the text of their last call. `image_alone` returns
    what the image processor makes of another picture in the same way, and what stands for it.
    """
    from transformers import ProcessorMixin

    parts = processor_class.get_attributes()
    if needed := [name for name in parts if name not in _PARTS and not any(kind in name for kind in _OTHER_MEDIA)]:
        raise ArtifactError(
            f"{processor_class.__name__}: its prompts need {', '.join(needed)}. Expected a processor of images and text"
            " alone (image_processor, tokenizer). Choose another model."
        )
    kept = [name for name in parts if name in _PARTS]
    absent = {name: type(name, (), {"__getattr__": lambda *_: None})() for name in parts if name not in kept}

    class OfKept(ProcessorMixin):  # the class's own constructor passes all parts on to this one
        def __init__(self, *values: Any, **named: Any):
            named |= zip(parts, values, strict=False)
            super().__init__(**{name: part for name, part in named.items() if name not in absent})

    def process_images(self: Any, images: Any, **named: Any) -> Any:
        made, self.placeholders = processor_class._process_images(self, images, **named)
        self.last_call = isinstance(images[0], list), named
        return made, self.placeholders

    def image_alone(self: Any, picture: Any) -> tuple[Mapping[str, Any], list[str]]:
        (nested, named), images = self.last_call, self.image_processor.fetch_images([picture])
        return processor_class._process_images(self, [images] if nested else images, **named)

    def merge_kwargs(self: Any, kind: Any = None, tokenizer_init_kwargs: Any = None, **named: Any) -> Any:
        # Otherwise any entry of tokenizer_config.json is an argument of each call: a length, or a size of images.
        return processor_class._merge_kwargs(self, kind, None, **named)

    members = {"get_attributes": classmethod(lambda cls: kept), "_merge_kwargs": merge_kwargs, **absent}
    members |= {"_process_images": process_images, "image_alone": image_alone}
    return type(processor_class.__name__, (processor_class, OfKept), members)


def forbidden_token_ids(processor: Any, config: Any, stop: Set[int], named: Sequence[str]) -> tuple[int, ...]:
    """Return the ids that a completion may never contain, ascending.

    These are the control tokens of images and other media, which weak actors generate and the next forward pass could
    not read, and `named`, the tokens that the setting `forbidden_tokens` names; but none of `stop`, which end a turn.
    """
    from transformers import PreTrainedTokenizerBase

    tokenizer = processor.tokenizer
    vocabulary = tokenizer.get_vocab()
    if unknown := [token for token in named if token not in vocabulary]:
        raise ConfigError(f"forbidden_tokens: {unknown[0]!r} is not in the vocabulary of this checkpoint. {_SPELLED}")
    of_text = {*PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES, "decoder_start_token"}
    special_ids = {f"{name}_id": vocabulary.get(token) for name, token in tokenizer.special_tokens_map.items()}
    token_ids = {
        token
        for name, value in (*config.to_dict().items(), *vars(processor).items(), *special_ids.items())
        if name.endswith(("_token_id", "_token_index", "_token_ids")) and name.rpartition("_")[0] not in of_text
        for token in (value if isinstance(value, (list, tuple)) else [value])
        if isinstance(token, int)
    }
    return tuple(sorted((token_ids - stop) | {vocabulary[token] for token in named}))


def _unfit(checkpoint: Path, problem: str) -> ArtifactError:
    return ArtifactError(f"{checkpoint}: {problem} Save the model's own processor beside it, or choose another model.")


def load_images(checkpoint: Path, settings: Wire) -> Any:
    """Load the image processor of `checkpoint`, with the limits of the settings where it takes any."""
    from transformers import AutoImageProcessor

    if not any((checkpoint / name).is_file() for name in _IMAGES):
        raise ArtifactError(f"{checkpoint}: no file {' or '.join(_IMAGES)}. Expected the image processor's. {AGAIN}")
    with readable(f"{checkpoint}: the image processor cannot be read", "one of transformers that needs no torchvision"):
        images = AutoImageProcessor.from_pretrained(checkpoint, backend="pil", trust_remote_code=False)
        if takes_limits(images) and "min_pixels" in settings:
            low, high = settings["min_pixels"], settings["max_pixels"]
            # The file's own min_pixels and max_pixels, as Qwen2.5-VL has them, would win over `size`.
            limits = {"size": {"shortest_edge": low, "longest_edge": high}, "min_pixels": low, "max_pixels": high}
            images = type(images).from_pretrained(checkpoint, **limits, trust_remote_code=False)
    _check_sizes(checkpoint, images.to_dict())
    if takes_limits(images) and "min_pixels" in settings and not images.do_resize:
        raise _unfit(
            checkpoint,
            "the image processor does not resize images (do_resize is false), so that min_pixels and max_pixels would"
            " mean nothing. Expected true.",
        )
    return images


def _check_sizes(checkpoint: Path, entries: Mapping[str, Any]) -> None:
    """Refuse an image processor that would make more of a small image than memory holds."""
    pixels = ("min_pixels", "max_pixels")
    if all(entries.get(edge) is not None for edge in _EDGES):  # numbers of pixels in most of these processors
        pixels = (*pixels, *_EDGES)
    for name, value in entries.items():
        most = _MOST_PIXELS if name in pixels else _LONGEST_EDGE
        if name in pixels and name.startswith(("max", "longest")):  # larger images are made smaller
            continue
        if isinstance(value, Mapping):
            _check_sizes(checkpoint, value)
        elif isinstance(value, int | float) and abs(value) > most:
            raise _unfit(checkpoint, f"{name} of the image processor is {value!r:.20}, expected at most {most}.")


def takes_limits(images: Any) -> bool:
    """Return whether the image processor resizes images to a number of pixels between two limits."""
    return "min_pixels" in getattr(getattr(images, "valid_kwargs", None), "__annotations__", ())


def _assemble(checkpoint: Path, config: Any, tokenizer: Any, images: Any) -> "ProcessorMixin":
    from transformers import ProcessorMixin

    one_template = "one template in chat_template.jinja or chat_template.json"
    with readable(f"{checkpoint}: the chat template cannot be read", one_template):
        known = dict(ProcessorMixin.get_processor_dict(checkpoint)[0])
        template = known.pop("chat_template", None)
        # As in transformers, the processor's template wins over the tokenizer's where both exist.
        template = (template["default"] if isinstance(template, dict) else template) or tokenizer.chat_template
    complete = _class(checkpoint, config, known.pop("processor_class", None))
    parts, kind = complete.get_attributes(), without_other_media(complete)
    made = {"image_processor": images, "tokenizer": tokenizer}
    arguments = {name: value for name, value in known.items() if name not in parts}
    with readable(f"{checkpoint}: {kind.__name__} cannot be made of its files", "the files of this processor"):
        processor = kind.from_args_and_dict([made.get(name) or getattr(kind, name) for name in parts], arguments)
    processor.chat_template = tokenizer.chat_template = template
    return processor


def _class(checkpoint: Path, config: Any, name: str | None) -> Any:
    """Return the class that the files name, or that transformers has for the model_type."""
    import transformers
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES  # pyright: ignore

    modules: Any = transformers._class_to_module  # pyright: ignore[reportAttributeAccessIssue]
    files = (checkpoint / file for file in ("preprocessor_config.json", "tokenizer_config.json"))
    named = (read_json(file).get("processor_class") for file in files if file.is_file())
    for candidate in (name, *named, PROCESSOR_MAPPING_NAMES.get(config.model_type)):
        # The module's own class: the one in `transformers` may insist on packages for videos.
        if candidate and (module := modules.get(candidate)):
            with readable(f"{checkpoint}: {candidate} of transformers cannot be used", "a processor that can"):
                processor_class = getattr(importlib.import_module(f"transformers.{module}"), candidate)
            if issubclass(processor_class, transformers.ProcessorMixin):
                return processor_class
    raise ArtifactError(
        f"{checkpoint}: transformers has no processor for the model_type {config.model_type!r}. Expected"
        f" `processor_class` in processor_config.json. {AGAIN}"
    )


def _problem(processor: Any, config: Any, arguments: Wire, text: str) -> str | None:
    """Return why the processor's prompts cannot show an image and a text to the model; None if they can."""
    from PIL import Image

    picture, alone = Image.new("RGB", (64, 64)), None
    if processor.tokenizer.pad_token is None:
        return "the tokenizer has neither pad_token nor eos_token. Expected at least one."
    if processor.chat_template is None:
        try:
            [alone] = processor(text=["?"], images=[picture], return_tensors="pt")["input_ids"].tolist()
            processor.chat_template = _NO_TURNS % processor.image_token
        except Exception:  # most processors cannot place an image by themselves, and say so in their own ways
            return _NO_TEMPLATE
    if why := _unsteady(processor, arguments, text):
        return why
    asked = {"tokenize": True, "return_dict": True, "return_tensors": "pt", **arguments}
    try:
        [ids] = processor.apply_chat_template(turn("?", [picture]), **asked)["input_ids"].tolist()
    except Exception as error:  # whatever the processor does
        with contextlib.suppress(Exception), trial.within_limits():
            if _written(processor, arguments, turn("?")) == _written(processor, arguments, turn("?", [])):
                return f"{_NO_IMAGE} ({in_a_line(error)})."
        kinds = [type(part).__name__ for part in (processor, processor.image_processor)]
        return (
            f"{kinds[0]} cannot make a prompt with what {kinds[1]} makes of an image ({in_a_line(error)}). Expected"
            " preprocessor_config.json and processor_config.json of this model."
        )
    if alone not in (None, ids):
        return _NO_TEMPLATE
    word, expected = getattr(processor, "image_token", "an image"), getattr(config, "image_token_id", None)
    if (token_id := processor.tokenizer.get_vocab().get(word)) != expected and expected not in ids:
        return f"the tokenizer's id of {word} is {token_id}, expected {expected} as in config.json."
    if expected not in ids:
        return "the chat template leaves out images. Expected that of the model's processor."
    return _changed(processor, arguments, text)


def _unsteady(processor: Any, arguments: Wire, text: str) -> str | None:
    """Return why the chat template fails, or does not always write the same prompt; None if it does."""

    def renderings() -> list[str]:
        # A macro in front changes white space, so one stands there, too, where the date is that of today.
        days = [_A_DAY % name + processor.chat_template for name in ("strftime_now", *["unused"] * _TIMES)]
        return [_written(processor, arguments, turn("?"), day) for day in days]

    # It is first tried with no text and with the long one, in a process that may be killed.
    if why := trial.trouble(lambda: [renderings(), _written(processor, arguments, turn(text))]):
        return f"its chat template {why}. Expected one that writes a prompt in milliseconds."
    try:
        other_day, first, *again = renderings()
    except Exception as error:  # whatever the template does
        return f"{_NO_IMAGE} ({in_a_line(error)})."
    if any(other != first for other in again):
        return _RANDOM_TEMPLATE
    return None if first == other_day else _DATED_TEMPLATE


def _changed(processor: Any, arguments: Wire, text: str) -> str | None:
    """Return what template or tokenizer do to the text of a question besides encoding it; None if nothing."""
    tokenizer = processor.tokenizer
    rendered, *others = (_written(processor, arguments, turn(text)) for _ in range(_TIMES))
    if any(other != rendered for other in others):
        return _RANDOM_TEMPLATE
    if text not in rendered:
        return "the chat template changes or cuts the text of a long question. Expected it as it is."
    alone = {"add_special_tokens": False, "verbose": False}
    bare, *again = (tokenizer(rendered, **alone)["input_ids"] for _ in range(_TIMES))
    if any(ids != bare for ids in again):
        return "the tokenizer encodes a text in another way each time. Expected the same ids for the same text."
    if (last := tokenizer(rendered, verbose=False)["input_ids"][-1]) != bare[-1]:
        return (
            f"the tokenizer adds {tokenizer.convert_ids_to_tokens(last)} to the end of a prompt (add_eos_token, or the"
            " post_processor of tokenizer.json). Expected nothing there, because an answer follows."
        )
    return None


def _written(processor: Any, arguments: Wire, turns: Sequence[Mapping[str, Any]], template: str | None = None) -> str:
    return processor.apply_chat_template(turns, template, add_generation_prompt=True, **arguments)


def turn(text: str, images: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Return one user turn as chat templates take it: the images, or a place for one, then the text."""
    shown = [{}] if images is None else [{"image": image} for image in images]
    pictures = [{"type": "image", **image} for image in shown]
    return [{"role": "user", "content": [*pictures, {"type": "text", "text": text}]}]


def messages(turns: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return turns without an image, each a role and a text, as chat templates take them."""
    return [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in turns]


def long_text(n_words: int) -> str:
    """Return a text of different words on a few lines that is longer than the longest prompt."""
    return " ".join(f"word {i}\n" * (i % 50 == 9) or f"word {i}" for i in range(min(n_words, _MOST_WORDS)))
