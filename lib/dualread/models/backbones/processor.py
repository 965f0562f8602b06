"""Loads the processor of any checkpoint: transformers' own class, with its image processor and its tokenizer alone.

Many classes also want a processor of videos or sounds. Those of videos need torchvision, which cannot be imported
together with a CPU build of torch, and no prompt here has a video. What such a processor saves would name other parts
than the checkpoint's own files, so these files are copied as they came (`checkpoint.copy_processor`).
"""

import importlib
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.errors import ArtifactError, ConfigError, in_a_line
from dualread.models.backbones._checkpoint_files import AGAIN, read_config, read_json, readable
from dualread.specs.parts import Settings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, ProcessorMixin

# Where there is no chat template, as for PaliGemma, the processor itself places the image before the text.
_NO_TURNS = "{%%- for message in messages -%%}{{- '%s' + message['content'][-1]['text'] -}}{%%- endfor -%%}"
_NO_TEMPLATE = (
    "no chat template. Expected chat_template.jinja, chat_template.json, or `chat_template` in tokenizer_config.json."
)
_A_DAY = "{%- macro strftime_now(form) -%}another day{%- endmacro -%}"  # in place of the date in a chat template
_IMAGES = ("preprocessor_config.json", "processor_config.json")  # either has the settings of the image processor
_PARTS = ("image_processor", "tokenizer")
_OTHER_MEDIA = ("video", "feature_extractor", "audio")  # processors of what no prompt here contains


def load_processor(checkpoint: Path, settings: Settings) -> "ProcessorMixin":
    """Load the processor of `checkpoint`; its tokenizer pads on the left.

    The tokenizer may have fewer tokens than the model has embeddings, whose number is often padded to a round one.
    Where the image processor takes limits, image sizes are those of the settings min_pixels and max_pixels.

    Raises:
        ArtifactError: The tokenizer or the image processor cannot be read, the processor needs more than these two,
            the chat template is missing or leaves out images, a token has no embedding, or the processor's prompts
            lack the image token of config.json.
    """
    config, tokenizer = read_config(checkpoint), _load_tokenizer(checkpoint)
    largest, n_embeddings = max(tokenizer.get_vocab().values()), config.get_text_config().vocab_size
    if largest >= n_embeddings:
        raise _unfit(
            checkpoint,
            f"the tokenizer has ids up to {largest}, expected less than the {n_embeddings} embeddings (vocab_size).",
        )
    processor = _assemble(checkpoint, config, tokenizer, _load_images(checkpoint, settings))
    if problem := _problem(processor, config, settings.get("chat_template", {})):
        raise _unfit(checkpoint, problem)
    return processor


