"""The requests of the OpenAI API for chats: what is read of them, what is ignored, and what is refused.

What a request asks for is done. What changes no answer of this model is ignored, and a value that is null is as none at
all. Everything else is refused by name: to ignore it would give another answer than was asked for.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from dualread import limits
from dualread.data.images import Decoded, n_pixels
from dualread.errors import DataError
from dualread.schema.base import AnswerType

_HEAD = re.compile(r"data:[^,]{0,500}?;base64\s*,", re.ASCII | re.IGNORECASE)
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_Text = Annotated[str, Field(max_length=limits.REQUEST_CHARACTERS)]
_StopText = Annotated[str, Field(max_length=limits.STOP_CHARACTERS)]

# Parameters that change no answer of this model.
_IGNORED = {
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
}
# Values that ask for nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "min_p": (0,),
    "modalities": (["text"],),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "response_format": ({"type": "text"}, {}),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_k": (0, -1),
}
# What an assistant's message may hold besides its text, and what would have to be read if it is not empty.
_CALLS = ("tool_calls", "function_call", "audio")


@dataclass(frozen=True, kw_only=True)
class SentImage:
    """An image of a request, and how its file is decoded again: full-size pixels are not kept while a request waits."""

    decoded: Decoded
    read_again: Callable[[], Decoded]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One message of a conversation: texts and images in the order in which they were sent."""

    role: str
    parts: tuple[str | SentImage, ...]

    def message(self) -> dict[str, Any]:
        """Return it as a processor of transformers takes it."""
        content = [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "image": part.decoded.image}
            for part in self.parts
        ]
        return {"role": self.role, "content": content}


class _Sent(BaseModel):
    """What is null is as if it were not there, and what nobody knows is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, entries: Any) -> Any:
        if not isinstance(entries, dict):
            return entries
        return cls._prepared({name: value for name, value in entries.items() if value is not None})

    @classmethod
    def _prepared(cls, entries: dict[str, Any]) -> dict[str, Any]:
        return entries


class _Address(_Sent):
    url: str
    detail: str = "auto"  # of no effect: the size of images is that with which readers were fitted


class _Part(_Sent):
    type: Literal["text", "image_url"]
    text: _Text = ""
    image_url: _Address | None = None

    @classmethod
    def _prepared(cls, entries: dict[str, Any]) -> dict[str, Any]:
        entries.pop("cache_control", None)
        if isinstance(address := entries.get("image_url"), str):
            entries["image_url"] = {"url": address}
        kind = entries.get("type")
        if kind in ("text", "image_url") and kind not in entries:
            raise ValueError(f"a part of the type {kind} has no {kind}")
        return entries


class _Message(_Sent):
    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[list[_Part], Field(max_length=limits.MESSAGE_PARTS)] = []
    name: str = ""  # of no effect: chat templates do not show it

    @classmethod
    def _prepared(cls, entries: dict[str, Any]) -> dict[str, Any]:
        if entries.get("role") == "assistant":  # a reply that comes back with all that clients keep of it
            text = entries.get("content") or entries.get("refusal") or ""
            calls = {name: entries[name] for name in _CALLS if entries.get(name)}
            entries = {"role": "assistant", "content": text, **calls}
        elif "content" not in entries:
            raise ValueError("there is no content")
        if isinstance(entries["content"], str):
            entries["content"] = [{"type": "text", "text": entries["content"]}]
        return entries

    def texts(self) -> list[str]:
        """Return its texts."""
        return [part.text for part in self.content if part.type == "text"]

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing to the model, as an empty message of the system does."""
        return self.role in ("system", "developer") and not any(text.strip() for text in self.texts())


class _StreamOptions(_Sent):
    include_usage: bool = False
    include_obfuscation: bool = False  # of no effect


class _Extension(_Sent):
    """What a request may say that is not in OpenAI's API, under `dualread` (`extra_body` of its client).

    `id` is the question's own name, for `--record`. `answer_type` is `closed` if the choices of a question without
    `options` are yes and no, for answer sets. `own_prompt` says that the text is the whole prompt.
    """

    id: Annotated[str, Field(max_length=limits.ID_CHARACTERS)] | None = None
    options: Annotated[list[_Text], Field(max_length=limits.SENT_OPTIONS)] = []
    answer_type: AnswerType | None = None
    own_prompt: bool = False


class ChatRequest(_Sent):
    """The body of a request to /v1/chat/completions."""

    messages: Annotated[list[_Message], Field(min_length=1, max_length=limits.MESSAGES)]
    model: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1, le=limits.CHOICES)] = 1
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: Annotated[list[_StopText], Field(max_length=limits.STOP_TEXTS)] = []
    stream: bool = False
    stream_options: _StreamOptions = _StreamOptions()
    logprobs: bool = False
    top_logprobs: Annotated[int, Field(ge=0, le=limits.TOP_LOG_PROBS)] = 0
    dualread: _Extension = _Extension()
    # Settings that this model does not have: ignored, and a note says so.
    reasoning_effort: Any = None
    verbosity: Any = None

    @classmethod
    def _prepared(cls, entries: dict[str, Any]) -> dict[str, Any]:
        choices = (("tools", "tool_choice"), ("functions", "function_call"))
        ignored = _IGNORED | {name for name, choice in choices if entries.get(choice) == "none"}
        return {
            name: value
            for name, value in entries.items()
            if name not in ignored and value not in _NEUTRAL.get(name, ())
        }

    @field_validator("stop", mode="before")
    @classmethod
    def _as_list(cls, texts: Any) -> Any:
        texts = [texts] if isinstance(texts, str) else texts
        return [text for text in texts if text not in ("", None)] if isinstance(texts, list) else texts

    @model_validator(mode="after")
    def _consistent(self) -> "ChatRequest":
        if None not in (self.max_tokens, self.max_completion_tokens) and self.max_tokens != self.max_completion_tokens:
            raise ValueError(
                f"max_tokens {self.max_tokens} and max_completion_tokens {self.max_completion_tokens} differ; leave one"
                " out"
            )
        if (n := sum(len(text) for text in self.texts())) > limits.REQUEST_CHARACTERS:
            raise ValueError(f"the texts have {n} characters; at most {limits.REQUEST_CHARACTERS} are read")
        return self

    def texts(self) -> Iterator[str]:
        """Yield all texts for the model."""
        yield from (text for message in self.messages for text in message.texts())
        yield from self.dualread.options

    @property
    def log_probs(self) -> bool:
        """Whether log-probabilities of tokens are wanted."""
        return self.logprobs or self.top_logprobs > 0

    @property
    def without_effect(self) -> list[str]:
        """What of the request has no effect, in sentences."""
        settings = [name for name in ("reasoning_effort", "verbosity") if getattr(self, name) is not None]
        return [f"{name} has no effect: this model has no such setting" for name in settings]

    def turns(self, allowed: limits.ClientLimits, read_image: Callable[[bytes], Decoded]) -> list[Turn]:
        """Return the conversation with its images decoded, without empty messages of the system.

        A DataError says that there are more images or pixels than allowed, or that one is no data URL, or no image.
        """
        turns, n_decoded = [], 0

        def check_pixels(n: int) -> None:
            if n > allowed.megapixels * 1_000_000:
                raise DataError(
                    f"the images are too large: together more than {allowed.megapixels} million pixels, the most that"
                    " this server decodes for one request. Shrink them."
                )

        n_images = sum(part.image_url is not None for message in self.messages for part in message.content)
        if n_images > allowed.images:
            raise DataError(f"{n_images} images: expected at most {allowed.images} in one request.")
        for message in self.messages:
            parts: list[str | SentImage] = []
            for part in message.content:
                if part.image_url is None:
                    parts.append(part.text)
                    continue
                read_again = partial(read_image, content := content_of(part.image_url.url))
                check_pixels(n_decoded + n_pixels(content))  # by its header, before its pixels take memory
                parts.append(SentImage(decoded=(decoded := read_again()), read_again=read_again))
                n_decoded += decoded.image.width * decoded.image.height
                check_pixels(n_decoded)
            if not message.is_empty:
                role = "system" if message.role == "developer" else message.role
                turns.append(Turn(role=role, parts=tuple(parts)))
        if not turns:
            raise DataError("messages: all are empty. Expected a question such as 'Is there a lesion?'.")
        return turns


def read(body: bytes) -> ChatRequest:
    """Return the request in `body`, in time that grows with its length alone.

    A DataError says that it is no JSON, lacks something, or asks for what this server does not do.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > limits.REQUEST_VALUES:
        raise DataError(
            f"the body has more than {limits.REQUEST_VALUES} values. Expected a request as OpenAI's API has it."
        )
    try:
        return ChatRequest.model_validate(json.loads(body, object_pairs_hook=_names_once))
    except ValidationError as error:
        raise DataError(_first_problem(error)) from error
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"the body is no JSON ({type(error).__name__}). Expected a request as OpenAI's API has it."
        ) from error


def _names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, none of whose names is there twice: one of the two values would be ignored."""
    names: set[str] = set()
    for name, _ in pairs:
        if name in names:
            raise DataError(f"{name[:50]}: is there twice. Expected each name once. Leave one out.")
        names.add(name)
    return dict(pairs)


def _first_problem(error: ValidationError) -> str:
    """Return the first problem in a sentence, without what was sent: that may be long."""
    first, *others = error.errors(include_url=False, include_input=False)
    place = ".".join(str(part)[:50] for part in first["loc"]) or "the body"
    more = f" So are {len(others)} other values." if others else ""
    if place in _NEUTRAL:
        return f"{place}: this server cannot do this, which would change the answer. Leave it out.{more}"
    if first["type"] == "extra_forbidden":
        return f"{place}: this server knows no such parameter, and ignores none that may matter. Leave it out.{more}"
    return f"{place}: is not what this server takes ({first['msg'].removeprefix('Value error, ')[:200]}).{more}"


def content_of(url: str) -> bytes:
    """Return the bytes in a data URL (RFC 2397) in base64: either alphabet, with or without padding and line ends.

    A DataError refuses another address, and what is no base64.
    """
    if (head := _HEAD.match(url)) is None:
        raise DataError(
            "an image is not given as data:image/...;base64,... Expected the image itself: this server opens no address"
            " and no file that a request names."
        )
    try:
        content = url[head.end() :]
        escaped = 0 < content.count("%") <= limits.URL_ESCAPES
        raw = unquote_to_bytes(content) if escaped else content.encode("ascii")
        raw = raw.translate(_URL_SAFE, delete=b" \t\r\n\f\v").rstrip(b"=")
        content = base64.b64decode(raw + b"=" * (-len(raw) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"an image is no base64 ({error}).") from error
    if not content:
        raise DataError("an image has no bytes.")
    return content