def without_other_media(processor_class: Any) -> Any:
    """Return a subclass of the same name whose only parts are the image processor and the tokenizer.

    Its objects keep in `placeholders` what stands for the images in the text of their last call.

    Raises:
        ArtifactError: The class has another part that a prompt needs.
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
        def __init__(self, *given: Any, **named: Any):
            named |= zip(parts, given, strict=False)
            super().__init__(**{name: part for name, part in named.items() if name not in absent})

    def process_images(self: Any, images: Any, **named: Any) -> Any:
        made, self.placeholders = processor_class._process_images(self, images, **named)
        return made, self.placeholders

    members = {"get_attributes": classmethod(lambda cls: kept), "_process_images": process_images, **absent}
    return type(processor_class.__name__, (processor_class, OfKept), members)


def forbidden_token_ids(processor: Any, config: Any, stop: Set[int], named: Sequence[str]) -> tuple[int, ...]:
    """Return the ids that a completion may never contain, ascending.

    These are the control tokens of images and other media, which weak actors generate and the next forward pass could
    not read, and `named`, the tokens that the setting `forbidden_tokens` names; but none of `stop`, which end a turn.

    Raises:
        ConfigError: A token is not in the vocabulary.
    """
    from transformers import PreTrainedTokenizerBase

    tokenizer = processor.tokenizer
    vocabulary = tokenizer.get_vocab()
    if unknown := [token for token in named if token not in vocabulary]:
        raise ConfigError(
            f"forbidden_tokens: {unknown[0]!r} is not in the vocabulary of this checkpoint. Expected tokens as"
            " tokenizer.json spells them. Correct the setting or leave it out."
        )
    of_text = {*PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES, "decoder_start_token"}
    own = {f"{name}_id": vocabulary.get(token) for name, token in tokenizer.special_tokens_map.items()}
    found = {
        token
        for name, value in (*config.to_dict().items(), *vars(processor).items(), *own.items())
        if name.endswith(("_token_id", "_token_index", "_token_ids")) and name.rpartition("_")[0] not in of_text
        for token in (value if isinstance(value, (list, tuple)) else [value])
        if isinstance(token, int)
    }
    return tuple(sorted((found - stop) | {vocabulary[token] for token in named}))


def _unfit(checkpoint: Path, problem: str) -> ArtifactError:
    return ArtifactError(f"{checkpoint}: {problem} Save the model's own processor beside it, or choose another model.")


def _load_tokenizer(checkpoint: Path) -> "PreTrainedTokenizerBase":
    from transformers import AutoTokenizer

    if not (checkpoint / "tokenizer_config.json").is_file():  # without it, transformers invents special tokens
        raise ArtifactError(f"{checkpoint}: no file tokenizer_config.json. Expected the model's own tokenizer. {AGAIN}")
    with readable(f"{checkpoint}: the tokenizer cannot be read", "one of transformers"):
        tokenizer = AutoTokenizer.from_pretrained(checkpoint, padding_side="left")
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token  # trl does the same
        return tokenizer


def _load_images(checkpoint: Path, settings: Settings) -> Any:
    from transformers import AutoImageProcessor

    if not any((checkpoint / name).is_file() for name in _IMAGES):
        raise ArtifactError(f"{checkpoint}: no file {' or '.join(_IMAGES)}. Expected the image processor's. {AGAIN}")
    with readable(f"{checkpoint}: the image processor cannot be read", "one of transformers that needs no torchvision"):
        images = AutoImageProcessor.from_pretrained(checkpoint, backend="pil")
        if takes_limits(images) and "min_pixels" in settings:
            limits = {name: settings[name] for name in ("min_pixels", "max_pixels")}
            size = {"shortest_edge": limits["min_pixels"], "longest_edge": limits["max_pixels"]}
            # Files of Qwen2-VL and Qwen2.5-VL have the limits by these older names, which win over `size`.
            images = type(images).from_pretrained(checkpoint, size=size, **limits)
        return images


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
    own = {"image_processor": images, "tokenizer": tokenizer}
    given = {name: value for name, value in known.items() if name not in parts}
    with readable(f"{checkpoint}: {kind.__name__} cannot be made of its files", "the files of this processor"):
        processor = kind.from_args_and_dict([own.get(name) or getattr(kind, name) for name in parts], given)
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
                found = getattr(importlib.import_module(f"transformers.{module}"), candidate)
            if issubclass(found, transformers.ProcessorMixin):
                return found
    raise ArtifactError(
        f"{checkpoint}: transformers has no processor for the model_type {config.model_type!r}. Expected"
        f" `processor_class` in processor_config.json. {AGAIN}"
    )


def _problem(processor: Any, config: Any, arguments: Settings) -> str | None:
    """Return why the processor's prompts cannot show an image to the model; None if they can."""
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
    turn = [{"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": "?"}]}]
    asked = {"tokenize": True, "return_dict": True, "return_tensors": "pt", **arguments}
    try:
        made = [processor.apply_chat_template(turn, day + processor.chat_template, **asked) for day in ("", _A_DAY)]
        [ids], [other] = (of_day["input_ids"].tolist() for of_day in made)
    except Exception as error:  # whatever the template or the processor does
        return f"the chat template cannot show an image and a text ({in_a_line(error)})."
    if ids != other:
        return (
            "the chat template writes the date, so that prompts differ from day to day. Expected one that is given the"
            " date as an argument (`chat_template` in the settings)."
        )
    if alone not in (None, ids):
        return _NO_TEMPLATE
    word, expected = getattr(processor, "image_token", "an image"), getattr(config, "image_token_id", None)
    if (found := processor.tokenizer.get_vocab().get(word)) != expected and expected not in ids:
        return f"the tokenizer's id of {word} is {found}, expected {expected} as in config.json."
    return None if expected in ids else "the chat template leaves out images. Expected that of the model's processor."
